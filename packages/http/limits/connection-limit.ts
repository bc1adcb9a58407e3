/**
 * The maximum number of connections to the listener, in total and per address. A few more are
 * accepted, for health probes and other nodes; any other request on one of those gets 503 with
 * Retry-After.
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
import { intercept, isBelow } from "../intercept.ts"
import { sendErrorResponse } from "../refusals/error-response.ts"
import { connectionShares, type Shares } from "./connection-share.ts"

/** Connections accepted beyond the limit. Any further ones are closed immediately. */
const spare_max = 64

/** The share of the process's open files that connections may use. */
const files_share = 0.75

/** Served regardless of the number of connections. */
const probe_paths = new Set(["/livez", "/readyz", "/metrics"])

const open_total = gauge("almanac_http_connections", "Open client connections.")
const limit = gauge("almanac_http_connections_limit", "Maximum number of open client connections.")
const refused_total = counter(
  "almanac_http_connections_refused_total",
  "Connections above a limit that were rejected with status 503 or closed.",
  {},
)
const no_labels = Context.empty()

/** The process's limit of open files; infinite if unknown. */
const filesMax = () => {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? []
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

/** The maximum number of connections, by the settings and the system. */
const connectionsMax = ({ max_connections }: ListenerSettings["api"]) =>
  Math.max(1, Math.min(max_connections, Math.floor(filesMax() * files_share)))

/** Identifies a connection, with or without TLS. */
const connectionKey = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`

/** Tracks the connections beyond the limit, and closes those beyond the spare ones. */
const trackExcess = (
  server: Server,
  { is_tls }: LimitOptions,
  { connections_max, shares }: { readonly connections_max: number; readonly shares: Shares },
) => {
  const excess = new Set<Duplex>()
  /** TLS connections beyond the limit, including those before their handshake. */
  const excess_keys = new Set<string>()
  let open = 0
  const addOpen = (by: number) => {
    open += by
    open_total.updateUnsafe(open, no_labels)
  }
  server.maxConnections = connections_max + spare_max
  server.on("drop", () => refused_total.updateUnsafe(1, no_labels))
  server.on("connection", (socket: Socket) => {
    addOpen(1)
    const { remoteAddress = "" } = socket
    const name = connectionKey(socket)
    const admission = shares.admit(remoteAddress, open)
    socket.once("close", () => {
      addOpen(-1)
      shares.release(remoteAddress)
      excess.delete(socket)
      excess_keys.delete(name)
    })
    if (admission === "excess") void (is_tls ? excess_keys.add(name) : excess.add(socket))
    if (admission !== "closed") return
    refused_total.updateUnsafe(1, no_labels)
    socket.destroy()
  })
  server.on("secureConnection", (socket: Socket) => {
    if (!excess_keys.has(connectionKey(socket))) return
    excess.add(socket)
    socket.once("close", () => excess.delete(socket))
  })
  return excess
}

export interface LimitOptions {
  readonly is_tls: boolean
  readonly internal: InternalHandler | undefined
}

/** Rejects requests on connections beyond the limit; passes others to the current listener. */
export const limitConnections = (
  server: Server,
  { errorResponse }: Pick<Handler, "errorResponse">,
  api: ListenerSettings["api"],
  options: LimitOptions,
) => {
  const connections_max = connectionsMax(api)
  limit.updateUnsafe(connections_max, no_labels)
  const shares = connectionShares(api, connections_max)
  const excess = trackExcess(server, options, { connections_max, shares })
  const refuse: RequestListener = ({ method = "", url = "" }, response) => {
    const detail =
      "Too many connections are open, in total or from this address: retry later, or use one for " +
      "several requests."
    refused_total.updateUnsafe(1, no_labels)
    sendErrorResponse(response, errorResponse(method, url, { status: 503, detail }), {
      "retry-after": "1",
    })
  }
  intercept(server, (next) => (request, response) => {
    if (excess.size === 0 || !excess.has(request.socket)) return next(request, response)
    const { url = "" } = request
    const { internal } = options
    if (internal !== undefined && isBelow(internal.prefix, url)) return next(request, response)
    response.shouldKeepAlive = false
    if (probe_paths.has(url.split("?", 1)[0] ?? "")) return next(request, response)
    refuse(request, response)
  })
}
