/**
 * A blob: content-addressed bytes and their metadata, and the messages of BlobService.
 *
 * Source: document 1 §2 Resources, §4 BlobService, §8 Limits.
 */
import { Schema, SchemaGetter } from "effect"

/** Document 1 §2 BlobID: exactly 16 bytes. */
export const blob_id_bytes = 16
/** Document 1 §8: the page size when limit is omitted, zero or negative. */
export const list_limit_default = 100
/** DECISIONS, document 1, list: higher limits are clamped. */
export const list_limit_max = 10_000
/** DECISIONS, document 1, framing: one line of a stream. */
export const stream_line_bytes_max = 16 * 1024 * 1024
/**
 * DECISIONS, document 1, framing: the data of one GetChunk, fifteen checksummed chunks of 64 KiB.
 */
export const get_chunk_bytes_max = 983_040
/** DECISIONS, document 1, limits not shown: size of a JSON body. */
export const json_body_bytes_max = 64 * 1024 * 1024
/** DECISIONS, document 1, limits not shown: size of a streamed blob, 5 TiB. */
export const blob_bytes_max = 5 * 1024 ** 4
/** DECISIONS, document 1, limits not shown: number of labels of a blob. */
export const labels_max = 64
/** DECISIONS, document 1, limits not shown: UTF-8 bytes of all keys and values of a blob. */
export const labels_bytes_max = 16 * 1024
/** Our cursors are shorter; longer ones are invalid and are rejected without decoding. */
export const cursor_characters_max = 256

const hexId = /^[0-9a-f]{32}$/u
const anyCaseHexId = /^[0-9a-fA-F]{32}$/
// Sixteen bytes are 22 base64 digits, the last of which carries two bits; padding is optional.
const base64Id = /^(?:[A-Za-z0-9+/]{21}|[A-Za-z0-9_-]{21})[AQgw](?:==)?$/

/** A blob's identifier inside the system: its 16 bytes as 32 lower-case hex digits. */
export const BlobId = Schema.String.check(Schema.isPattern(hexId)).pipe(Schema.brand("BlobId"))
export type BlobId = typeof BlobId.Type

const standardBase64 = (text: string) => {
  const digits = text.replaceAll("-", "+").replaceAll("_", "/").replace(/=+$/, "")
  return digits + "=".repeat((4 - (digits.length % 4)) % 4)
}

const hexOf = (text: string) => (anyCaseHexId.test(text) ? text.toLowerCase() : hexOfBase64(text))

const hex_of_byte = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"))

/** Converts base64, as in BlobMeta's checksum, to lower-case hex. */
export const hexOfBase64 = (text: string) => {
  const bytes = atob(standardBase64(text))
  let hex = ""
  for (let at = 0; at < bytes.length; at++) hex += hex_of_byte[bytes.charCodeAt(at)]
  return hex
}

const base64Of = (hex: string) =>
  btoa(hex.replace(/../g, (pair) => String.fromCharCode(Number.parseInt(pair, 16))))

/** Both expressions above, for the API reference. */
const id_pattern = "^([0-9a-fA-F]{32}|([A-Za-z0-9+/]{21}|[A-Za-z0-9_-]{21})[AQgw](==)?)$"

const IdText = Schema.String.check(
  Schema.makeFilter<string>(
    (text) => anyCaseHexId.test(text) || base64Id.test(text) || "the ID must be exactly 16 bytes",
    { toJsonSchema: () => ({ pattern: id_pattern }) },
  ),
)

/** An identifier in a path or a bare string: hex, base64 or base64url; decoded to hex. */
export const BlobIdFromText = IdText.pipe(
  Schema.decodeTo(BlobId, {
    decode: SchemaGetter.transform(hexOf),
    encode: SchemaGetter.passthrough(),
  }),
).annotate({
  description: "The blob's ID: 16 bytes in hex (32 digits), base64 or base64url.",
})

const IdMessage = Schema.Struct({
  id: IdText.annotateKey({ description: "16 bytes in base64. Requests may also use hex." }),
})

