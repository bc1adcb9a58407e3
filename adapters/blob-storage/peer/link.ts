/**
 * A persistent connection between two nodes that multiplexes many exchanges.
 *
 * The node that connected sends requests, and the other responds. A request has an operation, JSON
 * and a body; a response has JSON and a body. Large bodies are streamed.
 */
import type { Duplex } from "node:stream"
import { isPeerFailure, peerFailure } from "#cluster"
import { causeText } from "#schemas/cause-text.ts"
import { makeReceiveBuffer, makeSendWindow } from "./exchange.ts"
import {
  decodeJson,
  encodeJson,
  type Frame,
  type FrameKind,
  frameReader,
  piece_bytes_max,
} from "./frame.ts"
import { frameWriter } from "./writer.ts"

/** A connection without any frame for this time is closed, in milliseconds. */
const idle_ms_max = 15_000
const ping_ms = 5000

/** Bytes buffered by the socket before senders must wait. */
const backlog_bytes_max = 8 * piece_bytes_max

/** Maximum number of concurrent exchanges of a connection. */
const exchanges_max = 4096

/** The highest exchange number; then numbering restarts at 1. */
const exchange_max = 2 ** 32 - 1

/** Ends a completed exchange: pending sends are no longer needed. */
const completed = peerFailure("OK", "the response is complete")

export type Body = ReadonlyArray<Uint8Array> | AsyncIterable<Uint8Array>

/** A message: JSON, and a body in pieces. `whole` is the body if it arrived in one frame. */
export interface Message {
  readonly json: unknown
  readonly whole: Uint8Array | undefined
  readonly pieces: () => AsyncGenerator<Uint8Array, void>
}

export interface Request extends Message {
  readonly operation: number
}

/** A response being received. `stop` cancels it, and pending reads reject with the cause. */
export interface ReceivedResponse extends Message {
  readonly stop: (cause: Error) => void
}

export interface Response {
  readonly json: unknown
  readonly body?: Body
}

/** Handles a request. A PeerFailure that it throws is sent to the caller with its code. */
export type Handler = (request: Request, signal: AbortSignal) => Promise<Response>

interface Exchange {
  readonly sending: ReturnType<typeof makeSendWindow>
  readonly receiving: ReturnType<typeof makeReceiveBuffer>
  readonly onBegin: (message: Message) => void
  /** The other side consumed bytes. */
  readonly onProgress: () => void
  readonly onFailure: (cause: Error) => void
}

/** Sends and receives frames for either side of a connection. */
const makeWire = (
  socket: Duplex,
  take: (frame: Frame) => void,
  onClose: (cause: Error) => void,
) => {
  const read = frameReader()
  const write = frameWriter(socket)
  let received_at = performance.now()
  let drain_waiters: Array<() => void> = []
  let is_closed = false

  const close = (cause: Error) => {
    if (is_closed) return
    is_closed = true
    clearInterval(heartbeat)
    socket.destroy()
    for (const wake of drain_waiters) wake()
    onClose(cause)
  }
  const send: typeof write = (head, ...payload) => {
    if (!is_closed) write(head, ...payload)
  }
  const heartbeat = setInterval(() => {
    if (performance.now() - received_at > idle_ms_max) {
      close(peerFailure("UNAVAILABLE", "the other node stopped responding"))
    } else send({ kind: "ping", exchange: 0, operation: 0, is_last: false })
  }, ping_ms)
  heartbeat.unref()

  socket.on("data", (bytes: Buffer) => {
    received_at = performance.now()
    try {
      for (const frame of read(bytes)) {
        if (frame.kind === "ping") send({ ...frame, kind: "pong" })
        else if (frame.kind !== "pong") take(frame)
      }
    } catch (cause) {
      const broken = causeText(cause)
      close(peerFailure("INTERNAL", broken))
    }
  })
  socket.on("drain", () => {
    const waiters = drain_waiters
    drain_waiters = []
    for (const wake of waiters) wake()
  })
  const onLost = () => close(peerFailure("UNAVAILABLE", "the connection to the node was lost"))
  socket.on("error", onLost).on("close", onLost).on("end", onLost)
  return {
    send,
    close,
    /** Waits while the socket's buffer is full. */
    untilDrained: () =>
      socket.writableLength < backlog_bytes_max || is_closed
        ? undefined
        : new Promise<void>((resolve) => drain_waiters.push(resolve)),
  }
}

