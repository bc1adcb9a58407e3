/**
 * An answer on a connection of the lane, put on the wire as Node's server would put it there: the
 * same status line, the same headers in the same order. It is framed by its length alone.
 *
 * Source: decision 0159.
 */
import { STATUS_CODES } from "node:http"
import type { Socket } from "node:net"
import type { HotResponse } from "#gateway/direct.ts"

/** Up to here head and body go out as one piece of memory; a larger body is not copied. */
const joined_bytes_max = 16 * 1024
const slab_bytes = 64 * 1024

const ms_per_s = 1000

/** What stands at the end of each head; the date is told to the second. */
const headEnds = (keep_alive_s: number) => {
  const connection = `Connection: keep-alive\r\nKeep-Alive: timeout=${keep_alive_s}\r\n\r\n`
  let second = 0
  let text = ""
  return () => {
    const now = Math.floor(Date.now() / ms_per_s)
    if (now !== second) {
      second = now
      text = `Date: ${new Date(now * ms_per_s).toUTCString()}\r\n${connection}`
    }
    return text
  }
}

/** Head and body as one piece of memory, which is used again where the system took it at once. */
const joined = () => {
  let slab = Buffer.allocUnsafeSlow(slab_bytes)
  let used = 0
  return (socket: Socket, head: string, body: Uint8Array) => {
    const length = head.length + body.length
    if (used + length > slab_bytes) {
      slab = Buffer.allocUnsafeSlow(slab_bytes)
      used = 0
    }
    const piece = slab.subarray(used, used + length)
    piece.write(head, "latin1")
    piece.set(body, head.length)
    socket.write(piece)
    // What waits in the socket is still read by the system.
    if (socket.writableLength > 0) used += length
  }
}

/** What all answers of a server have in common. */
export interface AnswerForm {
  readonly headEnd: () => string
  readonly writeJoined: (socket: Socket, head: string, body: Uint8Array) => void
}

export const answerForm = (keep_alive_s: number): AnswerForm => ({
  headEnd: headEnds(keep_alive_s),
  writeJoined: joined(),
})

/** As Node refuses it: line breaks, and what becomes one where only a byte of it is written. */
const unwritable = /[^\t\u0020-\u007e\u0080-\u00ff]/

const statusLine = (status: number) => `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "unknown"}\r\n`

const headerLine = (name: string, value: string) => {
  // A line break in it would begin another header, or another answer.
  if (unwritable.test(name) || unwritable.test(value)) {
    throw new Error(`The header ${JSON.stringify(name)} has a character that no header may have.`)
  }
  return `${name}: ${value}\r\n`
}

type Headers = Parameters<HotResponse["writeHead"]>[1]

interface HeaderLines {
  readonly text: string
  readonly has_length: boolean
}

const length_name = "content-length"

const headerLines = (headers: Headers): HeaderLines => {
  let text = ""
  let has_length = false
  const add = (name: string, value = "") => {
    text += headerLine(name, value)
    has_length ||= name.length === length_name.length && name.toLowerCase() === length_name
  }
  if (Array.isArray(headers)) {
    for (let at = 0; at < headers.length; at += 2) add(headers[at] ?? "", headers[at + 1])
  } else for (const name in headers) add(name, headers[name])
  return { text, has_length }
}

const no_lines: HeaderLines = { text: "", has_length: false }

/** Answers without a body, which say no length either. */
const bodiless = new Set([204, 304])

const byteLength = (body: string | Uint8Array) =>
  typeof body === "string" ? Buffer.byteLength(body) : body.length

/** As hot routes know it, and kept up to date here: a getter of each would be made for each. */
type OwnResponse = { -readonly [key in keyof HotResponse]: HotResponse[key] }

/** The answers of one connection, one after the other. */
export interface LaneAnswers {
  /** The next answer, to a request of this method. */
  readonly begin: (method: string) => HotResponse
  /** The system takes more again. */
  readonly drained: () => void
  /** The connection is gone. */
  readonly closed: () => void
}

type Listener = () => void

const tell = (listeners: ReadonlyArray<Listener>) => {
  for (const listener of listeners) listener()
}

/** Puts answers on the wire, one after the other. */
const answerWriter = (socket: Socket, { headEnd, writeJoined }: AnswerForm) => {
  let method = ""
  let status = 200
  let lines = no_lines
  let is_head_out = false

  const takeHead = (length: number | undefined) => {
    const { text, has_length } = lines
    // Chunks are for Node's server to write.
    if (!has_length && length === undefined) throw new Error("An answer of unknown length.")
    is_head_out = true
    const is_silent = has_length || bodiless.has(status)
    const more = is_silent ? "" : `content-length: ${length}\r\n`
    return statusLine(status) + text + more + headEnd()
  }
  const writeHead: HotResponse["writeHead"] = (code, headers) => {
    status = code
    lines = headerLines(headers)
  }
  const write: HotResponse["write"] = (bytes, written) => {
    if (is_head_out) return socket.write(bytes, written)
    const head = takeHead(undefined)
    socket.cork()
    socket.write(head, "latin1")
    const is_free = socket.write(bytes, written)
    socket.uncork()
    return is_free
  }
  return {
    begin: (of_method: string) => {
      method = of_method
      status = 200
      lines = no_lines
      is_head_out = false
    },
    writeHead,
    write,
    /** What is not written yet of an answer with this body. */
    writeRest: (body: string | Uint8Array) => {
      if (is_head_out) return void (body.length > 0 && socket.write(body))
      const head = takeHead(byteLength(body))
      if (method === "HEAD" || bodiless.has(status)) socket.write(head, "latin1")
      else if (typeof body === "string") socket.write(head + body)
      else if (body.length <= joined_bytes_max) writeJoined(socket, head, body)
      else {
        socket.cork()
        socket.write(head, "latin1")
        socket.write(body)
        socket.uncork()
      }
    },
  }
}

/** Calls `done` when all of an answer was handed over; nothing of it is written after that. */
export const laneAnswers = (socket: Socket, form: AnswerForm, done: () => void): LaneAnswers => {
  const { begin, writeHead, write, writeRest } = answerWriter(socket, form)
  let onClose: Array<Listener> = []
  let onDrain: Array<Listener> = []
  let response: OwnResponse | undefined

  const end: HotResponse["end"] = (body = "") => {
    if (response === undefined || response.writableEnded || socket.destroyed) return
    response.writableEnded = true
    writeRest(body)
    const listeners = onClose
    onClose = []
    // As of Node's: whoever streamed learns by it that all was taken.
    if (listeners.length > 0) socket.write("", () => tell(listeners))
    done()
  }
  const destroy = () => socket.destroy()
  const on: HotResponse["on"] = (event, listener) =>
    event === "close" ? onClose.push(listener) : onDrain.push(listener)

  return {
    begin: (method) => {
      if (onClose.length > 0) onClose = []
      if (onDrain.length > 0) onDrain = []
      begin(method)
      const { destroyed } = socket
      const writableEnded = false
      response = { destroyed, writableEnded, writeHead, write, end, destroy, on }
      return response
    },
    drained: () => tell(onDrain),
    closed: () => {
      if (response !== undefined) response.destroyed = true
      tell(onClose)
    },
  }
}