/** An identifier in a field of type BlobID: `{"id": base64}`; a bare string is also accepted. */
export const BlobIdMessage = Schema.Union([IdMessage, IdText])
  .pipe(
    Schema.decodeTo(BlobId, {
      decode: SchemaGetter.transform((message) =>
        hexOf(typeof message === "string" ? message : message.id),
      ),
      encode: SchemaGetter.transform((hex) => ({ id: base64Of(hex) })),
    }),
  )
  .annotate({
    description: "The blob's ID. Responses contain an object; requests may also use a string.",
    respondedAs: {
      title: "BlobId",
      type: "object",
      properties: {
        id: {
          type: "string",
          pattern: "^[A-Za-z0-9+/]{21}[AQgw]==$",
          description: "16 bytes in base64.",
        },
      },
      required: ["id"],
    },
  })

/**
 * Document 1's int64 and uint64: a bigint inside, a JSON integer or a numeric string on input. It
 * is encoded as a bigint, which the gateway writes as an exact integer or as a string.
 */
export const Int64 = Schema.Union([
  Schema.BigInt,
  // No bounds in the OpenAPI document: exact integers beyond 2^53 are bigints.
  Schema.Number.check(Schema.makeFilter(Number.isSafeInteger, { expected: "an integer" })),
  Schema.String.check(Schema.isPattern(/^-?\d{1,20}$/u)),
]).pipe(
  Schema.decodeTo(
    Schema.BigInt.check(
      Schema.isBetweenBigInt(
        { minimum: -(2n ** 63n), maximum: 2n ** 64n - 1n },
        { expected: "a 64-bit integer" },
      ),
    ),
    {
      decode: SchemaGetter.transform((value) => BigInt(value)),
      encode: SchemaGetter.transform((value: bigint) => value),
    },
  ),
)

const int64_max = 2n ** 63n - 1n
const uint64_max = 2n ** 64n - 1n

/** The largest number that is not above an integer of 64 bits, of which 53 bits are exact. */
const numberBelow = (integer: bigint) => {
  const nearest = Number(integer)
  return BigInt(nearest) <= integer ? nearest : Number(integer - (integer >> 53n))
}

/**
 * A 64-bit integer in the API reference. Its bounds are rounded to what a number can hold: down in
 * requests, and up in responses.
 */
const documented64 = (minimum: bigint, maximum: bigint) => {
  const integer = { type: "integer", minimum: Number(minimum), maximum: Number(maximum) }
  const pattern = minimum < 0n ? "^-?[0-9]{1,18}$" : "^[0-9]{1,19}$"
  return {
    documentedAs: {
      anyOf: [
        { ...integer, maximum: numberBelow(maximum) },
        { type: "string", pattern },
      ],
    },
    respondedAs: { ...integer, format: "int64" },
  }
}

/** Document 1's uint64 in a message. */
export const Uint64 = Int64.check(
  Schema.isBetweenBigInt(
    { minimum: 0n, maximum: uint64_max },
    { expected: "an integer from 0 to 2^64 - 1" },
  ),
).annotate(documented64(0n, uint64_max))

/** Document 1's int64 in a message. */
export const SignedInt64 = Int64.check(
  Schema.isBetweenBigInt(
    { minimum: -int64_max - 1n, maximum: int64_max },
    { expected: "an integer from -2^63 to 2^63 - 1" },
  ),
).annotate(documented64(-int64_max - 1n, int64_max))

/** A size, count or time of a blob, which is never negative. */
const Amount = Int64.annotate(documented64(0n, int64_max))

// The unused bits of the last digit are zero.
const base64_pattern =
  "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"

/**
 * Bytes in a JSON body: either base64 alphabet, with or without padding, on input; padded base64 on
 * output.
 */
export const Bytes = Schema.String.pipe(
  Schema.decodeTo(Schema.Uint8ArrayFromBase64, {
    decode: SchemaGetter.transform(standardBase64),
    encode: SchemaGetter.passthrough(),
  }),
).annotate({
  documentedAs: { type: "string", contentEncoding: "base64", pattern: base64_pattern },
})

