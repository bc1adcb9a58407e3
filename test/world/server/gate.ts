/**
 * A gate in front of a listener: TCP that can be blocked in one or both directions, or delayed, as
 * on a lossy network. Blocked data arrives later, because TCP retransmits lost packets; the gate
 * itself closes no connection.
 *
 * All nodes connect from one address here, so a gate identifies a caller by the name that it sends
 * when it becomes a link. Until then the caller is anonymous, and only a cut of the anonymous
 * caller blocks it.
 */
import { once } from "node:events"
import { connect, createServer, type Server, type Socket } from "node:net"
import { setTimeout as pause } from "node:timers/promises"

/** Matches the name of the calling node, within its first bytes. */
const caller_pattern = /^authorization: Almanac-Cluster node="([\w-]+)"/im

/** The same for a nats-server that opens a route to another. */
export const route_pattern = /"server_name":"([\w-]+)"/
const head_bytes_max = 4096

/** The cuts between nodes, for all gates of one network. */
export const network = () => {
  const cuts = new Set<string>()
  let delay_ms = 0
  let waiting: Array<() => void> = []
  const wake = () => {
    const woken = waiting
    waiting = []
    for (const resolve of woken) resolve()
  }
  const isCut = (from: string, to: string) => cuts.has(`${from} ${to}`)
  return {
    /** Blocks all data from one to the other. */
    cut: (from: string, to: string) => {
      cuts.add(`${from} ${to}`)
    },
    /** Delays everything by this many milliseconds. */
    delay: (ms: number) => {
      delay_ms = ms
    },
    heal: () => {
      cuts.clear()
      delay_ms = 0
      wake()
    },
    /** Resolves when bytes may pass. */
    passes: async (from: () => string, to: () => string) => {
      if (delay_ms > 0) await pause(delay_ms)
      while (isCut(from(), to())) await new Promise<void>((resolve) => waiting.push(resolve))
    },
  }
}

export type Network = ReturnType<typeof network>

export interface GateOptions {
  readonly network: Network
  /** The name of the server behind the gate. */
  readonly name: string
  /** The caller's name; undefined: nodes identify themselves. */
  readonly caller?: string
  /** The pattern of the caller's name, if it differs from the blob cluster's. */
  readonly says?: RegExp
}

const isOpen = (socket: Socket) => !socket.destroyed

/** Forwards data from one socket to the other, in order, and its end. */
const pass = async (
  from: Socket,
  to: Socket,
  passes: () => Promise<void>,
  saw: (chunk: Buffer) => void = () => undefined,
) => {
  try {
    for await (const chunk of from) {
      saw(chunk)
      await passes()
      if (!to.write(chunk) && isOpen(to)) await Promise.race([once(to, "drain"), once(to, "close")])
    }
    await passes()
    to.end()
  } catch {
    await passes()
    to.destroy()
  }
}

/** Listens on a free port; forwards connections to `target` once it is set. */
export const openGate = async (options: GateOptions) => {
  const { network, name, caller, says = caller_pattern } = options
  const sockets = new Set<Socket>()
  let target: number | undefined
  let is_shut = false
  const server: Server = createServer((inside) => {
    if (target === undefined || is_shut) {
      inside.destroy()
      return
    }
    const outside = connect(target, "127.0.0.1")
    let known = caller ?? ""
    let head = ""
    const learn = (chunk: Buffer) => {
      if (known !== "" || head.length > head_bytes_max) return
      head += chunk.toString("latin1")
      known = says.exec(head)?.[1] ?? ""
    }
    for (const socket of [inside, outside]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on("error", () => undefined)
      socket.once("close", () => sockets.delete(socket))
    }
    const from = () => known
    const to = () => name
    void pass(inside, outside, () => network.passes(from, to), learn)
    void pass(outside, inside, () => network.passes(to, from))
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  return {
    port,
    aim: (at: number) => {
      target = at
      is_shut = false
    },
    /** Behaves like a closed port: closes open connections and rejects new ones, until `open`. */
    shut: () => {
      is_shut = true
      for (const socket of sockets) socket.destroy()
    },
    open: () => {
      is_shut = false
    },
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

export type Gate = Awaited<ReturnType<typeof openGate>>
