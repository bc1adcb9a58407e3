/**
 * The lane: connections whose requests are plain and hot are served on the socket itself, without
 * Node's HTTP server around each. The first request that is anything else hands its connection
 * over to that server, with all bytes of it, and for good. Source: decision 0159.
 */
import type { Server, Socket } from "node:net"
import type { HotRequest } from "#gateway/hot.ts"
import { answerForm } from "./lane-answer.ts"
import { type LaneConnection, type LaneRules, laneConnection } from "./lane-connection.ts"

const sweep_ms = 1000
const ms_per_s = 1000

export interface LaneSetup extends Omit<LaneRules, "form" | "handOver" | "silence"> {
  readonly is_tls: boolean
}

export interface Lane {
  /** From now on each connection goes over with its next request. */
  readonly retire: () => void
  /** Closes what no request is under way on. */
  readonly closeIdle: () => void
  readonly closeAll: () => void
  /** The lane's request that a connection was handed over with, once: its route was tried. */
  readonly takeTried: (socket: Socket) => HotRequest | undefined
}

type Listener = (socket: Socket) => void

/** Follows the connections of a server, which ends what has been still for too long. */
const following = (server: Server) => {
  const connections = new Set<LaneConnection>()
  server.once("listening", () => {
    const sweeping = setInterval(() => {
      const now_ms = Date.now()
      for (const { sweep } of connections) sweep(now_ms)
    }, sweep_ms)
    server.once("close", () => clearInterval(sweeping))
  })
  return connections
}

/** Sends the connections of a server, which has its own listener for them alone, over the lane. */
export const httpLane = (server: Server, { is_tls, ...setup }: LaneSetup): Lane => {
  const event = is_tls ? "secureConnection" : "connection"
  // Only Node's own listener of this event was added to it.
  const theirs = server.listeners(event)[0] as Listener | undefined
  if (theirs === undefined) throw new Error(`The server takes no ${event}.`)
  const connections = following(server)
  const tried = new WeakMap<Socket, HotRequest>()
  let is_retired = false

  const rules: LaneRules = {
    ...setup,
    form: answerForm(setup.keep_alive_ms / ms_per_s),
    isForeign: (socket) => is_retired || setup.isForeign(socket),
    silence: (socket) => {
      const late = Object.assign(new Error("no head"), { code: "ERR_HTTP_REQUEST_TIMEOUT" })
      server.emit("clientError", late, socket)
    },
    handOver: (socket, bytes, request) => {
      if (socket.destroyed) return
      if (request !== undefined) tried.set(socket, request)
      socket.resume()
      theirs.call(server, socket)
      if (bytes.length > 0) socket.unshift(bytes)
    },
  }
  server.off(event, theirs)
  server.on(event, (socket: Socket) => {
    const connection = laneConnection(rules, socket, () => connections.delete(connection))
    connections.add(connection)
  })
  const close = (isWanted: (connection: LaneConnection) => boolean) => {
    for (const connection of connections) if (isWanted(connection)) connection.socket.destroy()
  }
  return {
    retire: () => {
      is_retired = true
    },
    closeIdle: () => close(({ isIdle }) => isIdle()),
    closeAll: () => close(() => true),
    takeTried: (socket) => {
      const request = tried.get(socket)
      tried.delete(socket)
      return request
    },
  }
}
