/**
 * A kept connection between two nodes that carries many exchanges at once.
 *
 * The node that connected asks, the other answers: a question has an operation, JSON and bytes, and
 * so has its answer, without the operation. Bytes of either may be many, and then they stream.
 */
import type { Duplex } from "node:stream"
import { isPeerFailure, peerFailure } from "#cluster"
import { causeText } from "#schemas/cause-text.ts"
import { makeReceiving, makeSending } from "./exchange.ts"
import {
  decodeJson,
  encodeJson,
  type Frame,
  type FrameKind,
  frameReader,
  piece_bytes_max,
} from "./frame.ts"
import { frameWriter } from "./writer.ts"

/** A connection whose other side says nothing for so long is cut off, in milliseconds. */
const silence_ms_max = 15_000
const ping_ms = 5000

/** Bytes that wait for the socket before senders wait too. */
const backlog_bytes_max = 8 * piece_bytes_max

/** Exchanges of one connection at once at most. */
const exchanges_max = 4096

/** The last number of an exchange; then they begin anew. */
const exchange_max = 2 ** 32 - 1

/** Why an exchange is over that went well: whoever still sends in it need not. */
const answered = peerFailure("OK", "the answer is complete")

export type Body = ReadonlyArray<Uint8Array> | AsyncIterable<Uint8Array>

/** What one side said: JSON, and bytes in pieces. `whole` where all of them came at once. */
export interface Said {
  readonly json: unknown
  readonly whole: Uint8Array | undefined
  readonly pieces: () => AsyncGenerator<Uint8Array, void>
}

export interface Question extends Said {
  readonly operation: number
}

/** An answer. `stop` ends it where it is, and who waits for a piece of it hears why. */
export interface Asked extends Said {
  readonly stop: (cause: Error) => void
}

export interface Answer {
  readonly json: unknown
  readonly body?: Body
}

/** Answers a question; what it throws as a PeerFailure goes to the asker with its code. */
export type Answering = (question: Question, signal: AbortSignal) => Promise<Answer>

interface Exchange {
  readonly sending: ReturnType<typeof makeSending>
  readonly receiving: ReturnType<typeof makeReceiving>
  readonly began: (said: Said) => void
  /** The other side took bytes of what was sent to it. */
  readonly moved: () => void
  readonly failed: (cause: Error) => void
}

/** Frames out, frames in, and what is under way, for either side of a connection. */
const makeWire = (socket: Duplex, take: (frame: Frame) => void, ended: (cause: Error) => void) => {
  const read = frameReader()
  const write = frameWriter(socket)
  let heard_at = performance.now()
  let drained: Array<() => void> = []
  let is_over = false

  const over = (cause: Error) => {
    if (is_over) return
    is_over = true
    clearInterval(beat)
    socket.destroy()
    for (const wake of drained) wake()
    ended(cause)
  }
  const send: typeof write = (head, ...payload) => {
    if (!is_over) write(head, ...payload)
  }
  const beat = setInterval(() => {
    if (performance.now() - heard_at > silence_ms_max) {
      over(peerFailure("UNAVAILABLE", "the other node says nothing any more"))
    } else send({ kind: "ping", exchange: 0, operation: 0, is_last: false })
  }, ping_ms)
  beat.unref()

  socket.on("data", (bytes: Buffer) => {
    heard_at = performance.now()
    try {
      for (const frame of read(bytes)) {
        if (frame.kind === "ping") send({ ...frame, kind: "pong" })
        else if (frame.kind !== "pong") take(frame)
      }
    } catch (cause) {
      const broken = causeText(cause)
      over(peerFailure("INTERNAL", broken))
    }
  })
  socket.on("drain", () => {
    const waiting = drained
    drained = []
    for (const wake of waiting) wake()
  })
  const gone = () => over(peerFailure("UNAVAILABLE", "the connection to the node was lost"))
  socket.on("error", gone).on("close", gone).on("end", gone)
  return {
    send,
    over,
    /** Waits while more is written than the other side reads. */
    room: () =>
      socket.writableLength < backlog_bytes_max || is_over
        ? undefined
        : new Promise<void>((resolve) => drained.push(resolve)),
  }
}

type Wire = ReturnType<typeof makeWire>

const reset = (cause: unknown): { readonly code: string; readonly detail: string } =>
  isPeerFailure(cause)
    ? { code: cause.code, detail: cause.message }
    : { code: "INTERNAL", detail: causeText(cause) }

