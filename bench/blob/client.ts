/**
 * The load client of the blob suite, in its own process: keep-alive connections, each with one
 * request in flight, over plain sockets and one buffer each; HTTP/1.1 or Redis's protocol.
 */
import { connect, type Socket } from "node:net"
import { quantile, summary } from "../harness/round.ts"
import {
  type BlobOrder,
  type BlobRequest,
  type BlobRound,
  randomBody,
  unique_chars,
  unique_mark,
  uniqueName,
} from "./request.ts"

export interface Loaded {
  readonly round: BlobRound
  /** The responses, unordered, if the order requests them. */
  readonly kept: ReadonlyArray<string>
}

export type LoadedOrNot = Loaded | { readonly failed: string }

const receive_bytes = 262_144
/** Maximum length of a response head, or of a kept response. */
const text_bytes_max = 65_536
const head_end = "\r\n\r\n"

/** The remainder of a response after its head; `chunked`: until the last chunk. */
type Rest = number | "chunked"

interface Head {
  readonly bytes: number
  readonly rest: Rest
}

const httpHeadOf = (text: string): Head | undefined => {
  const end = text.indexOf(head_end)
  if (end < 0) return undefined
  const head = text.slice(0, end)
  if (!/^HTTP\/1\.1 20\d /.test(head)) throw new Error(`answered ${text.slice(0, 200)}`)
  const bytes = end + head_end.length
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
  if (length !== undefined) return { bytes, rest: Number(length) }
  if (/\r\ntransfer-encoding: *chunked/i.test(head)) return { bytes, rest: "chunked" }
  return { bytes, rest: 0 }
}

const respHeadOf = (text: string): Head | undefined => {
  const end = text.indexOf("\r\n")
  if (end < 0) return undefined
  const bytes = end + 2
  if (text.startsWith("+")) return { bytes, rest: 0 }
  const length = /^\$(\d+)$/.exec(text.slice(0, end))?.[1]
  if (length === undefined) throw new Error(`answered ${text.slice(0, 200)}`)
  return { bytes, rest: Number(length) + 2 }
}

const heads = { http: httpHeadOf, resp: respHeadOf }

/**
 * Parses data from a connection, and calls `done` for each complete response, with its text if
 * kept.
 */
const answers = ({ protocol, is_kept }: BlobOrder, done: (text: string) => void) => {
  let text = ""
  let rest: Rest | undefined
  const end = () => {
    const whole = text
    text = ""
    rest = undefined
    done(whole)
  }
  const behindHead = (chunk: Buffer) => {
    if (is_kept || rest === "chunked")
      text = (text + chunk.toString("latin1")).slice(-text_bytes_max)
    if (rest === "chunked") {
      if (text.endsWith("\r\n0\r\n\r\n")) end()
      return
    }
    rest = (rest ?? 0) - chunk.length
    if (rest < 0) throw new Error("more than one answer to one request")
    if (rest === 0) end()
  }
  return (chunk: Buffer) => {
    if (rest !== undefined) return behindHead(chunk)
    // Heads are short, so most of a long body in the same chunk is not converted to text.
    const before = text.length
    text += chunk.toString("latin1", 0, text_bytes_max)
    const head = heads[protocol](text)
    if (head === undefined) return
    text = is_kept ? text.slice(0, head.bytes) : ""
    rest = head.rest
    if (rest === 0) end()
    else if (chunk.length > head.bytes - before) behindHead(chunk.subarray(head.bytes - before))
  }
}

/** Small requests are one buffer, patched for each; a large body is shared by all connections. */
const own_bytes_max = 262_144

/** The positions of the marks in a head, where each stands for `unique_chars` characters. */
const marked = ({ head }: BlobRequest) => {
  const parts = head.split(unique_mark)
  let position = 0
  const places = parts.slice(0, -1).map((part) => {
    position += part.length + unique_chars
    return position - unique_chars
  })
  return { bytes: Buffer.from(parts.join(" ".repeat(unique_chars)), "latin1"), places }
}

