/**
 * The errors of blob storage: one class per row of the error table.
 *
 * A rejection carries its full detail. Values that depend on the request or the settings
 * (request_id, grpc_code, the truncated detail) are added at the edge.
 *
 * Source: document 1 §7 Errors; decisions of document 1, "authoritative error body".
 */
import { Effect, Schema, SchemaGetter } from "effect"

/** The gRPC status names of the error table, with their numbers. */
export const grpc_codes = {
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const

export type Code = keyof typeof grpc_codes

/** Short texts: the document's own, and ours for its other rows. */
export const messages = {
  invalid_blob_id: "invalid blob ID",
  blob_not_found: "blob not found on any node",
  not_enough_nodes: "not enough nodes for EC",
  shard_stores_failed: "too many shard store failures",
  cluster_degraded: "cluster degraded",
} as const

/** Always in the response, but never in the rejection: the edge adds it. */
const RequestId = Schema.String.annotate({
  description: "The id of this request, which the server's log contains too.",
}).pipe(
  Schema.decodeTo(Schema.optionalKey(Schema.String), {
    decode: SchemaGetter.passthrough(),
    encode: SchemaGetter.withDefault(Effect.succeed("")),
  }),
)

const row = <const C extends Code>(code: C, message: string) => ({
  code: Schema.tag(code).annotateKey({ description: "The name of the gRPC status." }),
  message: Schema.String.annotate({
    description: "A short text that stays the same for each cause.",
  }).pipe(Schema.withConstructorDefault(Effect.succeed(message))),
  detail: Schema.String.annotate({
    description:
      "Description of the error, at most `error.max_detail_bytes` bytes. Empty if " +
      "`error.include_detail` is false.",
  }),
  request_id: RequestId,
  grpc_code: Schema.optionalKey(Schema.Int).annotateKey({
    description: "The number of the gRPC status. Present if `error.include_grpc_code` is true.",
  }),
})

export class InvalidArgument extends Schema.Error<InvalidArgument>("InvalidArgument")(
  row("INVALID_ARGUMENT", "invalid argument"),
  {
    httpApiStatus: 400,
    description:
      "A parameter or the body is missing, malformed or has an invalid value: the ID is not " +
      "exactly 16 bytes (message `invalid blob ID`), a required field is missing, or the " +
      "policy is unknown.",
  },
) {}

export class Unauthenticated extends Schema.Error<Unauthenticated>("Unauthenticated")(
  row("UNAUTHENTICATED", "unauthenticated"),
  {
    httpApiStatus: 401,
    description: "The request has no valid bearer token or client certificate.",
  },
) {}

export class PermissionDenied extends Schema.Error<PermissionDenied>("PermissionDenied")(
  row("PERMISSION_DENIED", "permission denied"),
  {
    httpApiStatus: 403,
    description: "The caller lacks the required scope.",
  },
) {}

/** No node has the blob. */
export class NotFound extends Schema.Error<NotFound>("NotFound")(
  row("NOT_FOUND", messages.blob_not_found),
  {
    httpApiStatus: 404,
    description:
      "No node has the blob (message `blob not found on any node`). If it was just put on " +
      "another node, retry briefly.",
  },
) {}

/** A heartbeat from a node outside the cluster: `commands` requests that it joins again. */
export class NodeUnknown extends Schema.Error<NodeUnknown>("NodeUnknown")(
  {
    ...row("NOT_FOUND", "node not in the cluster"),
    ok: Schema.Literal(false)
      .annotate({ description: "False: the node is not a member." })
      .pipe(Schema.withConstructorDefault(Effect.succeed(false as const))),
    commands: Schema.Array(Schema.String)
      .annotate({ description: "The action that the node must take: `rejoin`." })
      .pipe(Schema.withConstructorDefault(Effect.succeed(["rejoin"]))),
  },
  {
    httpApiStatus: 404,
    description: "The node is not in the cluster. `commands` contains `rejoin`: join again.",
  },
) {}

export class AlreadyExists extends Schema.Error<AlreadyExists>("AlreadyExists")(
  row("ALREADY_EXISTS", "blob already exists"),
  {
    httpApiStatus: 409,
    description:
      "The blob exists with another policy or checksum, or the request has `If-None-Match: " +
      "*`.",
  },
) {}

/** Too few active nodes for an erasure code. */
export class FailedPrecondition extends Schema.Error<FailedPrecondition>("FailedPrecondition")(
  row("FAILED_PRECONDITION", messages.not_enough_nodes),
  {
    httpApiStatus: 412,
    description:
      "The policy is an erasure code and the cluster has too few active nodes: 6 for " +
      "`EC42`, 10 for `EC82`.",
  },
) {}

export class TooLarge extends Schema.Error<TooLarge>("TooLarge")(
  row("RESOURCE_EXHAUSTED", "request too large"),
  {
    httpApiStatus: 413,
    description: "The request body is larger than this operation accepts.",
  },
) {}

export class UnsupportedMediaType extends Schema.Error<UnsupportedMediaType>(
  "UnsupportedMediaType",
)(row("INVALID_ARGUMENT", "unsupported media type"), {
  httpApiStatus: 415,
  description:
    "The request body has a content type or an encoding that this operation does not accept.",
}) {}

/** The requested range is outside the blob. */
export class OutOfRange extends Schema.Error<OutOfRange>("OutOfRange")(
  row("OUT_OF_RANGE", "range not satisfiable"),
  {
    httpApiStatus: 416,
    description: "The requested `Range` is outside the blob.",
  },
) {}

/** Too many requests from one caller, or no capacity left in the cluster. */
export class ResourceExhausted extends Schema.Error<ResourceExhausted>("ResourceExhausted")(
  row("RESOURCE_EXHAUSTED", "resource exhausted"),
  {
    httpApiStatus: 429,
    description:
      "The caller has exceeded the rate limit, or the cluster or its disk has no capacity " +
      "left. Wait for the number of seconds in `Retry-After`.",
  },
) {}

export class Internal extends Schema.Error<Internal>("Internal")(
  row("INTERNAL", "internal error"),
  {
    httpApiStatus: 500,
    description:
      "The store failed, a stream ended without its final chunk, or too many shards could " +
      "not be stored (message `too many shard store failures`).",
  },
) {}

export class Unimplemented extends Schema.Error<Unimplemented>("Unimplemented")(
  row("UNIMPLEMENTED", "unimplemented"),
  {
    httpApiStatus: 501,
    description: "The path does not support this method. `Allow` lists those that it supports.",
  },
) {}

/** The volume is read-only after a failed sync, or the log is unreachable; retry. */
export class Unavailable extends Schema.Error<Unavailable>("Unavailable")(
  row("UNAVAILABLE", messages.cluster_degraded),
  {
    httpApiStatus: 503,
    description:
      "The cluster is degraded: the volume is read-only after a failed sync, a node cannot " +
      "be reached, or a change of membership cannot reach the log. Retry with backoff.",
  },
) {}

export class DeadlineExceeded extends Schema.Error<DeadlineExceeded>("DeadlineExceeded")(
  row("DEADLINE_EXCEEDED", "deadline exceeded"),
  {
    httpApiStatus: 504,
    description: "The request took longer than its deadline. Retry with backoff.",
  },
) {}

/** Errors of every endpoint. */
const anywhere = [
  InvalidArgument,
  Unauthenticated,
  PermissionDenied,
  TooLarge,
  UnsupportedMediaType,
  ResourceExhausted,
  Internal,
  Unavailable,
  DeadlineExceeded,
] as const

/** An endpoint's `error`: those of every endpoint, and its own. */
export const rejections = <const Own extends ReadonlyArray<Schema.Constraint>>(...own: Own) =>
  [...anywhere, ...own] as const

export const Rejection = Schema.Union([
  ...anywhere,
  NotFound,
  NodeUnknown,
  AlreadyExists,
  FailedPrecondition,
  OutOfRange,
  Unimplemented,
])
export type Rejection = typeof Rejection.Type
