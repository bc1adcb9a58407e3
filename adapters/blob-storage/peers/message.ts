/**
 * The operations of InternalService, and the JSON of their requests and responses.
 *
 * Source: document 1 §1 InternalService, whose shapes may change without notice.
 */
import { Schema } from "effect"
import type { Copy, CopyOrder, HeldCopy } from "#actors/blob-storage/ports/node-engine.ts"
import type { BlobOrigin } from "#actors/blob-storage/ports/origin.ts"
import type { Reason } from "#actors/blob-storage/ports/peers.ts"
import { peerFailure } from "#cluster"
import { BlobId, BlobLabels } from "#schemas/blob-storage/blob.ts"
import { putAtIn } from "#volume"
import { decodeHeld, encodeCopies, heldCopy } from "./copy.ts"

/** The six operations of document 1, and additional ones. Append new ones only. */
export const operations = {
  replicate: 1,
  replicate_stream: 2,
  store_shard: 3,
  migrate: 4,
  delete_internal: 5,
  fetch_shard: 6,
  take_back: 7,
  have: 8,
  copies: 9,
  keeps: 10,
  renew: 11,
  ring: 12,
  replicate_many: 13,
} as const

/** An internal name, a request id or a caller's name, which is the longest. */
const Text = Schema.String.check(Schema.isMaxLength(512))

const Origin = Schema.Struct({ actor: Text, request_id: Text, correlation_id: Text })

/** Unix nanoseconds as a string, because JSON numbers are not exact enough. */
const Nanoseconds = Schema.BigIntFromString.check(
  Schema.isBetweenBigInt({ minimum: 0n, maximum: 2n ** 63n - 1n }),
)

const Bytes = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Place = Schema.String.check(Schema.isPattern(/^(?:[0-9a-f]{32})?$/))

const copy_metadata = { labels: BlobLabels, origin: Origin }
/** `copy` is a record of copy.ts in base64. */
const SendRequest = Schema.Struct({ copy: Text, ...copy_metadata })
/** The fields of a copy except its record. */
export const CopyFields = Schema.Struct({
  ...copy_metadata,
  labels: Schema.optionalKey(BlobLabels),
})
const DeleteInternal = Schema.Struct({ id: BlobId, origin: Origin, deleted_at: Nanoseconds })
const TakeBack = Schema.Struct({ id: BlobId, created_at: Nanoseconds })
const Renew = Schema.Struct({ id: BlobId, put_at: Nanoseconds })
const FetchShard = Schema.Struct({
  id: BlobId,
  offset: Schema.optionalKey(Bytes),
  length: Schema.optionalKey(Bytes),
})
const CopiesRequest = Schema.Struct({
  after_id: Place,
  until_id: Place,
  limit: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 10_000 })),
})
const KeepsRequest = Schema.Struct({
  ring_version: Bytes,
  /** Missing in requests of protocol version 1. */
  is_read: Schema.optionalKey(Schema.Boolean),
})
const Ring = Schema.Struct({ ring_version: Bytes })
const Stored = Schema.Struct({ created: Schema.Boolean })
const Fetched = Schema.Struct({ labels: BlobLabels, modified_at: Nanoseconds, copy: Text })
const Page = Schema.Struct({ next: Schema.optionalKey(BlobId) })

/** A codec for JSON messages; invalid ones throw a PeerFailure, INTERNAL. */
export const codec = <A, I>(schema: Schema.Codec<A, I>) => {
  const decode = Schema.decodeUnknownOption(schema)
  return {
    encode: Schema.encodeSync(schema),
    decode: (json: unknown): A => {
      const found = decode(json)
      if (found._tag === "Some") return found.value
      throw peerFailure("INTERNAL", "invalid message from another node")
    },
  }
}

export const messages = {
  delete_internal: codec(DeleteInternal),
  take_back: codec(TakeBack),
  renew: codec(Renew),
  fetch_shard: codec(FetchShard),
  copies: codec(CopiesRequest),
  keeps: codec(KeepsRequest),
  ring: codec(Ring),
  stored: codec(Stored),
  fetched: codec(Fetched),
  page: codec(Page),
}

const send_request = codec(SendRequest)

/** The record of a copy to send. */
export const heldOf = ({ labels: _, origin: __, ...order }: CopyOrder): HeldCopy => ({
  ...order,
  kind: order.shard === undefined ? "whole" : "shard",
  put_at: putAtIn(order),
  stored_at: 0n,
})

const originOf = ({ actor, request_id, correlation_id }: BlobOrigin) => ({
  actor,
  request_id,
  correlation_id,
})

export const fieldsOf = ({ labels, origin }: CopyOrder): typeof CopyFields.Type => ({
  ...(Object.keys(labels).length > 0 && { labels }),
  origin: originOf(origin),
})

export const orderFrom = (
  copy: Copy | undefined,
  { labels = {}, origin }: typeof CopyFields.Type,
): CopyOrder => {
  const { id, checksum, size, policy, created_at, put_at, shard } = heldCopy(copy)
  return { id, checksum, size, policy, created_at, put_at, shard, labels, origin }
}

export const encodeOrder = (order: CopyOrder, version: number): unknown => ({
  copy: encodeCopies([heldOf(order)], version).toString("base64"),
  labels: order.labels,
  origin: originOf(order.origin),
})

export const decodeOrder = (json: unknown, version: number): CopyOrder => {
  const { copy, labels, origin } = send_request.decode(json)
  return orderFrom(decodeHeld(Buffer.from(copy, "base64"), version), { labels, origin })
}

/** The operation that sends a copy. All have the same effect, but each is counted separately. */
export const operationOf = ({ shard }: CopyOrder, is_stream: boolean, reason: Reason) => {
  if (reason === "migrate") return operations.migrate
  if (shard !== undefined) return operations.store_shard
  return is_stream ? operations.replicate_stream : operations.replicate
}
