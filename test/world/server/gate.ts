/**
 * A gate in front of a listener: TCP that can be held up, in one direction or both, or be late, as
 * on a network that loses packets. What is held up comes later, as TCP sends again what was lost;
 * no connection ends for it but by those who wait.
 *
 * Nodes come from one address here, so a caller is known by what it says of itself when it becomes
 * a link; until then it is nobody, whom only the cut of everybody holds up.
 */
import { once } from "node:events"
import { connect, createServer, type Server, type Socket } from "node:net"
import { setTimeout as pause } from "node:timers/promises"

/** Where the name of the calling node stands, within its first bytes. */
const caller_pattern = /^authorization: Almanac-Cluster node="([\w-]+)"/im

/** The same of a nats-server that makes a route to another. */
export const route_pattern = /"server_name":"([\w-]+)"/
const head_bytes_max = 4096

/** Who is cut from whom, for all gates of one network. */
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
    /** Nothing more comes from the one to the other. */
    cut: (from: string, to: string) => {
      cuts.add(`${from} ${to}`)
    },
    /** Everything is this much late, in milliseconds. */
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
  /** Who is behind it. */
  readonly name: string
  /** Who comes to it; undefined: nodes that say so themselves. */
  readonly caller?: string
  /** How they say so, if not as the nodes of a blob cluster do. */
  readonly says?: RegExp
}

const isOpen = (socket: Socket) => !socket.destroyed

/** Passes on what comes from the one socket to the other, in order, and its end. */
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

/** Listens on a free port; what comes goes to `target`, once there is one. */
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
    /** As if nobody listened: what is open breaks off, what comes is refused, until `open`. */
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
