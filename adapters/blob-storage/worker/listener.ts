/**
 * The listener of a thread that answers requests for blobs: on the same port as the process's own,
 * between which the kernel divides the connections. What is hot is answered here; the first request
 * that is anything else takes its connection over to the process's own thread, for good.
 *
 * Source: decision 0168.
 */
import { once } from "node:events"
import { createServer, type Socket } from "node:net"
import { connectionShares } from "#adapters/http/connection-share.ts"
import { httpLane } from "#adapters/http/lane.ts"
import type { LaneRules } from "#adapters/http/lane-connection.ts"
import type { HotRequest } from "#gateway/direct.ts"
import type { RefusalSaid, WorkerStart } from "./message.ts"
import { enterTunnel } from "./tunnel.ts"

/** How often connections that have become idle are closed while the listener ends. */
const closing_interval_ms = 50

export interface WorkerRules
  extends Pick<LaneRules, "serve" | "silence_ms" | "keep_alive_ms" | "patience_ms"> {
  /** Told whenever connections of this thread came or went. */
  readonly moved: () => void
  /** How a hot route ended this request, if one did. */
  readonly refusalOf: (request: HotRequest) => RefusalSaid | undefined
}

/** Counts the connections of this thread where all threads see it, and those of each address. */
const counting = (
  { connections, place, connections_max, connections_spare, settings }: WorkerStart,
  moved: () => void,
) => {
  const all = () => connections.reduce((sum, count) => sum + count, 0)
  const threads = connections.length
  const shares = connectionShares(settings.api, { connections_max, threads })
  const excess = new WeakSet<Socket>()
  return {
    /** Answers what is to be called when the connection is not this thread's any more. */
    begin: (socket: Socket) => {
      let is_here = true
      const { remoteAddress = "" } = socket
      Atomics.add(connections, place, 1)
      moved()
      const admission = shares.admit(remoteAddress, all())
      if (admission === "excess") excess.add(socket)
      if (admission === "closed") socket.destroy()
      return () => {
        if (!is_here) return
        is_here = false
        shares.release(remoteAddress)
        Atomics.sub(connections, place, 1)
        moved()
      }
    },
    isExcess: (socket: Socket) => excess.has(socket) || all() > connections_max,
    isTooMany: () => all() > connections_max + connections_spare,
  }
}

export interface WorkerListener {
  /** From now on each connection goes over with its next request. */
  readonly retire: () => void
  /** Takes no connection any more; resolves when the last one is gone. */
  readonly close: () => Promise<void>
}

export const workerListener = async (
  start: WorkerStart,
  rules: WorkerRules,
): Promise<WorkerListener> => {
  const { begin, isExcess, isTooMany } = counting(start, rules.moved)
  const ends = new WeakMap<Socket, () => void>()
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
    ends.get(socket)?.()
    const tried = lane.takeTried(socket)
    const refusal = tried && rules.refusalOf(tried)
    enterTunnel(start.socket_path, socket, {
      address: socket.remoteAddress ?? "",
      is_tried: tried !== undefined,
      ...(refusal && { refusal }),
    })
  })
  const { serve, silence_ms, keep_alive_ms, patience_ms } = rules
  const lane = httpLane(server, {
    is_tls: false,
    serve,
    // Who is told that there are too many is for the process's own thread to say.
    isForeign: isExcess,
    silence_ms,
    keep_alive_ms,
    patience_ms,
  })
  server.prependListener("connection", (socket) => {
    const end = begin(socket)
    ends.set(socket, end)
    socket.once("close", end)
    if (isTooMany()) socket.destroy()
  })
  server.on("clientError", (_, socket: Socket) => socket.destroy())
  server.listen({ host: start.host, port: start.port, reusePort: true })
  await once(server, "listening")
  return {
    retire: lane.retire,
    close: () => {
      const sweeping = setInterval(lane.closeIdle, closing_interval_ms)
      return new Promise<void>((resolve) => {
        server.close(() => {
          clearInterval(sweeping)
          resolve()
        })
      })
    },
  }
}