export const ReplicationPolicy = Schema.Literals([
  "REPLICATION_POLICY_UNSPECIFIED",
  "REPLICATION_POLICY_NONE",
  "REPLICATION_POLICY_REPLICA2",
  "REPLICATION_POLICY_REPLICA3",
  "REPLICATION_POLICY_EC42",
  "REPLICATION_POLICY_EC82",
]).annotate({
  description:
    "How the blob is replicated. `NONE`: one copy. `REPLICA2`, `REPLICA3`: 2 or 3 full copies " +
    "on different nodes. `EC42`, `EC82`: shards of an erasure code, 4 data and 2 parity " +
    "(needs 6 nodes) or 8 and 2 (needs 10). `UNSPECIFIED`, the default, is stored as `REPLICA3`. " +
    "The policy of a stored blob cannot be changed.",
})
export type ReplicationPolicy = typeof ReplicationPolicy.Type

/** UNSPECIFIED is handled, stored and shown as REPLICA3. Source: document 1 §2; DECISIONS. */
export const storedPolicy = (policy: ReplicationPolicy = "REPLICATION_POLICY_UNSPECIFIED") =>
  policy === "REPLICATION_POLICY_UNSPECIFIED" ? "REPLICATION_POLICY_REPLICA3" : policy

const utf8 = new TextEncoder()

const withinLabelLimits = (labels: Readonly<Record<string, string>>) => {
  const pairs = Object.entries(labels)
  if (pairs.length > labels_max) return `Expected at most ${labels_max} labels`
  const bytes = pairs.reduce(
    (sum, [key, value]) => sum + utf8.encode(key).length + utf8.encode(value).length,
    0,
  )
  return (
    bytes <= labels_bytes_max || `Expected labels of at most ${labels_bytes_max} bytes in total`
  )
}

export const BlobLabels = Schema.Record(Schema.String, Schema.String)
  .check(Schema.makeFilter<Readonly<Record<string, string>>>(withinLabelLimits))
  .annotate({
    documentedAs: {
      type: "object",
      additionalProperties: { type: "string" },
      maxProperties: labels_max,
    },
    description:
      `Names and values of your choice: at most ${labels_max} pairs, and ` +
      `${labels_bytes_max} bytes of UTF-8 in total. They are set when the blob is stored.`,
  })
export type BlobLabels = typeof BlobLabels.Type

/** Metadata of a stored blob. Times are Unix nanoseconds; the checksum is BLAKE3-256 in base64. */
export const BlobMeta = Schema.Struct({
  size: Amount.annotateKey({ description: "Size of the blob in bytes." }),
  created_at: Amount.annotateKey({
    description: "When the blob was stored, in nanoseconds since 1970-01-01 UTC.",
  }),
  modified_at: Amount.annotateKey({ description: "Always equal to `created_at`." }),
  checksum: Schema.String.annotate({
    description: "BLAKE3-256 of the bytes, in base64. Its first 16 bytes are the blob's ID.",
  }),
  labels: BlobLabels,
  policy: ReplicationPolicy,
}).annotate({ identifier: "BlobMeta", description: "Metadata of a stored blob." })
export type BlobMeta = typeof BlobMeta.Type

export const PutRequest = Schema.Struct({
  data: Bytes.annotateKey({
    description: "The bytes in base64. An empty string is the empty blob.",
  }),
  policy: Schema.optionalKey(ReplicationPolicy),
  labels: Schema.optionalKey(BlobLabels),
}).annotate({ identifier: "PutRequest" })
export type PutRequest = typeof PutRequest.Type

/** One message of a put stream. `labels` in the first one is our extension of document 1. */
export const PutChunk = Schema.Struct({
  id: Schema.optionalKey(BlobIdMessage),
  data: Bytes.annotateKey({ description: "The bytes of this chunk in base64." }),
  final: Schema.Boolean.annotateKey({ description: "True for the last chunk." }),
  policy: Schema.optionalKey(ReplicationPolicy),
  labels: Schema.optionalKey(BlobLabels),
}).annotate({ identifier: "PutChunk" })
export type PutChunk = typeof PutChunk.Type

/**
 * Where a put is durable; an extension of the document. `cursor` is the fact's number in the
 * journal of `node_id`, and so in the log; absent if the blob was already stored. `durable_on`
 * lists the nodes known to have a copy or a shard.
 */