const failureOf = (payload: Uint8Array) => {
  // A reset says these two, as `reset` made them on the other side.
  const { code, detail } = decodeJson(payload).json as { code: string; detail: string }
  return peerFailure(String(code), String(detail))
}

/** At most a piece each, whatever length they come in. */
const cutPieces = function* (bytes: Uint8Array) {
  for (let at = 0; at < bytes.length; at += piece_bytes_max) {
    yield bytes.subarray(at, at + piece_bytes_max)
  }
}

/** Says one side of an exchange: at once where it is short, and else piece by piece. */
const say = async (
  wire: Wire,
  { sending }: Pick<Exchange, "sending">,
  head: { readonly kind: FrameKind; readonly exchange: number; readonly operation: number },
  json: unknown,
  body: Body = [],
) => {
  const said = encodeJson(json)
  const { exchange, operation } = head
  if (Array.isArray(body)) {
    const bytes = body.reduce((sum: number, part: Uint8Array) => sum + part.length, 0)
    if (bytes <= piece_bytes_max && sending.takeNow(bytes)) {
      wire.send({ ...head, is_last: true }, said, ...body)
      return
    }
  }
  wire.send({ ...head, is_last: false }, said)
  for await (const part of body) {
    for (const piece of cutPieces(part)) {
      await sending.take(piece.length)
      await wire.room()
      wire.send({ kind: "data", exchange, operation, is_last: false }, piece)
    }
  }
  wire.send({ kind: "data", exchange, operation, is_last: true })
}

/** The exchanges of a connection, and what a frame means for the one that it names. */
const makeExchanges = (getWire: () => Wire) => {
  const exchanges = new Map<number, Exchange>()

  const add = (exchange: number, parts: Pick<Exchange, "began" | "moved" | "failed">) => {
    const receiving = makeReceiving((bytes) => {
      if (!exchanges.has(exchange)) return
      const payload = Buffer.allocUnsafe(4)
      payload.writeUInt32LE(bytes, 0)
      getWire().send({ kind: "credit", exchange, operation: 0, is_last: false }, payload)
    })
    const added: Exchange = { sending: makeSending(), receiving, ...parts }
    exchanges.set(exchange, added)
    return added
  }
  const end = (exchange: number, cause: Error) => {
    const found = exchanges.get(exchange)
    if (found === undefined) return
    exchanges.delete(exchange)
    found.sending.end(cause)
    found.receiving.end(cause)
    found.failed(cause)
  }
  const begin = (found: Exchange, { payload, is_last }: Frame) => {
    const { json, bytes } = decodeJson(payload)
    const whole = is_last ? bytes : undefined
    found.receiving.push(bytes, is_last)
    found.began({ json, whole, pieces: found.receiving.pieces })
  }
  const take = (frame: Frame) => {
    const found = exchanges.get(frame.exchange)
    // It has ended on this side: what the other had under way is of no more use.
    if (found === undefined) return
    if (frame.kind === "open" || frame.kind === "reply") begin(found, frame)
    else if (frame.kind === "credit") {
      found.sending.grant(Buffer.from(frame.payload).readUInt32LE(0))
      found.moved()
    } else if (frame.kind === "reset") end(frame.exchange, failureOf(frame.payload))
    else if (!found.receiving.push(frame.payload, frame.is_last)) {
      throw new Error("more came than was asked for")
    }
  }
  return {
    add,
    take,
    end,
    remove: (exchange: number) => exchanges.delete(exchange),
    has: (exchange: number) => exchanges.has(exchange),
    count: () => exchanges.size,
    endAll: (cause: Error) => {
      for (const exchange of [...exchanges.keys()]) end(exchange, cause)
    },
  }
}

export interface PeerLink {
  /**
   * Asks, and resolves with the beginning of the answer; its bytes come by `pieces`. Rejects with a
   * PeerFailure: DEADLINE_EXCEEDED where no answer began in time, else what the other side said.
   * The time begins anew whenever the other side takes bytes of the question.
   */
  readonly ask: (
    operation: number,
    json: unknown,
    body: Body | undefined,
    deadline_ms: number,
  ) => Promise<Asked>
  readonly close: () => void
  /** Resolves with the reason once the connection is gone. */
  readonly closed: Promise<Error>
}

