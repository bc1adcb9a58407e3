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
import type { BlobId, BlobMeta } from "#schemas/blob-storage/blob.ts"
import type { Place } from "./volume-index.ts"
import type { Extent } from "./volume-record.ts"

/** Memory that belongs to the message: it is handed over with it. */
export type Own = Uint8Array<ArrayBuffer>

/** What a `get` is told; without its bytes these come by a flow of windows. */
export interface ReadingTold {
  readonly meta: BlobMeta
  readonly is_whole: boolean
  bytes: Own
}

/** `flow` is an upload's or a reading's own number, given by whoever asks. */
export type EngineCall =
  | { readonly ask: "put"; readonly order: PutOrder; bytes: Own; readonly at: bigint }
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
  | { readonly ask: "write"; readonly flow: number; bytes: Own }
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

/** Memory of so many bytes is handed over as it is; of less the messages of a turn share one. */
const handed_bytes_min = 32 * 1024

/** Whether nothing else is in that memory; whoever gave it has it no more then. */
const isWhole = (bytes: Uint8Array): bytes is Own =>
  bytes.buffer instanceof ArrayBuffer &&
  bytes.byteLength === bytes.buffer.byteLength &&
  bytes.byteLength >= handed_bytes_min

const lengthOf = (parts: ReadonlyArray<Uint8Array>) =>
  parts.reduce((sum, { length }) => sum + length, 0)

const copyInto = (target: Uint8Array, parts: ReadonlyArray<Uint8Array>) => {
  let at = 0
  for (const part of parts) {
    target.set(part, at)
    at += part.length
  }
}

/** The bytes in memory that is theirs alone, to be handed over. */
const ownBytes = (parts: ReadonlyArray<Uint8Array>): Own => {
  const [only] = parts
  if (only !== undefined && parts.length === 1 && isWhole(only)) return only
  const all = new Uint8Array(lengthOf(parts))
  copyInto(all, parts)
  return all
}

/** What has the bytes of a message: they are put there when it is posted. */
interface Carrier {
  bytes: Own
}

interface Small {
  readonly carrier: Carrier
  readonly parts: ReadonlyArray<Uint8Array>
  readonly bytes: number
}

/** The small ones one behind the other, in memory that all of them share. */
const joined = (small: ReadonlyArray<Small>): ArrayBuffer => {
  const memory = new ArrayBuffer(small.reduce((sum, { bytes }) => sum + bytes, 0))
  let at = 0
  for (const { carrier, parts, bytes } of small) {
    carrier.bytes = new Uint8Array(memory, at, bytes)
    copyInto(carrier.bytes, parts)
    at += bytes
  }
  return memory
}

export const no_bytes: Own = new Uint8Array(0)

/** Gathers messages of a turn of the event loop, and posts them as one, with their bytes. */
export const batches = <Message>(port: Pick<MessagePort, "postMessage">) => {
  let waiting: Array<Message> = []
  let handed: Array<Transferable> = []
  let small: Array<Small> = []
  const post = () => {
    const [messages, memory] = [waiting, handed]
    if (small.length > 0) memory.push(joined(small))
    waiting = []
    handed = []
    small = []
    port.postMessage(messages, memory)
  }
  const carry = (carrier: Carrier, parts: ReadonlyArray<Uint8Array>) => {
    const bytes = lengthOf(parts)
    if (bytes < handed_bytes_min) return void small.push({ carrier, parts, bytes })
    carrier.bytes = ownBytes(parts)
    handed.push(carrier.bytes.buffer)
  }
  return (message: Message, carrier?: Carrier, parts: ReadonlyArray<Uint8Array> = []) => {
    if (waiting.length === 0) setImmediate(post)
    waiting.push(message)
    if (carrier !== undefined) carry(carrier, parts)
  }
}