/** Creates a writer for the next request of a connection. */
const writerOf = (
  request: BlobRequest,
  shared: { readonly body: Buffer; readonly unique_at: number },
) => {
  const { bytes: head, places } = marked(request)
  const all = [...places]
  if (request.blob_bytes > 0) all.push(head.length + shared.unique_at)
  const own = Math.min(shared.body.length, own_bytes_max)
  const first = Buffer.concat([head, shared.body.subarray(0, own)])
  const rest = shared.body.subarray(own)
  const tail = Buffer.from(request.tail, "latin1")
  const whole = rest.length === 0 ? Buffer.concat([first, tail]) : first
  return (socket: Socket, name: string) => {
    for (const place of all) whole.write(name, place, "latin1")
    if (rest.length === 0) return void socket.write(whole)
    socket.cork()
    socket.write(whole)
    socket.write(rest)
    if (tail.length > 0) socket.write(tail)
    socket.uncork()
  }
}

interface Turn {
  /** The number of the next request, or undefined at the end of the round. */
  readonly next: () => number | undefined
  readonly seen: (ms: number, text: string) => void
}

const keepAsking = (
  order: BlobOrder,
  writers: ReadonlyArray<ReturnType<typeof writerOf>>,
  { next, seen }: Turn,
) =>
  new Promise<void>((resolve, reject) => {
    let sent = 0
    const fail = (cause: unknown) => {
      socket.destroy()
      reject(cause)
    }
    const ask = () => {
      const n = next()
      if (n === undefined) return void socket.end(resolve)
      sent = performance.now()
      writers[n % writers.length]?.(socket, uniqueName(order.round, n))
    }
    const take = answers(order, (text) => {
      seen(performance.now() - sent, text)
      ask()
    })
    const callback = (bytes: number, buffer: Uint8Array) => {
      try {
        take(Buffer.from(buffer.buffer, buffer.byteOffset, bytes))
      } catch (cause) {
        fail(cause)
      }
      return true
    }
    const onread = { buffer: Buffer.allocUnsafe(receive_bytes), callback }
    const socket = connect({ port: order.port, host: "127.0.0.1", noDelay: true, onread }, ask)
    socket.on("error", fail)
    socket.on("close", () => reject(new Error("the server closed a connection")))
  })

const measure = async (order: BlobOrder): Promise<Loaded> => {
  const [first] = order.requests
  if (first === undefined) throw new Error("nothing to send")
  const shared = randomBody(first)
  const latencies: Array<number> = []
  const kept: Array<string> = []
  let count = 0
  const used = process.cpuUsage()
  const began = performance.now()
  const end = began + order.seconds * 1000
  const turn: Turn = {
    next: () => (performance.now() < end && count < order.runs_max ? count++ : undefined),
    seen: (ms, text) => {
      latencies.push(ms)
      if (order.is_kept) kept.push(text)
    },
  }
  const writersOf = () => order.requests.map((request) => writerOf(request, shared))
  const common = writersOf()
  // Each connection has its own copy of patched buffers; gets are never patched.
  const lanes = Array.from({ length: order.connections }, () =>
    keepAsking(order, first.blob_bytes > 0 ? writersOf() : common, turn),
  )
  await Promise.all(lanes)
  const seconds = (performance.now() - began) / 1000
  const { user, system } = process.cpuUsage(used)
  return {
    kept,
    round: {
      ...summary(latencies, seconds),
      p999_ms: quantile(latencies, 0.999),
      client_busy: (user + system) / 1e6 / seconds,
    },
  }
}

const answer = (message: LoadedOrNot) => void process.send?.(message)

process.on("disconnect", () => process.exit(0))
process.on("message", (order: BlobOrder) => {
  measure(order).then(answer, (cause) => answer({ failed: String(cause) }))
})