/** The asking side of a connection. */
export const askingLink = (socket: Duplex): PeerLink => {
  let last = 0
  let over: Error | undefined
  const { promise: closed, resolve: close } = Promise.withResolvers<Error>()
  const exchanges = makeExchanges(() => wire)
  const wire = makeWire(socket, exchanges.take, (cause) => {
    over = cause
    exchanges.endAll(cause)
    close(cause)
  })
  /** Ends an exchange that the other side still works on. */
  const stop = (exchange: number, cause: unknown) => {
    if (!exchanges.has(exchange)) return
    const { code, detail } = reset(cause)
    const payload = encodeJson({ code, detail })
    wire.send({ kind: "reset", exchange, operation: 0, is_last: true }, payload)
    exchanges.end(exchange, peerFailure(code, detail))
  }
  /** An answer's pieces; who stops before the last of them stops the other side too. */
  const answerOf = async function* (exchange: number, pieces: AsyncGenerator<Uint8Array, void>) {
    try {
      yield* pieces
      exchanges.end(exchange, answered)
    } finally {
      stop(exchange, peerFailure("CANCELLED", "the answer is not wanted any more"))
    }
  }
  return {
    closed,
    close: () => wire.over(peerFailure("UNAVAILABLE", "the connection was closed")),
    ask: (operation, json, body, deadline_ms) => {
      if (over) return Promise.reject(over)
      if (exchanges.count() >= exchanges_max) {
        // No word of the disk over there, for which RESOURCE_EXHAUSTED is kept.
        const detail = "too many requests to the node are under way"
        return Promise.reject(peerFailure("UNAVAILABLE", detail))
      }
      last = last === exchange_max ? 1 : last + 1
      const exchange = last
      return new Promise((resolve, reject) => {
        const late = setTimeout(() => {
          const detail = `the node did not answer within ${deadline_ms} ms`
          stop(exchange, peerFailure("DEADLINE_EXCEEDED", detail))
        }, deadline_ms)
        const opened = exchanges.add(exchange, {
          began: (said) => {
            clearTimeout(late)
            resolve({
              ...said,
              pieces: () => answerOf(exchange, said.pieces()),
              stop: (cause) => stop(exchange, cause),
            })
            if (said.whole !== undefined) exchanges.end(exchange, answered)
          },
          moved: () => void late.refresh(),
          failed: (cause) => {
            clearTimeout(late)
            reject(cause)
          },
        })
        const head = { kind: "open", exchange, operation } as const
        say(wire, opened, head, json, body).catch((cause: unknown) => stop(exchange, cause))
      })
    },
  }
}

/** The answering side of a connection; resolves with the reason once it is gone. */
export const answeringLink = (socket: Duplex, answering: Answering): Promise<Error> => {
  const { promise: closed, resolve: close } = Promise.withResolvers<Error>()
  const exchanges = makeExchanges(() => wire)

  const answer = async (exchange: number, question: Question, opened: () => Exchange) => {
    const { signal, abort } = aborts.get(exchange) ?? newAbort(exchange)
    try {
      const { json, body } = await answering(question, signal)
      await say(wire, opened(), { kind: "reply", exchange, operation: 0 }, json, body)
      exchanges.remove(exchange)
    } catch (cause) {
      const payload = encodeJson(reset(cause))
      wire.send({ kind: "reset", exchange, operation: 0, is_last: true }, payload)
      exchanges.end(exchange, cause instanceof Error ? cause : new Error(String(cause)))
      abort()
    } finally {
      aborts.delete(exchange)
    }
  }
  const aborts = new Map<number, { signal: AbortSignal; abort: () => void }>()
  const newAbort = (exchange: number) => {
    const controller = new AbortController()
    const made = { signal: controller.signal, abort: () => controller.abort() }
    aborts.set(exchange, made)
    return made
  }
  const take = (frame: Frame) => {
    const { kind, exchange, operation } = frame
    if (kind !== "open") return exchanges.take(frame)
    if (exchanges.count() >= exchanges_max) throw new Error("too many questions at once")
    const opened: Exchange = exchanges.add(exchange, {
      began: (said) => void answer(exchange, { ...said, operation }, () => opened),
      moved: () => undefined,
      failed: () => aborts.get(exchange)?.abort(),
    })
    exchanges.take(frame)
  }
  const wire = makeWire(socket, take, (cause) => {
    exchanges.endAll(cause)
    close(cause)
  })
  return closed
}
