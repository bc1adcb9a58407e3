/**
 * Connections to publishers. Certificates are verified, except for the one source for which the
 * document disables it.
 *
 * Source: document 3 §1 A; decisions of document 3, TLS verification off.
 */
import { Agent, buildConnector } from "undici"

const connect_ms_max = 10_000
/** Connections per origin. */
const connections_max = 2

const bounds = (bytes_max: number) => ({
  connections: connections_max,
  pipelining: 1,
  // FRED's HTTP/2 streams have failed in practice; HTTP/1.1 works with every publisher.
  allowH2: false,
  maxResponseSize: bytes_max,
})

/** Verifies certificates regardless of environment variables. */
export const verifyingAgent = (bytes_max: number) =>
  new Agent({
    ...bounds(bytes_max),
    connect: { timeout: connect_ms_max, rejectUnauthorized: true },
  })

/** Accepts any certificate, but only for this host. */
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
