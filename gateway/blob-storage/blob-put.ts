/**
 * Putting a blob: as one JSON message, as a stream of chunks, or as plain bytes.
 *
 * Source: document 1 §4 BlobService, rule 1; DECISIONS, document 1.
 */
import { Cause, Effect, Option, Schema, Stream } from "effect"
import { HttpIncomingMessage, type HttpServerRequest } from "effect/http"
import { type BlobPut, BlobStore } from "#actors/blob-storage/blobs/store.ts"
import {
  ActiveNodes,
  isErasureCode,
  NodeName,
  refusedPolicy,
} from "#actors/blob-storage/replication.ts"
import type { FieldsRead } from "#gateway/blob-storage/body/fields.ts"
import {
  type BodyEnd,
  type BodyMessages,
  cut_off,
  messageFields,
  openMessages,
} from "#gateway/blob-storage/body/message-fields.ts"
import { receiptOf } from "#gateway/blob-storage/direct/receipt.ts"
import { worded } from "#gateway/blob-storage/fault.ts"
import { labelsOf } from "#gateway/blob-storage/labels.ts"
import { answer } from "#gateway/json.ts"
import { RequestContext } from "#gateway/request-context.ts"
import {
  type BlobId,
  BlobIdMessage,
  BlobLabels,
  json_body_bytes_max,
  PutResponse,
  ReplicationPolicy,
  stream_line_bytes_max,
} from "#schemas/blob-storage/blob.ts"
import { Internal, InvalidArgument } from "#schemas/blob-storage/rejection.ts"

type Request = HttpServerRequest.HttpServerRequest

/** A client may wait for the answer to its final chunk before it ends its request. */
const final_grace = "1 second"

/** What the address of a put stream says, where the first chunk does not. */
export interface PutQuery {
  readonly policy?: ReplicationPolicy
  readonly id?: BlobId
}

export const unspecified = "REPLICATION_POLICY_UNSPECIFIED"

const fields = {
  data: Schema.String,
  policy: Schema.optionalKey(ReplicationPolicy),
  labels: Schema.optionalKey(BlobLabels),
}
export const putFields = messageFields(Schema.Struct(fields))
const chunkFields = messageFields(
  Schema.Struct({ ...fields, id: Schema.optionalKey(BlobIdMessage), final: Schema.Boolean }),
)
type ChunkRead = Effect.Success<ReturnType<typeof chunkFields>>

const put_answer = answer(PutResponse)

/** Whether the put is refused where the blob is stored already. */
const condition = ({ headers }: Request) => {
  const asked = headers["if-none-match"]?.trim()
  return asked === undefined || asked === "*"
    ? Effect.succeed(asked === "*")
    : Effect.fail(new InvalidArgument({ detail: "If-None-Match of a put must be *." }))
}

/** What a put says of itself. */
interface Said {
  readonly policy?: ReplicationPolicy | undefined
  readonly labels?: BlobLabels | undefined
  readonly expected_id?: BlobId | undefined
  /** How many bytes come at most, where that is known. */
  readonly bytes_max?: number | undefined
}

/** Who asks; refuses an erasure code for which there are too few nodes, before any byte is read. */
const orderOf = Effect.fnUntraced(function* (request: Request, said: Said) {
  const { caller, request_id, correlation_id } = yield* RequestContext
  const { policy = unspecified, labels = {}, expected_id, bytes_max } = said
  if (isErasureCode(policy)) {
    const refused = refusedPolicy(policy, yield* Effect.flatten(ActiveNodes))
    if (refused) return yield* refused
  }
  const order: BlobPut = {
    policy,
    labels,
    if_none_match: yield* condition(request),
    origin: { actor: caller.actor, request_id, correlation_id },
    ...(expected_id === undefined ? {} : { expected_id }),
    ...(bytes_max === undefined ? {} : { bytes_max }),
  }
  return order
})

const stored = Effect.fnUntraced(function* <E>(
  order: BlobPut,
  bytes: Stream.Stream<Uint8Array, E>,
) {
  const store = yield* BlobStore
  const answer = yield* Effect.mapError(store.put(order, bytes), worded)
  const { id, size, meta } = answer
  return yield* put_answer({ id, size, meta, ...receiptOf(answer, yield* NodeName) })
})

/** How the one message of a put lies in its body. */
export const body_framing = {
  message_bytes_max: Number.POSITIVE_INFINITY,
  is_lined: false,
  is_array_taken: false,
}
export const no_object = new InvalidArgument({ detail: "body: Expected a JSON object." })
export const two_objects = new InvalidArgument({ detail: "body: Expected one JSON object." })

/** PUT /v1/blobs. `data` is decoded while the body arrives, so that no request waits. */
export const putJson = Effect.fnUntraced(function* (request: Request) {
  const limit = yield* HttpIncomingMessage.MaxBodySize
  const { next } = yield* openMessages(request, {
    body_bytes_max: Number(limit ?? json_body_bytes_max),
    ...body_framing,
  })
  const read = yield* next
  if (typeof read === "string") return yield* no_object
  const { fields, data } = yield* putFields(read, "Payload")
  if (typeof (yield* next) !== "string") return yield* two_objects
  const bytes_max = data.reduce((sum, { length }) => sum + length, 0)
  return yield* stored(yield* orderOf(request, { ...fields, bytes_max }), Stream.fromIterable(data))
}, Effect.scoped)