export const PutReceipt = Schema.Struct({
  node_id: Schema.String.annotate({ description: "The node that received the put." }),
  cursor: Schema.optionalKey(Schema.Int).annotateKey({
    description:
      "The number of the put in that node's journal, and so in the log. Absent if the blob was " +
      "stored before, or is stored as shards.",
  }),
  durable_on: Schema.Array(Schema.String).annotateKey({
    description:
      "The nodes that had a copy or a shard on disk before the response. Others follow later.",
  }),
}).annotate({
  identifier: "PutReceipt",
  description: "Where the blob is durable. Absent if the node has no name.",
})
export type PutReceipt = typeof PutReceipt.Type

export const PutResponse = Schema.Struct({
  id: BlobIdMessage,
  size: Amount.annotateKey({ description: "Size of the blob in bytes." }),
  meta: BlobMeta,
  receipt: Schema.optionalKey(PutReceipt),
}).annotate({ identifier: "PutResponse" })
export type PutResponse = typeof PutResponse.Type

export const GetResponse = Schema.Struct({
  data: Bytes.annotateKey({ description: "The bytes in base64." }),
  meta: BlobMeta,
}).annotate({ identifier: "GetResponse" })
export type GetResponse = typeof GetResponse.Type

export const GetChunk = Schema.Struct({
  data: Bytes.annotateKey({ description: "The bytes of this chunk in base64." }),
  final: Schema.Boolean.annotate({ description: "True for the last chunk." }),
}).annotate({ identifier: "GetChunk" })
export type GetChunk = typeof GetChunk.Type

export const DeleteResponse = Schema.Struct({
  deleted: Schema.Boolean.annotate({
    description: "Always true, whether or not the blob existed.",
  }),
}).annotate({ identifier: "DeleteResponse" })
export type DeleteResponse = typeof DeleteResponse.Type

export const StatResponse = Schema.Struct({
  exists: Schema.Boolean.annotate({ description: "Whether the blob is stored in the scope." }),
  meta: Schema.optionalKey(BlobMeta),
}).annotate({ identifier: "StatResponse" })
export type StatResponse = typeof StatResponse.Type

/** Maximum number of identifiers in a batch. */
export const batch_ids_max = 10_000
/** Maximum size of a batch body: that many identifiers as messages in base64. */
export const batch_body_bytes_max = 1024 * 1024

/** The requested blobs; responses have the same order. */
export const BatchRequest = Schema.Array(BlobIdMessage).check(Schema.isMaxLength(batch_ids_max))

/** One line of a batch stat response. */
export const BatchStat = Schema.Struct({
  id: BlobIdMessage,
  exists: Schema.Boolean.annotate({ description: "Whether the blob is stored in the scope." }),
  meta: Schema.optionalKey(BlobMeta),
}).annotate({ identifier: "BatchStat" })

/** A prefix of an identifier in hex. */
export const BlobIdPrefix = Schema.String.check(
  Schema.isPattern(/^[0-9a-f]{0,32}$/u, { expected: "at most 32 hex digits" }),
)

/** The query of a list as text; `pageLimit` converts `limit` to a page size. */
export const ListRequest = Schema.Struct({
  cursor: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(cursor_characters_max))),
  limit: Schema.optionalKey(Schema.FiniteFromString.pipe(Schema.decodeTo(Schema.Int))),
  prefix: Schema.optionalKey(BlobIdPrefix),
})
export type ListRequest = typeof ListRequest.Type

export const ListResponse = Schema.Struct({
  ids: Schema.Array(BlobIdMessage).annotate({ description: "The IDs, ordered by their bytes." }),
  next_cursor: Schema.optionalKey(Schema.String).annotateKey({
    description:
      "The `cursor` of the next page. Opaque, and valid only on the node that issued it. Absent " +
      "on the last page.",
  }),
  has_more: Schema.Boolean.annotate({ description: "Whether there is a next page." }),
}).annotate({ identifier: "ListResponse" })
export type ListResponse = typeof ListResponse.Type

/** The page size for a list's limit. Source: document 1 §4 rule 5; DECISIONS, list. */
export const pageLimit = (limit = 0) =>
  limit <= 0 ? list_limit_default : Math.min(limit, list_limit_max)
