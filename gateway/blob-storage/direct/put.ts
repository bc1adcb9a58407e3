/**
 * Puts of plain bytes: small blobs are buffered in memory, large ones streamed. Also the parts that
 * all puts share.
 *
 * Source: document 1 §4 BlobService, rule 1; DECISIONS, document 1, framing of streams, raw forms.
 */
import { Effect, Exit } from "effect"
import type {
  BlobEngine,
  BlobUpload,
  PutOrder,
  PutResult,
} from "#actors/blob-storage/ports/engine.ts"
import {
  headerLabels,
  isConditional,
  isExpectant,
  lengthOf,
  readBody,
} from "#gateway/blob-storage/direct/request.ts"
import {
  after,
  type Int64Form,
  jsonHeaders,
  putText,
  receiptOf,
  reject,
  rejectCause,
} from "#gateway/blob-storage/direct/response.ts"
import type { Exchange } from "#gateway/direct.ts"
import type { BlobId, BlobLabels, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { isErasureCode, refusedPolicy } from "#schemas/blob-storage/replication.ts"

export interface DirectPuts {
  readonly engine: Pick<BlobEngine, "put" | "upload">
  readonly int64: Int64Form
  /** Number of active nodes in the cluster, including this one. */
  readonly active_nodes: Effect.Effect<number>
  /** The name of this node, for receipts. */
  readonly node_id?: string
}

/** The fields of a put other than its bytes. */
export interface PutFields {
  readonly policy: ReplicationPolicy
  readonly labels: BlobLabels
  readonly expected_id?: BlobId | undefined
}

/** The query of a put stream, which supplies fields that the first chunk lacks. */
export interface PutQuery {
  readonly policy?: ReplicationPolicy
  readonly id?: BlobId
}

export const unspecified: ReplicationPolicy = "REPLICATION_POLICY_UNSPECIFIED"

/**
 * Up to this size a blob is buffered and passed to the engine at once; larger ones are streamed.
 */
export const gathered_bytes_max = 256 * 1024

/** The blob to store, and the origin of the request. Throws InvalidArgument. */
export const orderOf = (exchange: Exchange, fields: PutFields): PutOrder => {
  const { caller, request_id, correlation_id } = exchange.context
  return {
    policy: fields.policy,
    labels: fields.labels,
    expected_id: fields.expected_id,
    if_none_match: isConditional(exchange),
    origin: { actor: caller.actor, request_id, correlation_id },
  }
}

/** Responds to the put when it is durable. */
export const answerPut = (
  { int64, node_id }: DirectPuts,
  exchange: Exchange,
  stored: Promise<PutResult>,
) =>
  after(exchange, stored, (answer) => {
    const text = putText(answer.id, answer.meta, int64, receiptOf(answer, node_id))
    exchange.answer(200, jsonHeaders(text), text)
  })

/** Rejects an erasure code that needs more nodes than there are; otherwise continues. */
export const admitPolicy = (
  { active_nodes }: DirectPuts,
  exchange: Exchange,
  policy: ReplicationPolicy,
  proceed: () => void,
) => {
  if (!isErasureCode(policy)) return proceed()
  Effect.runCallback(active_nodes, {
    onExit: (exit) => {
      if (Exit.isFailure(exit)) return exchange.fail(exit)
      const refusal = refusedPolicy(policy, exit.value)
      if (refusal !== undefined) reject(exchange, refusal)
      // The client may have disconnected meanwhile.
      else if (!exchange.isOver()) proceed()
    },
  })
}

const putGathered = (puts: DirectPuts, exchange: Exchange, order: PutOrder) => {
  const parts: Array<Uint8Array> = []
  readBody(exchange, {
    take: (bytes) => {
      parts.push(bytes)
      return undefined
    },
    end: () => answerPut(puts, exchange, puts.engine.put(order, parts, exchange.now())),
    drop: () => undefined,
    fail: exchange.fail,
  })
}

/** Ends an upload with these bytes; a failure discards it. */
export const finishUpload = async (
  upload: BlobUpload,
  last: ReadonlyArray<Uint8Array>,
  at: bigint,
) => {
  try {
    for (const bytes of last) await upload.write(bytes)
    return await upload.finish(at)
  } finally {
    await upload.abort()
  }
}

const no_bytes = new Uint8Array(0)

const putStreamed = (puts: DirectPuts, exchange: Exchange, order: PutOrder, size?: number) => {
  const upload = puts.engine.upload({ ...order, length: size }, size)
  const drop = () => {
    upload.abort().catch(exchange.fail)
  }
  let is_finishing = false
  const read = () =>
    readBody(exchange, {
      take: upload.write,
      end: () => {
        is_finishing = true
        answerPut(puts, exchange, finishUpload(upload, [], exchange.now()))
      },
      drop: () => {
        if (!is_finishing) drop()
      },
      fail: (cause) => rejectCause(exchange, cause),
    })
  if (size === undefined) return read()
  // If the disk has no room for the size, reject before the bytes arrive, and before 100-continue.
  const room = Promise.try(upload.write, no_bytes)
  if (isExpectant(exchange)) {
    room.then(
      () => (exchange.isOver() ? drop() : read()),
      (cause) => {
        drop()
        rejectCause(exchange, cause)
      },
    )
  } else {
    read()
    room.catch((cause) => rejectCause(exchange, cause))
  }
}

/** POST of plain bytes, with or without a known length. */
export const putBytes = (
  puts: DirectPuts,
  exchange: Exchange,
  { policy = unspecified, id }: PutQuery,
) => {
  const order = orderOf(exchange, { policy, labels: headerLabels(exchange), expected_id: id })
  const size = lengthOf(exchange)
  // An erasure code that needs more nodes is rejected before the bytes are read.
  admitPolicy(puts, exchange, policy, () => {
    if (size !== undefined && size < gathered_bytes_max) putGathered(puts, exchange, order)
    else putStreamed(puts, exchange, order, size)
  })
}
