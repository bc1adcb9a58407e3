/**
 * What a thread that answers requests for blobs says to the process's own, which has the engine,
 * and what it is told. Messages go in batches: a thread wakes up once for all of a turn.
 *
 * Source: decision 0168.
 */
import type { MessagePort, Transferable } from "node:worker_threads"
import type { BlobOrigin } from "#actors/blob-storage/blob-admission.ts"
import type { PutOrder } from "#actors/blob-storage/blob-engine.ts"
import type { BlobFault } from "#actors/blob-storage/blob-fault.ts"
import type { BlobRange, BlobScope } from "#actors/blob-storage/blob-store.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import type { Place } from "./volume-index.ts"
import type { Extent } from "./volume-record.ts"

/** Memory that belongs to the message: it is handed over with it. */
export type Own = Uint8Array<ArrayBuffer>

/** `flow` is an upload's or a reading's own number, given by whoever asks. */
export type EngineCall =
  | { readonly ask: "put"; readonly order: PutOrder; readonly bytes: Own; readonly at: bigint }
  /** What is more than one window begins a flow of them. */
  | {
      readonly ask: "get"
      readonly flow: number
      readonly id: BlobId
      readonly range: BlobRange
      readonly at: bigint
    }
  | { readonly ask: "stat"; readonly id: BlobId; readonly scope: BlobScope | undefined }
  | {
      readonly ask: "delete"
      readonly id: BlobId
      readonly origin: BlobOrigin
      readonly at: bigint
      readonly scope: BlobScope | undefined
    }
  | {
      readonly ask: "upload"
      readonly flow: number
      readonly order: PutOrder
      readonly size: number | undefined
    }
  | { readonly ask: "write"; readonly flow: number; readonly bytes: Own }
  | {
      readonly ask: "finish"
      readonly flow: number
      readonly order: PutOrder
      readonly at: bigint
    }
  | { readonly ask: "abort"; readonly flow: number }
  /** The next window of a flow, and its end. */
  | { readonly ask: "next"; readonly flow: number }
  | { readonly ask: "close"; readonly flow: number }
  /** Keeps what a record names from being used anew, until the flow is let go. */
  | {
      readonly ask: "pin"
      readonly flow: number
      readonly id: BlobId
      readonly place: Place
      readonly extents: ReadonlyArray<Extent>
    }
  | { readonly ask: "unpin"; readonly flow: number }
  | { readonly ask: "active" }

export interface Asked {
  readonly number: number
  readonly call: EngineCall
}

export type Told =
  | { readonly number: number; readonly answer: unknown }
  | { readonly number: number; readonly fault: BlobFault }

/**
 * The bytes in memory of their own, to be handed over: the same where nothing else is in it, which
 * whoever gave them has no more then.
 */
export const ownBytes = (parts: ReadonlyArray<Uint8Array>): Own => {
  const [only] = parts
  if (only !== undefined && parts.length === 1 && isWhole(only)) return only
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

/** Smaller memory costs less to copy than to hand over, and may be shared. */
const handed_bytes_min = 32 * 1024

const isWhole = (bytes: Uint8Array): bytes is Own =>
  bytes.buffer instanceof ArrayBuffer &&
  bytes.byteLength === bytes.buffer.byteLength &&
  bytes.byteLength >= handed_bytes_min

/** Gathers messages of a turn of the event loop, and posts them as one. */
export const batches = <Message>(port: Pick<MessagePort, "postMessage">) => {
  let waiting: Array<Message> = []
  let handed: Array<Transferable> = []
  const post = () => {
    const [messages, memory] = [waiting, handed]
    waiting = []
    handed = []
    port.postMessage(messages, memory)
  }
  return (message: Message, memory?: ArrayBuffer) => {
    if (waiting.length === 0) setImmediate(post)
    waiting.push(message)
    if (memory !== undefined) handed.push(memory)
  }
}