const no_header = new Internal({ detail: "The put stream ended without a header chunk." })
const truncated = new Internal({ detail: "The put stream ended before its final chunk." })

const refused = (number: number, why: string) =>
  new InvalidArgument({ detail: `Message ${number}: ${why}` })

/** Why this chunk cannot follow a stream that began with `first`, if so. */
const misplaced = (first: BlobPut, { fields }: ChunkRead) => {
  const { id, policy = unspecified, labels } = fields
  if (id !== undefined && id !== first.expected_id) {
    return first.expected_id === undefined
      ? "id: a blob's ID is given on the first chunk or not at all."
      : "id: chunks of different blobs must not be in one stream."
  }
  if (policy !== unspecified && policy !== first.policy) {
    return "policy: it is given on the first chunk and cannot change."
  }
  return labels === undefined || Object.keys(labels).length === 0
    ? undefined
    : "labels: they are given on the first chunk."
}

/** What came in the place of a chunk: the body's end, or a chunk behind the final one. */
const endOf = (read: FieldsRead | BodyEnd, number: number) => {
  if (typeof read !== "string") return refused(number, "nothing may follow the final chunk.")
  return read === "between messages" ? undefined : refused(number, "the JSON does not end.")
}

/** The bytes of a stream that begins with `first`; they end well only behind its final chunk. */
const bytesOfChunks = ({ next }: BodyMessages, order: BlobPut, first: ChunkRead) => {
  let number = 1
  let is_final = first.fields.final
  let data: ReadonlyArray<Uint8Array> = first.data

  const close = Effect.gen(function* () {
    const read = yield* Effect.timeoutOption(next, final_grace)
    const refusal = Option.isSome(read) ? endOf(read.value, number + 1) : undefined
    return yield* refusal ?? Cause.done()
  })
  const chunk = Effect.gen(function* () {
    const read = yield* next
    if (typeof read === "string") return yield* truncated
    number += 1
    const after = yield* chunkFields(read, `Message ${number}`)
    const why = misplaced(order, after)
    if (why !== undefined) return yield* refused(number, why)
    is_final = after.fields.final
    data = after.data
  })
  const pull = Effect.gen(function* () {
    for (;;) {
      const [head, ...rest] = data
      data = []
      if (head !== undefined) return [head, ...rest] as const
      yield* is_final ? close : chunk
    }
  })
  return Stream.fromPull(Effect.succeed(pull))
}

/** Whether both are given and are not the same. */
const differ = <A>(one: A | undefined, other: A | undefined) =>
  one !== undefined && other !== undefined && one !== other

const putChunks = Effect.fnUntraced(function* (
  request: Request,
  query: PutQuery,
  is_lined: boolean,
) {
  const messages = yield* openMessages(request, {
    body_bytes_max: Number.POSITIVE_INFINITY,
    message_bytes_max: stream_line_bytes_max,
    is_lined,
    is_array_taken: true,
  })
  const read = yield* messages.next
  if (typeof read === "string") return yield* read === "between messages" ? no_header : truncated
  const first = yield* chunkFields(read, "Message 1")
  const { id, policy = unspecified, labels } = first.fields
  if (differ(id, query.id)) return yield* refused(1, "id: it differs from the query's.")
  const { policy: asked } = query
  if (policy !== unspecified && differ(policy, asked)) {
    return yield* refused(1, "policy: it differs from the query's.")
  }
  const order = yield* orderOf(request, {
    labels: labels ?? (yield* labelsOf(request.headers)),
    policy: policy === unspecified ? (asked ?? policy) : policy,
    expected_id: id ?? query.id,
  })
  return yield* stored(order, bytesOfChunks(messages, order, first))
}, Effect.scoped)

/** The length of a body of plain bytes, where it says it. */
const announced = ({ headers }: Request) => {
  const { "content-length": length, "transfer-encoding": encoding } = headers
  return length === undefined || encoding !== undefined ? undefined : Number(length)
}

const putBytes = Effect.fnUntraced(function* (request: Request, { policy, id }: PutQuery) {
  const order = yield* orderOf(request, {
    labels: yield* labelsOf(request.headers),
    policy,
    expected_id: id,
    bytes_max: announced(request),
  })
  return yield* stored(
    order,
    Stream.mapError(request.stream, () => cut_off),
  )
})

/** POST /v1/blobs/stream: chunks as NDJSON or as a JSON array, or plain bytes by Content-Type. */
export const putStream = (request: Request, query: PutQuery) => {
  const type = request.headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase()
  if (type === "application/octet-stream") return putBytes(request, query)
  return putChunks(request, query, type !== "application/json")
}