type Wire = ReturnType<typeof makeWire>

const reset = (cause: unknown): { readonly code: string; readonly detail: string } =>
  isPeerFailure(cause)
    ? { code: cause.code, detail: cause.message }
    : { code: "INTERNAL", detail: causeText(cause) }

const failureOf = (payload: Uint8Array) => {
  // `reset` on the other side encoded these two fields.
  const { code, detail } = decodeJson(payload).json as { code: string; detail: string }
  return peerFailure(String(code), String(detail))
}

/** Splits bytes into pieces of limited size. */
const cutPieces = function* (bytes: Uint8Array) {
  for (let at = 0; at < bytes.length; at += piece_bytes_max) {
    yield bytes.subarray(at, at + piece_bytes_max)
  }
}

/** Sends one side of an exchange: in one frame if it is short, else piece by piece. */
const sendMessage = async (
  wire: Wire,
  { sending }: Pick<Exchange, "sending">,
  head: { readonly kind: FrameKind; readonly exchange: number; readonly operation: number },
  json: unknown,
  body: Body = [],
) => {
  const encoded = encodeJson(json)
  const { exchange, operation } = head
  if (Array.isArray(body)) {
    const bytes = body.reduce((sum: number, part: Uint8Array) => sum + part.length, 0)
    if (bytes <= piece_bytes_max && sending.takeNow(bytes)) {
      wire.send({ ...head, is_last: true }, encoded, ...body)
      return
    }
  }
  wire.send({ ...head, is_last: false }, encoded)
  for await (const part of body) {
    for (const piece of cutPieces(part)) {
      await sending.take(piece.length)
      await wire.untilDrained()
      wire.send({ kind: "data", exchange, operation, is_last: false }, piece)
    }
  }
  wire.send({ kind: "data", exchange, operation, is_last: true })
}

