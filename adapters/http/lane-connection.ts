/**
 * One connection of the lane: its requests one after the other, until it goes over to Node's
 * server. While a request is under way nothing more is read than what came with it.
 *
 * Source: decision 0159.
 */
import type { Socket } from "node:net"
import type { HotHeaders, HotRequest, HotResponse } from "#gateway/direct.ts"
import { type AnswerForm, laneAnswers } from "./lane-answer.ts"
import { laneRequests } from "./lane-request.ts"
import { plainHeads } from "./plain-head.ts"
import { takenBy } from "./unread-answer.ts"

const ms_per_s = 1000

/** Node's server waits so much longer than it says, lest an answer and its end cross. */
const keep_alive_buffer_ms = 1000

/** Serves a request on this lane, or calls `plain`, then or later, before it answered anything. */
export type ServeLane = (
  request: HotRequest,
  response: HotResponse,
  headers: HotHeaders,
  plain: () => void,
) => void

/** What the connections of a lane have in common. */
export interface LaneRules {
  readonly serve: ServeLane
  readonly form: AnswerForm
  /** Whether a connection goes over with its next request. */
  readonly isForeign: (socket: Socket) => boolean
  /** Gives a connection to Node's server, with these bytes that were read from it. */
  readonly handOver: (socket: Socket, bytes: Buffer, tried: HotRequest | undefined) => void
  /** Ends a connection that never said anything. */
  readonly silence: (socket: Socket) => void
  /** Milliseconds until a connection has said its first head. */
  readonly silence_ms: number
  /** Milliseconds between two requests. */
  readonly keep_alive_ms: number
  /** Milliseconds that an answer waits for its client to take more of it. */
  readonly patience_ms: number
}

/** A connection as the sweep and the end of the server see it. */
export interface LaneConnection {
  readonly socket: Socket
  readonly isIdle: () => boolean
  /** Ends it where it has been still for too long. */
  readonly sweep: (now_ms: number) => void
}

type State = "silent" | "idle" | "busy"

const nothing = Buffer.alloc(0)

/** Bytes that are no part of the request under way; while there are any no more are read. */
const backlog = (socket: Socket) => {
  let bytes: Buffer = nothing
  return {
    add: (more: Buffer) => {
      bytes = bytes.length === 0 ? more : Buffer.concat([bytes, more])
      socket.pause()
    },
    has: () => bytes.length > 0,
    /** All of them; from here on more are read. */
    empty: () => {
      const all = bytes
      bytes = nothing
      socket.resume()
      return all
    },
  }
}

const said_length = /^content-length:[^\r]*/im

/** The head of a request of whose body so many bytes were taken: the rest is all that follows. */
const headOfRest = (head: Buffer, body_bytes: number, told: number) => {
  if (told === 0) return head
  const text = head.toString("latin1")
  return Buffer.from(text.replace(said_length, `content-length: ${body_bytes - told}`), "latin1")
}

