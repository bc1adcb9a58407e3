/**
 * The maximum number of connections of the listener, in all and for each address. Some more are
 * accepted for probes of the process and for other nodes; any other request over those gets 503
 * with Retry-After.
 *
 * Source: decisions 0154 and 0186.
 */
import { readFileSync } from "node:fs"
import type { RequestListener, Server } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { Context } from "effect"
import { counter, gauge } from "#schemas/metric.ts"
import type { Handler, InternalHandler, ListenerSettings } from "../handler.ts"
import { answerBroken } from "../refusals/broken-answer.ts"
import { inFront, isBelow } from "../request-front.ts"
import { connectionShares, type Shares } from "./connection-share.ts"

/** Connections beyond the limit; what comes after them is closed as soon as it is there. */
const spare_max = 64

/** The part of the files that a process may open which is for connections. */
const files_share = 0.75

/** Answered however many connections there are. */
const watched = new Set(["/livez", "/readyz", "/metrics"])

const open_total = gauge("almanac_http_connections", "Connections that clients have open.")
const limit = gauge("almanac_http_connections_limit", "Most that they may have open.")
const refused_total = counter(
  "almanac_http_connections_refused_total",
  "Connections beyond the limit, or their address's: answered with 503, or closed.",
  {},
)
const nowhere = Context.empty()

/** What the system lets this process open; as good as no limit where it does not tell. */
const filesMax = () => {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? []
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

/** How many there may be, by the settings and by the system. */
const connectionsMax = ({ max_connections }: ListenerSettings["api"]) =>
  Math.max(1, Math.min(max_connections, Math.floor(filesMax() * files_share)))

/** Names a connection, with TLS on it or without. */
const ends = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`

/** Follows which connections are beyond the limit, and closes what is beyond those. */
const excessive = (
  server: Server,
  { is_tls }: LimitOptions,
  { connections_max, shares }: { readonly connections_max: number; readonly shares: Shares },
) => {
  const excess = new Set<Duplex>()
  /** Of TLS, whose handshakes count as well. */
  const in_excess = new Set<string>()
  let open = 0
  const moved = (by: number) => {
    open += by
    open_total.updateUnsafe(open, nowhere)
  }
  server.maxConnections = connections_max + spare_max
  server.on("drop", () => refused_total.updateUnsafe(1, nowhere))
  server.on("connection", (socket: Socket) => {
    moved(1)
    const { remoteAddress = "" } = socket
    const name = ends(socket)
    const admission = shares.admit(remoteAddress, open)
    socket.once("close", () => {
      moved(-1)
      shares.release(remoteAddress)
      excess.delete(socket)
      in_excess.delete(name)
    })
    if (admission === "excess") void (is_tls ? in_excess.add(name) : excess.add(socket))
    if (admission !== "closed") return
    refused_total.updateUnsafe(1, nowhere)
    socket.destroy()
  })
  server.on("secureConnection", (socket: Socket) => {
    if (!in_excess.has(ends(socket))) return
    excess.add(socket)
    socket.once("close", () => excess.delete(socket))
  })
  return excess
}

export interface LimitOptions {
  readonly is_tls: boolean
  readonly internal: InternalHandler | undefined
}

/** Comes before whoever took requests until now: what is within the limit is theirs. */
export const limitConnections = (
  server: Server,
  { broken }: Pick<Handler, "broken">,
  api: ListenerSettings["api"],
  options: LimitOptions,
) => {
  const connections_max = connectionsMax(api)
  limit.updateUnsafe(connections_max, nowhere)
  const shares = connectionShares(api, connections_max)
  const excess = excessive(server, options, { connections_max, shares })
  const refused: RequestListener = ({ method = "", url = "" }, response) => {
    const detail =
      "Too many connections are open, in all or from this address: try again, or use one for " +
      "several requests."
    refused_total.updateUnsafe(1, nowhere)
    answerBroken(response, broken(method, url, { status: 503, detail }), { "retry-after": "1" })
  }
  inFront(server, (plain) => (request, response) => {
    if (excess.size === 0 || !excess.has(request.socket)) return plain(request, response)
    const { url = "" } = request
    const { internal } = options
    if (internal !== undefined && isBelow(internal.prefix, url)) return plain(request, response)
    response.shouldKeepAlive = false
    if (watched.has(url.split("?", 1)[0] ?? "")) return plain(request, response)
    refused(request, response)
  })
}