/** The open exchanges of a connection; dispatches frames to them. */
const makeExchanges = (getWire: () => Wire) => {
  const exchanges = new Map<number, Exchange>()

  const add = (exchange: number, parts: Pick<Exchange, "onBegin" | "onProgress" | "onFailure">) => {
    const receiving = makeReceiveBuffer((bytes) => {
      if (!exchanges.has(exchange)) return
      const payload = Buffer.allocUnsafe(4)
      payload.writeUInt32LE(bytes, 0)
      getWire().send({ kind: "credit", exchange, operation: 0, is_last: false }, payload)
    })
    const added: Exchange = { sending: makeSendWindow(), receiving, ...parts }
    exchanges.set(exchange, added)
    return added
  }
  const end = (exchange: number, cause: Error) => {
    const found = exchanges.get(exchange)
    if (found === undefined) return
    exchanges.delete(exchange)
    found.sending.end(cause)
    found.receiving.end(cause)
    found.onFailure(cause)
  }
  const begin = (found: Exchange, { payload, is_last }: Frame) => {
    const { json, bytes } = decodeJson(payload)
    const whole = is_last ? bytes : undefined
    found.receiving.push(bytes, is_last)
    found.onBegin({ json, whole, pieces: found.receiving.pieces })
  }
  const take = (frame: Frame) => {
    const found = exchanges.get(frame.exchange)
    // The exchange has ended on this side; late frames are dropped.
    if (found === undefined) return
    if (frame.kind === "open" || frame.kind === "reply") begin(found, frame)
    else if (frame.kind === "credit") {
      found.sending.grant(Buffer.from(frame.payload).readUInt32LE(0))
      found.onProgress()
    } else if (frame.kind === "reset") end(frame.exchange, failureOf(frame.payload))
    else if (!found.receiving.push(frame.payload, frame.is_last)) {
      throw new Error("the other node exceeded its send window")
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
   * Sends a request, and resolves when the response begins; its body follows in `pieces`. Rejects
   * with a PeerFailure: DEADLINE_EXCEEDED if no response begins in time, else the other side's
   * failure. The deadline restarts whenever the other side consumes bytes of the request.
   */
  readonly call: (
    operation: number,
    json: unknown,
    body: Body | undefined,
    deadline_ms: number,
  ) => Promise<ReceivedResponse>
  readonly close: () => void
  /** Resolves with the reason when the connection is closed. */
  readonly closed: Promise<Error>
}

/** The client side of a connection. */
export const clientLink = (socket: Duplex): PeerLink => {
  let last = 0
  let closed_by: Error | undefined
  const { promise: closed, resolve: close } = Promise.withResolvers<Error>()
  const exchanges = makeExchanges(() => wire)
  const wire = makeWire(socket, exchanges.take, (cause) => {
    closed_by = cause
    exchanges.endAll(cause)
    close(cause)
  })
  /** Cancels an exchange that the other side is still working on. */
  const stop = (exchange: number, cause: unknown) => {
    if (!exchanges.has(exchange)) return
    const { code, detail } = reset(cause)
    const payload = encodeJson({ code, detail })
    wire.send({ kind: "reset", exchange, operation: 0, is_last: true }, payload)
    exchanges.end(exchange, peerFailure(code, detail))
  }
  /** The pieces of a response. Stopping early cancels the exchange. */
  const responsePieces = async function* (
    exchange: number,
    pieces: AsyncGenerator<Uint8Array, void>,
  ) {
    try {
      yield* pieces
      exchanges.end(exchange, completed)
    } finally {
      stop(exchange, peerFailure("CANCELLED", "the response was cancelled"))
    }
  }
  return {
    closed,
    close: () => wire.close(peerFailure("UNAVAILABLE", "the connection was closed")),
    call: (operation, json, body, deadline_ms) => {
      if (closed_by) return Promise.reject(closed_by)
      if (exchanges.count() >= exchanges_max) {
        // Not RESOURCE_EXHAUSTED, which means that the node's disk is full.
        const detail = "too many concurrent requests to the node"
        return Promise.reject(peerFailure("UNAVAILABLE", detail))
      }
      last = last === exchange_max ? 1 : last + 1
      const exchange = last
      return new Promise((resolve, reject) => {
        const timeout = setTimeout(() => {
          const detail = `the node did not respond within ${deadline_ms} ms`
          stop(exchange, peerFailure("DEADLINE_EXCEEDED", detail))
        }, deadline_ms)
        const opened = exchanges.add(exchange, {
          onBegin: (message) => {
            clearTimeout(timeout)
            resolve({
              ...message,
              pieces: () => responsePieces(exchange, message.pieces()),
              stop: (cause) => stop(exchange, cause),
            })
            if (message.whole !== undefined) exchanges.end(exchange, completed)
          },
          onProgress: () => void timeout.refresh(),
          onFailure: (cause) => {
            clearTimeout(timeout)
            reject(cause)
          },
        })
        const head = { kind: "open", exchange, operation } as const
        sendMessage(wire, opened, head, json, body).catch((cause: unknown) => stop(exchange, cause))
      })
    },
  }
}

/** The server side of a connection; resolves with the reason when it is closed. */
export const serverLink = (socket: Duplex, handler: Handler): Promise<Error> => {
  const { promise: closed, resolve: close } = Promise.withResolvers<Error>()
  const exchanges = makeExchanges(() => wire)

  const handle = async (exchange: number, request: Request, opened: () => Exchange) => {
    const { signal, abort } = aborts.get(exchange) ?? newAbort(exchange)
    try {
      const { json, body } = await handler(request, signal)
      await sendMessage(wire, opened(), { kind: "reply", exchange, operation: 0 }, json, body)
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
    const entry = { signal: controller.signal, abort: () => controller.abort() }
    aborts.set(exchange, entry)
    return entry
  }
  const take = (frame: Frame) => {
    const { kind, exchange, operation } = frame
    if (kind !== "open") return exchanges.take(frame)
    if (exchanges.count() >= exchanges_max) throw new Error("too many concurrent requests")
    const opened: Exchange = exchanges.add(exchange, {
      onBegin: (message) => void handle(exchange, { ...message, operation }, () => opened),
      onProgress: () => undefined,
      onFailure: () => aborts.get(exchange)?.abort(),
    })
    exchanges.take(frame)
  }
  const wire = makeWire(socket, take, (cause) => {
    exchanges.endAll(cause)
    close(cause)
  })
  return closed
}
