/**
 * Many small copies as one question, and what came of each as one answer.
 *
 * The question's JSON is a list of what is said of each copy beside its record; its bytes are the
 * records of peers-copy.ts, and then the copies, one behind the other. The answer's bytes are one
 * for each copy (0 failed, 1 was here, 2 was stored) and then as many records, those of copies that
 * failed empty; its JSON is a list of why.
 *
 * Source: document 1 §1 InternalService, whose shapes may change without notice; decision 0152.
 */
import { Schema } from "effect"
import type { CopyOrder, Received } from "#actors/blob-storage/ports/node-engine.ts"
import { piece_bytes_max } from "#adapters/blob-storage/peer/frame.ts"
import type { Answer, Said } from "#adapters/blob-storage/peer/link.ts"
import { type PeerFailure, peerFailure } from "#cluster"
import { copyBytes } from "#volume"
import { copyBytesIn, decodeCopies, encodeCopies } from "./copy.ts"
import { coded, heldOf, orderFrom, SaidOfCopy, saidOf } from "./message.ts"

/** A copy of more bytes goes alone: what a batch saves is nothing to it. */
export const batched_bytes_max = 64 * 1024

/** Bytes of one batch at most, so that it is one frame. */
export const batch_bytes_max = piece_bytes_max

/** As many copies of 4 KiB are a frame, and their JSON fits into one too. */
export const batch_copies_max = 250

/** JSON of one batch at most, a little less than a frame may have. */
export const batch_json_bytes_max = 240 * 1024

/** What is named around the texts of a copy. */
const json_bytes_each = 100
/** A character of a text is six bytes of JSON at most: `\u0000`. */
const json_bytes_of_character = 6

/** No JSON of this copy is longer, in bytes. */
export const jsonBytesMax = ({ labels, origin }: CopyOrder) => {
  const { actor, request_id, correlation_id } = origin
  let characters = actor.length + request_id.length + correlation_id.length
  for (const key in labels) characters += key.length + (labels[key]?.length ?? 0) + 1
  return json_bytes_each + json_bytes_of_character * characters
}

const batch = coded(Schema.Array(SaidOfCopy).check(Schema.isMaxLength(batch_copies_max)))

const Failed = Schema.Struct({ at: Schema.Int, code: Schema.String, detail: Schema.String })
const failures = coded(Schema.Array(Failed).check(Schema.isMaxLength(batch_copies_max)))

export interface CopySent {
  readonly order: CopyOrder
  readonly bytes: ReadonlyArray<Uint8Array>
  /** How many they are. */
  readonly size: number
}

export interface CopyCame {
  readonly order: CopyOrder
  readonly bytes: Uint8Array
}

/** The question that sends these, of at most the bounds above. */
export const encodeBatch = (copies: ReadonlyArray<CopySent>, version: number) => {
  const records = copies.map(({ order }) => heldOf(order))
  return {
    json: batch.encode(copies.map(({ order }) => saidOf(order))),
    body: [encodeCopies(records, version), ...copies.flatMap(({ bytes }) => bytes)],
  }
}

/** The copies that a question sends. Throws a PeerFailure, INTERNAL, where they are not whole. */
export const decodeBatch = ({ json, whole }: Said, version: number): ReadonlyArray<CopyCame> => {
  const said = batch.decode(json)
  const records_bytes = said.length * copyBytesIn(version)
  if (whole === undefined || whole.length < records_bytes) {
    throw peerFailure("INTERNAL", "copies that go together came in pieces")
  }
  const records = decodeCopies(whole.subarray(0, records_bytes), version)
  let end = records_bytes
  const copies = said.map((each, n) => {
    const order = orderFrom(records[n], each)
    const begin = end
    end += copyBytes(order.size, order.shard)
    return { order, bytes: whole.subarray(begin, end) }
  })
  if (end === whole.length) return copies
  throw peerFailure("INTERNAL", `copies of ${end} bytes came as ${whole.length}`)
}

const [failed, was_here, was_stored] = [0, 1, 2] as const

/** What came of each, in the order of the question. */
export const encodeOutcomes = (
  outcomes: ReadonlyArray<Received | PeerFailure>,
  version: number,
): Answer => {
  const why = outcomes.flatMap((outcome, at) =>
    "copy" in outcome ? [] : [{ at, code: outcome.code, detail: outcome.message }],
  )
  const flags = Uint8Array.from(outcomes, (outcome) =>
    "copy" in outcome ? (outcome.created ? was_stored : was_here) : failed,
  )
  const copies = outcomes.map((outcome) => ("copy" in outcome ? outcome.copy : undefined))
  return { json: failures.encode(why), body: [flags, encodeCopies(copies, version)] }
}

/** What came of each of so many. Throws a PeerFailure, INTERNAL, where the answer is not theirs. */
export const decodeOutcomes = (
  { json, whole }: Said,
  count: number,
  version: number,
): ReadonlyArray<Received | PeerFailure> => {
  const why = new Map(failures.decode(json).map((each) => [each.at, each]))
  if (whole?.length !== count * (1 + copyBytesIn(version))) {
    throw peerFailure("INTERNAL", `a node does not answer for the ${count} copies that it was sent`)
  }
  const copies = decodeCopies(whole.subarray(count), version)
  return Array.from(whole.subarray(0, count), (flag, at): Received | PeerFailure => {
    const copy = copies[at]
    if (copy !== undefined && copy.kind !== "tombstone" && flag !== failed) {
      return { copy, created: flag === was_stored }
    }
    const { code, detail } = why.get(at) ?? {
      code: "INTERNAL",
      detail: "the node does not say why",
    }
    return peerFailure(code, detail)
  })
}
