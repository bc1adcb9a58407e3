/**
 * Connections to publishers: certificates are verified, but for the one source whose verification
 * the document turns off.
 *
 * Source: document 3 §1 A; decisions of document 3, TLS verification off.
 */
import { Agent, buildConnector } from "undici"

const connect_ms_max = 10_000
/** To one address; more wait for their turn. */
const connections_max = 2

const bounds = (bytes_max: number) => ({
  connections: connections_max,
  pipelining: 1,
  // Streams of HTTP/2 were seen to break off at FRED; HTTP/1.1 works with every publisher.
  allowH2: false,
  maxResponseSize: bytes_max,
})

/** Says no to a certificate that is not good, whatever the environment wants of Node. */
export const verifyingAgent = (bytes_max: number) =>
  new Agent({
    ...bounds(bytes_max),
    connect: { timeout: connect_ms_max, rejectUnauthorized: true },
  })

/** Takes any certificate, and connects to this host only: every other one is refused. */
export const unverifiedAgent = (hostname: string, bytes_max: number) => {
  const connect = buildConnector({
    timeout: connect_ms_max,
    allowH2: false,
    rejectUnauthorized: false,
  })
  return new Agent({
    ...bounds(bytes_max),
    connect: (options, callback) => {
      if (options.hostname === hostname) connect(options, callback)
      else callback(Object.assign(new Error("another host"), { code: "ERR_OTHER_HOST" }), null)
    },
  })
}
