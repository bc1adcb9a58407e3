/**
 * BlobService's endpoints. Source: document 1 §4 BlobService, §5, §7; DECISIONS, document 1.
 */
import { Schema, SchemaGetter } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { Accepts, BodyLimit, KeyNotNeeded, Streamed } from "#gateway/limits.ts"
import {
  BlobIdFromText,
  BlobIdPrefix,
  batch_body_bytes_max,
  cursor_characters_max,
  DeleteResponse,
  GetResponse,
  ListResponse,
  PutRequest,
  PutResponse,
  ReplicationPolicy,
  StatResponse,
} from "#schemas/blob-storage/blob.ts"
import {
  AlreadyExists,
  FailedPrecondition,
  NotFound,
  OutOfRange,
  rejections,
} from "#schemas/blob-storage/rejection.ts"

/** Where a blob is looked up or deleted: on this node (the default), or on every node. */
const scope = Schema.optionalKey(Schema.Literals(["node", "cluster"]))
export const scope_query = { scope }

/** The query of a put stream, which supplies fields that the first chunk lacks. */
export const put_stream_query = {
  policy: Schema.optionalKey(ReplicationPolicy),
  id: Schema.optionalKey(BlobIdFromText),
}

/** Any integer: a value outside a page's bounds is clamped. */
const Limit = Schema.String.check(
  Schema.isPattern(/^[+-]?\d{1,19}$/u, { expected: "an integer" }),
).pipe(
  Schema.decodeTo(Schema.Number, {
    decode: SchemaGetter.transform(Number),
    encode: SchemaGetter.transform(String),
  }),
)

/**
 * Case-insensitive. A prefix that is not hexadecimal, or is longer than an ID, is rejected with
 * 400.
 */
const Prefix = Schema.String.pipe(
  Schema.decodeTo(BlobIdPrefix, {
    decode: SchemaGetter.transform((text: string) => text.toLowerCase()),
    encode: SchemaGetter.passthrough(),
  }),
)

export const blob_id = { id: BlobIdFromText }
const reads = { scopes: ["blobs:read"] }
const writes = { scopes: ["blobs:write"] }
const refused = rejections(AlreadyExists, FailedPrecondition)

const bytes = "application/octet-stream"
const batch_types = ["application/x-ndjson", "application/json"]
const batch =
  "At most 10,000 identifiers, a JSON array or one on each line, answered on a line each (NDJSON)."

const put = HttpApiEndpoint.put("put", "/v1/blobs", {
  payload: PutRequest,
  success: PutResponse,
  error: refused,
})
  .annotate(KeyNotNeeded, "A blob is named by its content.")
  .annotate(OpenApi.Summary, "Store a blob")
  .annotate(Needs, writes)

const put_stream = HttpApiEndpoint.post("put_stream", "/v1/blobs/stream", {
  query: put_stream_query,
  success: PutResponse,
  error: refused,
})
  .annotate(KeyNotNeeded, "A blob is named by its content.")
  .annotate(OpenApi.Summary, "Store a blob as a stream")
  .annotate(Needs, writes)
  .annotate(Accepts, ["application/x-ndjson", "application/json", bytes])
  // The store limits the size of the blob; chunks and their lines have limits of their own.
  .annotate(BodyLimit, ({ blob }, type) =>
    type === bytes ? blob.stream_bytes_max : Number.POSITIVE_INFINITY,
  )
  .annotate(Streamed, true)

const list = HttpApiEndpoint.get("list", "/v1/blobs", {
  query: {
    cursor: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(cursor_characters_max))),
    limit: Schema.optionalKey(Limit),
    prefix: Schema.optionalKey(Prefix),
    scope,
  },
  success: ListResponse,
  error: rejections(),
})
  .annotate(OpenApi.Summary, "List the blobs")
  .annotate(
    OpenApi.Description,
    "`label.<name>=<value>`, for one name or more, lists the blobs that have these labels: " +
      "a page may hold fewer than asked for, or none, while has_more is true.",
  )
  .annotate(Needs, reads)

const stat_batch = HttpApiEndpoint.post("stat_batch", "/v1/blobs/stat", {
  query: scope_query,
  success: Schema.Void,
  error: rejections(),
})
  .annotate(KeyNotNeeded, "It changes nothing.")
  .annotate(OpenApi.Summary, "Read about many blobs")
  .annotate(OpenApi.Description, `${batch} The answer to a missing blob says exists: false.`)
  .annotate(Needs, reads)
  .annotate(Accepts, batch_types)
  .annotate(BodyLimit, () => batch_body_bytes_max)
  .annotate(Streamed, true)

const get_batch = HttpApiEndpoint.post("get_batch", "/v1/blobs/get", {
  success: Schema.Void,
  error: rejections(),
})
  .annotate(KeyNotNeeded, "It changes nothing.")
  .annotate(OpenApi.Summary, "Read many blobs")
  .annotate(OpenApi.Description, `${batch} Where a blob cannot be read, its line has an error.`)
  .annotate(Needs, reads)
  .annotate(Accepts, batch_types)
  .annotate(BodyLimit, () => batch_body_bytes_max)
  .annotate(Streamed, true)

const get = HttpApiEndpoint.get("get", "/v1/blobs/:id", {
  params: blob_id,
  success: GetResponse,
  error: rejections(NotFound, OutOfRange),
})
  .annotate(OpenApi.Summary, "Read a blob")
  .annotate(Needs, reads)

const get_stream = HttpApiEndpoint.get("get_stream", "/v1/blobs/:id/stream", {
  params: blob_id,
  success: Schema.Void,
  error: rejections(NotFound, OutOfRange),
})
  .annotate(OpenApi.Summary, "Read a blob as a stream")
  .annotate(Needs, reads)
  .annotate(Streamed, true)

const remove = HttpApiEndpoint.delete("delete", "/v1/blobs/:id", {
  params: blob_id,
  query: scope_query,
  success: DeleteResponse,
  error: rejections(),
})
  .annotate(KeyNotNeeded, "A retry leaves the blob deleted, also one that was stored since.")
  .annotate(OpenApi.Summary, "Delete a blob")
  .annotate(Needs, writes)

const stat = HttpApiEndpoint.get("stat", "/v1/blobs/:id/stat", {
  params: blob_id,
  query: scope_query,
  success: StatResponse,
  error: rejections(),
})
  .annotate(OpenApi.Summary, "Read about a blob")
  .annotate(Needs, reads)

const group = HttpApiGroup.make("blobs").annotate(
  OpenApi.Description,
  "Blobs: bytes under the hash that names them.",
)

/** All endpoints, for the OpenAPI document. */
export const BlobApi = HttpApi.make("blob-storage/blob").add(
  group.add(put, put_stream, list, stat_batch, get_batch, get, get_stream, remove, stat),
)

/** The endpoints that Effect's API serves; the others are direct routes. */
export const BlobListApi = HttpApi.make("blob-storage/blob-list").add(
  group.add(list, stat_batch, get_batch),
)
