/**
 * Hot puts of plain bytes: gathered while they are few, streamed where they are many.
 *
 * Source: document 1 §4 BlobService; DECISIONS, document 1, framing of streams, raw forms.
 */
import { Effect, Exit } from "effect"
import type {
  BlobEngine,
  BlobUpload,
  PutAnswer,
  PutOrder,
} from "#actors/blob-storage/blobs/engine.ts"
import { isErasureCode, refusedPolicy } from "#actors/blob-storage/replication.ts"
import { readBody } from "#gateway/blob-storage/body/reading.ts"
import { jsonHeaders } from "#gateway/blob-storage/direct/get.ts"
import { receiptOf } from "#gateway/blob-storage/direct/receipt.ts"
import { after, reject, rejectFault } from "#gateway/blob-storage/direct/refusal.ts"
import { type Int64Form, putText } from "#gateway/blob-storage/direct/text.ts"
import type { HotVisit } from "#gateway/direct.ts"
import type { BlobId, BlobLabels, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"

export interface HotPuts {
  readonly engine: Pick<BlobEngine, "put" | "upload">
  readonly int64: Int64Form
  /** How many nodes of the cluster are active, this one included. */
  readonly active_nodes: Effect.Effect<number>
  /** This node, for receipts. */
  readonly node_id?: string
}

/** What a put says of itself beside its bytes. */
export interface PutSaid {
  readonly policy: ReplicationPolicy
  readonly labels: BlobLabels
  readonly expected_id?: BlobId
}

/** Below this the bytes are gathered and go to the engine at once; above it they stream. */
export const gathered_bytes_max = 256 * 1024

/** Who asks, and what for. */
export const orderOf = (visit: HotVisit, { policy, labels, expected_id }: PutSaid): PutOrder => {
  const { caller, request_id, correlation_id } = visit
  return {
    policy,
    labels,
    expected_id,
    if_none_match: visit.headers["if-none-match"] !== undefined,
    origin: { actor: caller.actor, request_id, correlation_id },
  }
}

/** Answers the put when it is durable. */
export const answerPut = (
  { int64, node_id }: HotPuts,
  visit: HotVisit,
  stored: Promise<PutAnswer>,
) =>
  after(visit, stored, (answer) => {
    const text = putText(answer.id, answer.meta, int64, receiptOf(answer, node_id).receipt)
    visit.answer(200, jsonHeaders(text), text)
  })

/** Refuses an erasure code for which there are too few nodes; else goes on. */
export const admitPolicy = (
  { active_nodes }: HotPuts,
  visit: HotVisit,
  policy: ReplicationPolicy,
  goOn: () => void,
) => {
  if (!isErasureCode(policy)) return goOn()
  Effect.runCallback(active_nodes, {
    onExit: (exit) => {
      if (Exit.isFailure(exit)) return visit.fail(exit)
      const refusal = refusedPolicy(policy, exit.value)
      if (refusal !== undefined) reject(visit, refusal)
      // Whoever is gone by now has taken the bytes along.
      else if (!visit.isOver()) goOn()
    },
  })
}

const putGathered = (puts: HotPuts, visit: HotVisit, order: PutOrder) => {
  const parts: Array<Uint8Array> = []
  readBody(visit, {
    take: (bytes) => {
      parts.push(bytes)
      return undefined
    },
    end: () => answerPut(puts, visit, puts.engine.put(order, parts, visit.now())),
    drop: () => undefined,
    fail: visit.fail,
  })
}

/** Ends an upload with these bytes; nothing of it is left where that fails. */
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

const putStreamed = (puts: HotPuts, visit: HotVisit, order: PutOrder, size?: number) => {
  const upload = puts.engine.upload({ ...order, length: size }, size)
  let is_finishing = false
  readBody(visit, {
    take: upload.write,
    end: () => {
      is_finishing = true
      answerPut(puts, visit, finishUpload(upload, [], visit.now()))
    },
    drop: () => {
      if (!is_finishing) upload.abort().catch(visit.fail)
    },
    fail: (cause) => rejectFault(visit, cause),
  })
  // What is announced and has no room is refused before it comes.
  if (size !== undefined) {
    Promise.try(upload.write, no_bytes).catch((cause) => rejectFault(visit, cause))
  }
}

/** POST of plain bytes, of a length that is known or not. */
export const putBytes = (puts: HotPuts, visit: HotVisit, said: PutSaid) => {
  const order = orderOf(visit, said)
  const { "content-length": length, "transfer-encoding": encoding } = visit.headers
  const size = encoding === undefined ? Number(length ?? 0) : undefined
  // A code with too few nodes is refused before its bytes are read.
  admitPolicy(puts, visit, said.policy, () => {
    if (size !== undefined && size < gathered_bytes_max) putGathered(puts, visit, order)
    else putStreamed(puts, visit, order, size)
  })
}
