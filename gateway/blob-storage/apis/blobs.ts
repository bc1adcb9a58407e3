/**
 * BlobService's endpoints. Source: document 1 §4 BlobService, §5, §7; DECISIONS, document 1.
 */
import { Schema, SchemaGetter } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import examples from "#gateway/blob-storage/apis/examples.json" with { type: "json" }
import { Accepts, BodyLimit, KeyNotNeeded, Streamed } from "#gateway/limits.ts"
import { Examples } from "#gateway/reference.ts"
import { jsonSchemaOf, type Side } from "#gateway/system/document/schema.ts"
import {
  BatchStat,
  BlobIdFromText,
  BlobIdMessage,
  BlobIdPrefix,
  batch_body_bytes_max,
  cursor_characters_max,
  DeleteResponse,
  GetChunk,
  GetResponse,
  ListResponse,
  list_limit_default,
  list_limit_max,
  PutChunk,
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
const scope = Schema.optionalKey(
  Schema.Literals(["node", "cluster"]).annotate({
    description: "`node`, the default: only the node that received the request. `cluster`: all.",
  }),
)
export const scope_query = { scope }

/** The query of a put stream, which supplies fields that the first chunk lacks. */
export const put_stream_query = {
  policy: Schema.optionalKey(ReplicationPolicy),
  id: Schema.optionalKey(
    BlobIdFromText.annotate({
      description:
        "The ID that the content must have, in hex, base64 or base64url. If it has another one, " +
        "nothing is stored.",
    }),
  ),
}

/** Any integer: a value outside a page's bounds is clamped. */
const Limit = Schema.String.check(Schema.isPattern(/^[+-]?\d{1,19}$/u, { expected: "an integer" }))
  .pipe(
    Schema.decodeTo(Schema.Number, {
      decode: SchemaGetter.transform(Number),
      encode: SchemaGetter.transform(String),
    }),
  )
  .annotate({
    description:
      `Maximum number of IDs on the page. Zero or less is the default, ${list_limit_default}; ` +
      `more than ${list_limit_max} is ${list_limit_max}.`,
    documentedAs: {
      type: "integer",
      minimum: -2_147_483_648,
      maximum: 2_147_483_647,
      default: list_limit_default,
    },
  })

/**
 * Case-insensitive. A prefix that is not hexadecimal, or is longer than an ID, is rejected with
 * 400.
 */
const Prefix = Schema.String.pipe(
  Schema.decodeTo(BlobIdPrefix, {
    decode: SchemaGetter.transform((text: string) => text.toLowerCase()),
    encode: SchemaGetter.passthrough(),
  }),
).annotate({
  description: "Only IDs that begin with these hex digits, in either case. At most 32.",
  documentedAs: { type: "string", pattern: "^[0-9a-fA-F]{0,32}$" },
})

const Cursor = Schema.String.check(Schema.isMaxLength(cursor_characters_max)).annotate({
  description:
    "The `next_cursor` of the previous page, from the same node. It stays valid after a restart. " +
    "Absent: the first page.",
})

export const blob_id = { id: BlobIdFromText }
const reads = { scopes: ["blobs:read"] }
const writes = { scopes: ["blobs:write"] }
const refused = rejections(AlreadyExists, FailedPrecondition)
const unread = rejections(NotFound, OutOfRange)

const bytes = "application/octet-stream"
const lines = "application/x-ndjson"
const batch_types = [lines, "application/json"]
const batch =
  "Send up to 10,000 IDs, at most 1 MiB in all: a JSON array, or one JSON value on each line " +
  "(NDJSON). An ID is hex, base64 or the object of a response. The response has one JSON line " +
  "for each ID, in the same order. An invalid ID is 400 for the whole request."

const binary = { type: "string", format: "binary", description: "The bytes of the blob." }
const ndjson = (schema: Schema.Top, side: Side) => ({
  [lines]: { schema: jsonSchemaOf(schema, side) },
})

/** Documents a request body that the handler reads itself. */
const withRequest = (content: object) => (operation: Readonly<Record<string, unknown>>) => ({
  ...operation,
  requestBody: { required: true, content },
})

/** Documents more forms of the response, such as those of streams. */
const withResponse = (content: object) => (operation: Readonly<Record<string, unknown>>) => {
  // The library's own document: responses by status.
  const { responses } = operation as {
    readonly responses: Readonly<Record<string, { readonly content?: object }>>
  }
  const ok = responses["200"]
  const merged = { ...ok, content: { ...ok?.content, ...content } }
  return { ...operation, responses: { ...responses, 200: merged } }
}

const put = HttpApiEndpoint.put("put", "/v1/blobs", {
  payload: PutRequest,
  success: PutResponse,
  error: refused,
})
  .annotate(KeyNotNeeded, "The ID of a blob is a hash of its content.")
  .annotate(OpenApi.Summary, "Store a blob")
  .annotate(
    OpenApi.Description,
    "Stores the bytes on this node and returns the ID that follows from them. The response " +
      "confirms that they are durable on this node and that replication was attempted; missing " +
      "copies are made later. Storing the same bytes again changes nothing and returns the " +
      "stored metadata, if the policy is the same or absent. With another policy, or with " +
      "`If-None-Match: *`, it is 409. The body has at most 64 MiB: use a stream for blobs of " +
      "more than a few MB.",
  )
  .annotate(Needs, writes)

const put_stream = HttpApiEndpoint.post("put_stream", "/v1/blobs/stream", {
  query: put_stream_query,
  success: PutResponse,
  error: refused,
})
  .annotate(KeyNotNeeded, "The ID of a blob is a hash of its content.")
  .annotate(OpenApi.Summary, "Store a blob as a stream")
  .annotate(
    OpenApi.Description,
    "Stores one blob of at most 5 TiB. Send one chunk per JSON line of at most 16 MiB (or a JSON " +
      "array of chunks), the last one with `final: true`; the first one may have `id`, `policy` " +
      "and `labels`. Or send the bytes with `Content-Type: application/octet-stream`, the policy " +
      "in the query and labels in headers `X-Label-<name>`. If the stream ends early, nothing is " +
      "stored. Otherwise the rules are those of `PUT /v1/blobs`. A stream may be idle for 60 s.",
  )
  .annotate(
    OpenApi.Transform,
    withRequest({ ...ndjson(PutChunk, "request"), [bytes]: { schema: binary } }),
  )
  .annotate(Needs, writes)
  .annotate(Accepts, ["application/x-ndjson", "application/json", bytes])
  // The store limits the size of the blob; chunks and their lines have their own limits.
  .annotate(BodyLimit, ({ blob }, type) =>
    type === bytes ? blob.stream_bytes_max : Number.POSITIVE_INFINITY,
  )
  .annotate(Streamed, true)

const list = HttpApiEndpoint.get("list", "/v1/blobs", {
  query: {
    cursor: Schema.optionalKey(Cursor),
    limit: Schema.optionalKey(Limit),
    prefix: Schema.optionalKey(Prefix),
    scope,
  },
  success: ListResponse,
  error: rejections(),
})
  .annotate(OpenApi.Summary, "List blobs")
  .annotate(
    OpenApi.Description,
    "Lists the IDs of the blobs on this node, ordered by their bytes. Query parameters " +
      "`label.<name>=<value>` select the blobs that have all of these labels. A page of them " +
      "examines 10,000 blobs (1,000 with `scope=cluster`), so it may have fewer IDs than " +
      "`limit`, or none, while `has_more` is true. With `scope=cluster` each active node must " +
      "respond; otherwise the list is 503.",
  )
  .annotate(Needs, reads)

const stat_batch = HttpApiEndpoint.post("stat_batch", "/v1/blobs/stat", {
  query: scope_query,
  success: Schema.Void,
  error: rejections(),
})
  .annotate(KeyNotNeeded, "It changes nothing.")
  .annotate(OpenApi.Summary, "Get the metadata of many blobs")
  .annotate(OpenApi.Description, `${batch} The line of a missing blob has \`exists: false\`.`)
  .annotate(OpenApi.Transform, (operation) =>
    withRequest(ndjson(BlobIdMessage, "request"))(
      withResponse(ndjson(BatchStat, "response"))(operation),
    ),
  )
  .annotate(Needs, reads)
  .annotate(Accepts, batch_types)
  .annotate(BodyLimit, () => batch_body_bytes_max)
  .annotate(Streamed, true)

/** A line of the response to `get_batch`. */
const read_line = {
  ...jsonSchemaOf(Schema.Struct({ id: BlobIdMessage, ...GetResponse.fields }), "response"),
  required: ["id"],
}

const get_batch = HttpApiEndpoint.post("get_batch", "/v1/blobs/get", {
  success: Schema.Void,
  error: rejections(),
})
  .annotate(KeyNotNeeded, "It changes nothing.")
  .annotate(OpenApi.Summary, "Get many blobs")
  .annotate(
    OpenApi.Description,
    `${batch} A line has the blob's \`meta\` and \`data\`, or an \`error\` if it cannot be read ` +
      "or has more than 12 MB; an error does not affect other lines.",
  )
  .annotate(OpenApi.Transform, (operation) =>
    withRequest(ndjson(BlobIdMessage, "request"))(
      withResponse({ [lines]: { schema: read_line } })(operation),
    ),
  )
  .annotate(Needs, reads)
  .annotate(Accepts, batch_types)
  .annotate(BodyLimit, () => batch_body_bytes_max)
  .annotate(Streamed, true)

const get = HttpApiEndpoint.get("get", "/v1/blobs/:id", {
  params: blob_id,
  success: GetResponse,
  error: unread,
})
  .annotate(OpenApi.Summary, "Get a blob")
  .annotate(
    OpenApi.Description,
    "Returns the bytes and the metadata. If this node does not have the blob, it reads it from " +
      "another node. The checksum is verified. With `Accept: application/octet-stream` the " +
      "response is the bytes: `Range`, `If-Range`, `If-None-Match` and HEAD are supported, and " +
      "labels are headers `X-Label-<name>`.",
  )
  .annotate(OpenApi.Transform, withResponse({ [bytes]: { schema: binary } }))
  .annotate(Needs, reads)

const get_stream = HttpApiEndpoint.get("get_stream", "/v1/blobs/:id/stream", {
  params: blob_id,
  success: Schema.Void,
  error: unread,
})
  .annotate(OpenApi.Summary, "Get a blob as a stream")
  .annotate(
    OpenApi.Description,
    "Returns the bytes in chunks of at most 983,040 bytes, one JSON line each, in order; the " +
      "last has `final: true`. A failure after the status 200 ends the stream with a line " +
      '`{"error": ...}` instead. With `Accept: application/octet-stream` the response is the ' +
      "bytes, as for `GET /v1/blobs/{id}`.",
  )
  .annotate(
    OpenApi.Transform,
    withResponse({ ...ndjson(GetChunk, "response"), [bytes]: { schema: binary } }),
  )
  .annotate(Needs, reads)
  .annotate(Streamed, true)

const remove = HttpApiEndpoint.delete("delete", "/v1/blobs/:id", {
  params: blob_id,
  query: scope_query,
  success: DeleteResponse,
  error: rejections(),
})
  .annotate(KeyNotNeeded, "A retry deletes the blob again, even if it was stored since.")
  .annotate(OpenApi.Summary, "Delete a blob")
  .annotate(
    OpenApi.Description,
    "Deletes the blob on this node, whether or not it exists. Repair and replication do not " +
      "bring it back there; only a new put does. Other nodes keep their copies, unless " +
      "`scope=cluster` deletes it on every node, and on offline nodes when they return.",
  )
  .annotate(Needs, writes)

const stat = HttpApiEndpoint.get("stat", "/v1/blobs/:id/stat", {
  params: blob_id,
  query: scope_query,
  success: StatResponse,
  error: rejections(),
})
  .annotate(OpenApi.Summary, "Get the metadata of a blob")
  .annotate(
    OpenApi.Description,
    "Returns whether this node has the blob, and its metadata if so. A missing blob is not an " +
      "error: the response is 200 with `exists: false`.",
  )
  .annotate(Needs, reads)

const group = HttpApiGroup.make("blobs").annotate(
  OpenApi.Description,
  "Blobs: content-addressed, immutable bytes with labels and a replication policy.",
)

/** All endpoints, for the OpenAPI document. */
export const BlobApi = HttpApi.make("blob-storage/blob")
  .add(group.add(put, put_stream, list, stat_batch, get_batch, get, get_stream, remove, stat))
  .annotate(Examples, examples)

/** The endpoints that Effect's API serves; the others are direct routes. */
export const BlobListApi = HttpApi.make("blob-storage/blob-list").add(
  group.add(list, stat_batch, get_batch),
)