/** The requests of a connection; `leave` gives it away with bytes that were read. */
const dialogue = (
  { serve, form, isForeign }: LaneRules,
  socket: Socket,
  leave: (bytes: Buffer, tried?: HotRequest) => void,
) => {
  const headOf = plainHeads()
  /** The request that is under way. */
  let current: HotRequest | undefined
  const behind = backlog(socket)
  let is_silent = true

  const done = () => {
    if (current === undefined) return
    current = undefined
    // What is left of its body would be taken for the next request.
    if (requests.left() > 0) socket.destroySoon()
    else if (behind.has()) process.nextTick(goOn)
    // The next request waits until the system has taken this one's answer.
    else if (socket.writableNeedDrain) socket.pause()
    // A route may have paused its request for good.
    else if (socket.isPaused()) socket.resume()
  }
  const requests = laneRequests(socket)
  const answers = laneAnswers(socket, form, done)

  const begin = (bytes: Buffer) => {
    const head = isForeign(socket) ? undefined : headOf(bytes)
    if (head === undefined) return leave(bytes)
    const { head_bytes, body_bytes } = head
    const body_end = head_bytes + body_bytes
    const request = requests.begin(head)
    current = request
    if (bytes.length > body_end) behind.add(bytes.subarray(body_end))
    if (bytes.length > head_bytes) requests.arrive(bytes.subarray(head_bytes, body_end))
    serve(request, answers.begin(head.method), head.headers, () => {
      if (current !== request) return
      current = undefined
      const first = headOfRest(bytes.subarray(0, head_bytes), body_bytes, requests.told())
      leave(Buffer.concat([first, ...requests.untold(), behind.empty()]), request)
    })
    if (current === request) requests.flow()
  }
  const goOn = () => {
    if (current !== undefined || socket.destroyed || socket.writableNeedDrain) return
    const bytes = behind.empty()
    if (bytes.length > 0) begin(bytes)
  }
  return {
    take: (bytes: Buffer) => {
      is_silent = false
      if (current === undefined) {
        // What comes behind the last answer is no request: the rest of a body, say.
        if (socket.writableEnded) return
        return behind.has() || socket.writableNeedDrain ? behind.add(bytes) : begin(bytes)
      }
      const left = requests.left()
      if (bytes.length > left) behind.add(bytes.subarray(left))
      if (left === 0) return
      requests.arrive(bytes.length > left ? bytes.subarray(0, left) : bytes)
    },
    drained: () => (current === undefined ? goOn() : answers.drained()),
    closed: () => {
      current = undefined
      answers.closed()
    },
    state: (): State => {
      if (current !== undefined) return "busy"
      return is_silent ? "silent" : "idle"
    },
  }
}

/** Ends a connection that has been still for too long. */
const sweeper = (rules: LaneRules, socket: Socket, state: () => State) => {
  let since_ms = Date.now()
  let moved_bytes = 0
  /** When a whole answer must be taken. */
  let due_ms: number | undefined
  return (now_ms: number) => {
    if (socket.writableLength === 0 || state() === "busy") due_ms = undefined
    else due_ms ??= takenBy(now_ms, socket.writableLength, rules.patience_ms / ms_per_s)
    if (due_ms !== undefined && now_ms >= due_ms) return void socket.destroy()
    if (socket.timeout && socket.writableLength === 0) socket.setTimeout(0)
    const bytes = socket.bytesRead + socket.bytesWritten
    // What is under way has the deadlines of requests, unless its answer is not taken.
    if (bytes !== moved_bytes || (state() === "busy" && socket.writableLength === 0)) {
      moved_bytes = bytes
      since_ms = now_ms
      return
    }
    const still_ms = now_ms - since_ms
    if (socket.writableLength > 0) {
      // Node's own timer sees how much of a write is taken, and none of it here.
      since_ms = now_ms
      if (!socket.timeout) socket.setTimeout(rules.patience_ms)
    } else if (state() === "silent") {
      if (still_ms >= rules.silence_ms) rules.silence(socket)
    } else if (still_ms >= rules.keep_alive_ms + keep_alive_buffer_ms) socket.destroy()
  }
}

/** Serves a connection; `gone` is called when it has ended, or is not the lane's any more. */
export const laneConnection = (
  rules: LaneRules,
  socket: Socket,
  gone: () => void,
): LaneConnection => {
  const leave = (bytes: Buffer, tried?: HotRequest) => {
    socket.off("data", take).off("end", onEnd).off("drain", drained).off("close", onClose)
    socket.off("timeout", onTimeout).setTimeout(0)
    gone()
    rules.handOver(socket, bytes, tried)
    socket.off("error", onError)
  }
  const { take, drained, closed, state } = dialogue(rules, socket, leave)
  // Half of a connection is none, as for Node's server.
  const onEnd = () => void socket.end()
  // `close` comes with it.
  const onError = () => undefined
  // It was set for an answer that is not taken, which it may be by now.
  const onTimeout = () => void (socket.writableLength > 0 && socket.destroy())
  const onClose = () => {
    gone()
    closed()
  }
  socket.on("data", take).on("end", onEnd).on("drain", drained)
  socket.on("close", onClose).on("error", onError).on("timeout", onTimeout)
  return {
    socket,
    isIdle: () => state() !== "busy" && socket.writableLength === 0,
    sweep: sweeper(rules, socket, state),
  }
}
