/**
 * What a thread that answers requests for blobs says to the process's own, which has the engine,
 * and what it is told. Messages go in batches: a thread wakes up once for all of a turn.
 *
 * Source: decision 0168.
 */
import type { MessagePort, Transferable } from "node:worker_threads"
import type { BlobOrigin } from "#actors/blob-storage/blobs/admission.ts"
import type { PutOrder } from "#actors/blob-storage/blobs/engine.ts"
import type { BlobFault } from "#actors/blob-storage/blobs/fault.ts"
import type { BlobRange, BlobScope } from "#actors/blob-storage/blobs/store.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import type { Extent, Place } from "#volume"

/** Memory that belongs to the message: it is handed over with it. */
export type Own = Uint8Array<ArrayBuffer>

/**
 * `flow` is an upload's or a reading's own number, given by whoever asks. Bytes go beside it: those
 * of a put, and of a write; a get and the next window are told theirs.
 */
export type EngineCall =
  | { readonly ask: "put"; readonly order: PutOrder; readonly at: bigint }
  /** What is told without bytes is more than one window, and begins a flow of them. */
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
  | { readonly ask: "write"; readonly flow: number }
  | {
      readonly ask: "finish"
      readonly flow: number
      readonly order: PutOrder
      readonly at: bigint
    }
  | { readonly ask: "abort"; readonly flow: number }
  /** The next window of a flow, none behind the last; and its end. */
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

/** What may have bytes beside it: they are put there as it is posted. */
interface Carrier {
  bytes?: Own
}

export interface Asked extends Carrier {
  readonly number: number
  readonly call: EngineCall
}

export interface Answered extends Carrier {
  readonly number: number
  readonly answer: unknown
}

export type Told = Answered | { readonly number: number; readonly fault: BlobFault }

/** Memory of so many bytes is handed over as it is; of less the messages of a turn share one. */
const handed_bytes_min = 32 * 1024

/** Whether nothing else is in that memory; whoever gave it has it no more then. */
const isAlone = (bytes: Uint8Array): bytes is Own =>
  bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength

const lengthOf = (parts: ReadonlyArray<Uint8Array>) =>
  parts.reduce((sum, { length }) => sum + length, 0)

/** The parts one behind the other, in memory from there on. */
const copied = (parts: ReadonlyArray<Uint8Array>, memory: ArrayBuffer, from = 0): Own => {
  const bytes = new Uint8Array(memory, from, lengthOf(parts))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

/** The bytes in memory that is theirs alone, to be handed over. */
const ownBytes = (parts: ReadonlyArray<Uint8Array>): Own => {
  const [only] = parts
  if (only !== undefined && parts.length === 1 && isAlone(only)) return only
  return copied(parts, new ArrayBuffer(lengthOf(parts)))
}

interface Small {
  readonly carrier: Carrier
  readonly parts: ReadonlyArray<Uint8Array>
}

/** The small ones one behind the other, in memory that all of them share. */
const joined = (small: ReadonlyArray<Small>): ArrayBuffer => {
  const memory = new ArrayBuffer(small.reduce((sum, { parts }) => sum + lengthOf(parts), 0))
  let at = 0
  for (const { carrier, parts } of small) {
    carrier.bytes = copied(parts, memory, at)
    at += carrier.bytes.length
  }
  return memory
}

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
  const add = (message: Message) => {
    if (waiting.length === 0) setImmediate(post)
    waiting.push(message)
  }
  /** Adds one with these bytes. */
  const carry = (message: Message & Carrier, parts: ReadonlyArray<Uint8Array>) => {
    add(message)
    if (lengthOf(parts) < handed_bytes_min) return void small.push({ carrier: message, parts })
    message.bytes = ownBytes(parts)
    handed.push(message.bytes.buffer)
  }
  return { add, carry }
}
