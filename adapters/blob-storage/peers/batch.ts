/**
 * Batches: several small copies in one request, with one outcome each in the response.
 *
 * The request's JSON lists the labels and origin of each copy; its body has the records of copy.ts,
 * then the bytes of all copies. The response's body has one byte per copy (0 failed, 1 existed, 2
 * stored) and then one record each, empty for failed ones; its JSON lists the failures.
 *
 * Source: document 1 §1 InternalService, whose shapes may change without notice; decision 0152.
 */
import { Schema } from "effect"
import type { CopyOrder, ReceiveResult } from "#actors/blob-storage/ports/node-engine.ts"
import { piece_bytes_max } from "#adapters/blob-storage/peer/frame.ts"
import type { Message, Response } from "#adapters/blob-storage/peer/link.ts"
import { type PeerFailure, peerFailure } from "#cluster"
import { copyBytes } from "#volume"
import { copyBytesIn, decodeCopies, encodeCopies } from "./copy.ts"
import { CopyFields, codec, fieldsOf, heldOf, orderFrom } from "./message.ts"

/** Maximum size of a copy in a batch: larger ones gain nothing. */
export const batched_bytes_max = 64 * 1024

/** Maximum size of a batch, so that it fits in one frame. */
export const batch_bytes_max = piece_bytes_max

/** Maximum number of copies: with 4 KiB each they fill a frame, and their JSON fits too. */
export const batch_copies_max = 250

/** Maximum JSON size of a batch, a little below the limit of a frame. */
export const batch_json_bytes_max = 240 * 1024

/** JSON overhead of a copy, not counting its strings. */
const json_bytes_each = 100
/** A character takes at most six bytes of JSON: `\u0000`. */
const json_bytes_of_character = 6

/** Upper bound of the copy's JSON size in bytes. */
export const jsonBytesMax = ({ labels, origin }: CopyOrder) => {
  const { actor, request_id, correlation_id } = origin
  let characters = actor.length + request_id.length + correlation_id.length
  for (const key in labels) characters += key.length + (labels[key]?.length ?? 0) + 1
  return json_bytes_each + json_bytes_of_character * characters
}

const batch = codec(Schema.Array(CopyFields).check(Schema.isMaxLength(batch_copies_max)))

const Failed = Schema.Struct({ at: Schema.Int, code: Schema.String, detail: Schema.String })
const failures = codec(Schema.Array(Failed).check(Schema.isMaxLength(batch_copies_max)))

export interface SentCopy {
  readonly order: CopyOrder
  readonly bytes: ReadonlyArray<Uint8Array>
  /** The total size. */
  readonly size: number
}

export interface ReceivedCopy {
  readonly order: CopyOrder
  readonly bytes: Uint8Array
}

/** Encodes a batch within the limits above. */
export const encodeBatch = (copies: ReadonlyArray<SentCopy>, version: number) => {
  const records = copies.map(({ order }) => heldOf(order))
  return {
    json: batch.encode(copies.map(({ order }) => fieldsOf(order))),
    body: [encodeCopies(records, version), ...copies.flatMap(({ bytes }) => bytes)],
  }
}

/** Decodes a batch. Throws a PeerFailure, INTERNAL, if it is incomplete. */
export const decodeBatch = (
  { json, whole }: Message,
  version: number,
): ReadonlyArray<ReceivedCopy> => {
  const fields = batch.decode(json)
  const records_bytes = fields.length * copyBytesIn(version)
  if (whole === undefined || whole.length < records_bytes) {
    throw peerFailure("INTERNAL", "a batch of copies arrived in several frames")
  }
  const records = decodeCopies(whole.subarray(0, records_bytes), version)
  let end = records_bytes
  const copies = fields.map((each, n) => {
    const order = orderFrom(records[n], each)
    const begin = end
    end += copyBytes(order.size, order.shard)
    return { order, bytes: whole.subarray(begin, end) }
  })
  if (end === whole.length) return copies
  throw peerFailure("INTERNAL", `a batch of ${end} bytes arrived with ${whole.length}`)
}

const [failed, existed, stored] = [0, 1, 2] as const

/** Encodes the outcomes in the order of the request. */
export const encodeOutcomes = (
  outcomes: ReadonlyArray<ReceiveResult | PeerFailure>,
  version: number,
): Response => {
  const reasons = outcomes.flatMap((outcome, at) =>
    "copy" in outcome ? [] : [{ at, code: outcome.code, detail: outcome.message }],
  )
  const flags = Uint8Array.from(outcomes, (outcome) =>
    "copy" in outcome ? (outcome.created ? stored : existed) : failed,
  )
  const copies = outcomes.map((outcome) => ("copy" in outcome ? outcome.copy : undefined))
  return { json: failures.encode(reasons), body: [flags, encodeCopies(copies, version)] }
}

/** Decodes `count` outcomes. Throws a PeerFailure, INTERNAL, if the response does not match. */
export const decodeOutcomes = (
  { json, whole }: Message,
  count: number,
  version: number,
): ReadonlyArray<ReceiveResult | PeerFailure> => {
  const reasons = new Map(failures.decode(json).map((each) => [each.at, each]))
  if (whole?.length !== count * (1 + copyBytesIn(version))) {
    throw peerFailure("INTERNAL", `the response does not match the ${count} copies sent`)
  }
  const copies = decodeCopies(whole.subarray(count), version)
  return Array.from(whole.subarray(0, count), (flag, at): ReceiveResult | PeerFailure => {
    const copy = copies[at]
    if (copy !== undefined && copy.kind !== "tombstone" && flag !== failed) {
      return { copy, created: flag === stored }
    }
    const { code, detail } = reasons.get(at) ?? {
      code: "INTERNAL",
      detail: "the node gave no reason",
    }
    return peerFailure(code, detail)
  })
}
