/**
 * The requests of one connection of the lane: what a head said, and its body as it comes.
 *
 * Source: decision 0159.
 */
import type { Socket } from "node:net"
import type { HotRequest } from "#gateway/direct.ts"
import type { PlainHead } from "./plain-head.ts"

const lane = Symbol("lane")

/** As the transport knows it: which connection it came over. */
interface LaneRequest extends HotRequest {
  readonly [lane]: Socket
  complete: boolean
}

export const isLaneRequest = (source: object): source is LaneRequest => lane in source

export const laneSocket = (request: LaneRequest): Socket => request[lane]

/** The requests, one after the other, and the way in which their bodies get there. */
export interface LaneRequests {
  readonly begin: (head: PlainHead) => HotRequest
  /** Bytes of the body that are still to come. */
  readonly left: () => number
  /** Takes bytes of the body, `left` of them at most. */
  readonly arrive: (bytes: Buffer) => void
  /** From here on the body is told of, as far as it is there and somebody listens. */
  readonly flow: () => void
  /** How many bytes of the body were told of. */
  readonly told: () => number
  /** What arrived and was not told of; it never is, then, and the socket is left to others. */
  readonly untold: () => ReadonlyArray<Buffer>
}

/** Reads on unless the route has paused its request, or nobody listens to what was read of it. */
const tapOf = (socket: Socket) => {
  let is_paused = false
  let is_held = false
  let is_ours = true
  const turn = () => {
    if (is_ours) void (is_paused || is_held ? socket.pause() : socket.resume())
  }
  return {
    isPaused: () => is_paused,
    // What comes meanwhile is at most what the system had read already.
    pause: (paused: boolean) => {
      is_paused = paused
      turn()
    },
    hold: (held: boolean) => {
      if (held === is_held) return
      is_held = held
      turn()
    },
    /** The next request is neither; whoever begins it sees to the reading. */
    begin: () => {
      is_paused = false
      is_held = false
    },
    /** Who reads from now on is nobody's here to say. */
    leave: () => {
      is_ours = false
    },
  }
}

export const laneRequests = (socket: Socket): LaneRequests => {
  let waiting: Array<Buffer> = []
  let left = 0
  let told = 0
  let onData: ((bytes: Uint8Array) => void) | undefined
  let onEnd: (() => void) | undefined
  let is_flowing = false
  let request: LaneRequest | undefined
  const tap = tapOf(socket)

  const tell = () => {
    while (is_flowing && !tap.isPaused() && onData !== undefined) {
      const bytes = waiting.shift()
      if (bytes === undefined) break
      told += bytes.length
      onData(bytes)
    }
    tap.hold(is_flowing && waiting.length > 0 && left > 0)
    if (!is_flowing || tap.isPaused() || left + waiting.length > 0 || onEnd === undefined) return
    const end = onEnd
    onEnd = undefined
    end()
  }
  // Whoever begins to listen has something left to do first.
  const tellSoon = () => {
    if (is_flowing) process.nextTick(tell)
  }
  const on = (event: "data" | "end", listener: (bytes: Uint8Array) => void) => {
    if (event === "data") onData = listener
    // It takes nothing, so it may be handed anything.
    else onEnd = listener as () => void
    tellSoon()
  }
  const off = (event: "data" | "end", listener: (bytes: Uint8Array) => void) => {
    if (event === "data" && onData === listener) onData = undefined
    if (event === "end" && onEnd === listener) onEnd = undefined
  }
  const pause = () => tap.pause(true)
  const resume = () => {
    tap.pause(false)
    tellSoon()
  }
  return {
    begin: ({ method, url, body_bytes }) => {
      left = body_bytes
      told = 0
      is_flowing = false
      tap.begin()
      onData = undefined
      onEnd = undefined
      if (waiting.length > 0) waiting = []
      request = { [lane]: socket, method, url, complete: left === 0, on, off, pause, resume }
      return request
    },
    left: () => left,
    arrive: (bytes) => {
      left -= bytes.length
      if (request !== undefined) request.complete = left === 0
      waiting.push(bytes)
      tell()
    },
    flow: () => {
      is_flowing = true
      tell()
    },
    told: () => told,
    untold: () => {
      tap.leave()
      return waiting.splice(0)
    },
  }
}
