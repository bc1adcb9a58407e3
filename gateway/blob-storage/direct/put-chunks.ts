/**
 * Put streams of chunks: NDJSON, or one JSON array. The first chunk is the header, and the final
 * one ends the blob.
 *
 * Source: document 1 §4 PutChunk; DECISIONS, document 1, framing of streams.
 */
import { Effect, type Fiber, Result, Schema } from "effect"
import type { BlobUpload } from "#actors/blob-storage/ports/engine.ts"
import type { FieldsRead } from "#gateway/blob-storage/body/fields.ts"
import { messageFields } from "#gateway/blob-storage/body/message-fields.ts"
import { messageScanner } from "#gateway/blob-storage/body/messages.ts"
import {
  answerPut,
  type DirectPuts,
  finishUpload,
  orderOf,
  type PutFields,
  type PutQuery,
  unspecified,
} from "#gateway/blob-storage/direct/put.ts"
import { headerLabels, readBody } from "#gateway/blob-storage/direct/request.ts"
import { rejectCause } from "#gateway/blob-storage/direct/response.ts"
import type { Exchange } from "#gateway/direct.ts"
import {
  BlobIdMessage,
  BlobLabels,
  ReplicationPolicy,
  stream_line_bytes_max,
} from "#schemas/blob-storage/blob.ts"
import { Internal, InvalidArgument } from "#schemas/blob-storage/rejection.ts"
import { isErasureCode, refusedPolicy } from "#schemas/blob-storage/replication.ts"

/** A client may wait for the response to its final chunk before it ends its request. */
const final_grace = "1 second"

const chunkFields = messageFields(
  Schema.Struct({
    data: Schema.String,
    policy: Schema.optionalKey(ReplicationPolicy),
    labels: Schema.optionalKey(BlobLabels),
    id: Schema.optionalKey(BlobIdMessage),
    final: Schema.Boolean,
  }),
)
type Chunk = ReturnType<typeof chunkFields>["fields"]

const no_header = new Internal({ detail: "The put stream ended without a header chunk." })
const truncated = new Internal({ detail: "The put stream ended before its final chunk." })

const refused = (number: number, why: string) =>
  new InvalidArgument({ detail: `Message ${number}: ${why}` })

/** The reason to reject a chunk of a stream that began with `first`, if any. */
const misplaced = (first: PutFields, { id, policy = unspecified, labels }: Chunk) => {
  if (id !== undefined && id !== first.expected_id) {
    return first.expected_id === undefined
      ? "id: the first chunk has none, so the others must not have one."
      : "id: a stream must not contain chunks of different blobs."
  }
  if (policy !== unspecified && policy !== first.policy) {
    return "policy: it must equal that of the first chunk."
  }
  return labels === undefined || Object.keys(labels).length === 0
    ? undefined
    : "labels: only the first chunk may contain them."
}

/** Whether both values are present and differ. */
const differ = <A>(one: A | undefined, other: A | undefined) =>
  one !== undefined && other !== undefined && one !== other

/** The stream's fields, from the first chunk or else from the query. Throws InvalidArgument. */
const headerOf = (exchange: Exchange, query: PutQuery, chunk: Chunk): PutFields => {
  const { id, policy = unspecified, labels } = chunk
  if (differ(id, query.id)) throw refused(1, "id: it differs from the id in the query.")
  if (policy !== unspecified && differ(policy, query.policy)) {
    throw refused(1, "policy: it differs from the policy in the query.")
  }
  return {
    policy: policy === unspecified ? (query.policy ?? policy) : policy,
    labels: labels ?? headerLabels(exchange),
    expected_id: id ?? query.id,
  }
}

/** The chunks of one stream as they arrive. */
const makeIntake = (puts: DirectPuts, exchange: Exchange, query: PutQuery) => {
  let number = 0
  let is_final = false
  let is_finishing = false
  let header: PutFields | undefined
  let upload: BlobUpload | undefined

  const begin = async (chunk: Chunk) => {
    header = headerOf(exchange, query, chunk)
    const order = orderOf(exchange, header)
    if (isErasureCode(header.policy)) {
      const refusal = refusedPolicy(header.policy, await Effect.runPromise(puts.active_nodes))
      if (refusal) throw refusal
    }
    if (!exchange.isOver()) upload = puts.engine.upload(order, undefined)
  }
  return {
    meet: async (read: FieldsRead) => {
      if (is_finishing) return
      number += 1
      if (is_final) throw refused(number, "nothing may follow the final chunk.")
      const { fields, data } = chunkFields(read, `Message ${number}`)
      if (header === undefined) await begin(fields)
      else {
        const why = misplaced(header, fields)
        if (why !== undefined) throw refused(number, why)
      }
      for (const bytes of data) await upload?.write(bytes)
      is_final = fields.final
    },
    isFinal: () => is_final,
    /** Checks the state at the end of the body; throws if the stream is incomplete. */
    checkEnd: (end: string) => {
      if (is_finishing) return
      const is_whole = end === "between messages"
      if (number === 0) throw is_whole ? no_header : truncated
      if (!is_final) throw truncated
      if (!is_whole) throw refused(number + 1, "the JSON is incomplete.")
    },
    finish: () => {
      const begun = upload
      upload = undefined
      is_finishing = true
      if (begun !== undefined) answerPut(puts, exchange, finishUpload(begun, [], exchange.now()))
    },
    drop: () => {
      upload?.abort().catch(exchange.fail)
      upload = undefined
    },
  }
}

/** POST of chunks; `is_lined`: one on each line. */
export const putChunks = (
  puts: DirectPuts,
  exchange: Exchange,
  query: PutQuery,
  is_lined: boolean,
) => {
  const intake = makeIntake(puts, exchange, query)
  const scanner = messageScanner({
    message_bytes_max: stream_line_bytes_max,
    is_lined,
    is_array_allowed: true,
  })
  let grace: Fiber.Fiber<unknown> | undefined
  let work: Promise<unknown> = Promise.resolve()

  const fail = (cause: unknown) => {
    grace?.interruptUnsafe()
    rejectCause(exchange, cause)
  }
  const met = async (messages: ReadonlyArray<FieldsRead>) => {
    for (const message of messages) {
      if (exchange.isOver()) return
      await intake.meet(message)
    }
    if (!intake.isFinal()) return
    grace ??= Effect.runFork(
      Effect.andThen(Effect.sleep(final_grace), () => Effect.sync(intake.finish)),
    )
  }
  readBody(exchange, {
    take: (bytes) => {
      const scanned = scanner.feed(bytes)
      if (Result.isFailure(scanned)) throw scanned.failure
      work = met(scanned.success)
      return work
    },
    end: () => {
      work
        .then(() => {
          grace?.interruptUnsafe()
          if (exchange.isOver()) return
          intake.checkEnd(scanner.end())
          intake.finish()
        }, fail)
        .catch(fail)
    },
    drop: () => {
      grace?.interruptUnsafe()
      intake.drop()
    },
    fail,
  })
}
