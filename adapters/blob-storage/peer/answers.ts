/**
 * What this node answers the others: of its own store, and never by asking on.
 *
 * Source: document 1 §1 InternalService; DECISIONS, document 1, InternalService; decision 0122.
 */
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import { type CopyCame, decodeBatch, encodeOutcomes } from "#adapters/blob-storage/peers/batch.ts"
import { copies_max, decodeIds, encodeCopies, id_bytes } from "#adapters/blob-storage/peers/copy.ts"
import { decodeOrder, messages, operations } from "#adapters/blob-storage/peers/message.ts"
import { isPeerFailure, peerCodeOf, peerFailure } from "#cluster"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { copyBytes } from "#volume"
import type { Answer, Answering, Question } from "./link.ts"

/** What the store does for others, and who is asked before a copy is taken back. */
export interface AnsweringStore {
  readonly local: NodeEngine
  readonly guard: Pick<NodeEngine, "receive" | "copiesOf" | "renew"> & {
    readonly rollBack: (id: BlobId, created_at: bigint) => Promise<void>
  }
  /** What this node promises to keep, as `Peers` says it. */
  readonly keeps: (
    ids: ReadonlyArray<BlobId>,
    ring_version: number,
    is_read: boolean,
  ) => Promise<ReadonlyArray<boolean>>
  /** The version of the ring that this node knows. */
  readonly ringVersion: () => number
}

export interface PeerAnswersOptions {
  /** Undefined while the store is not open. */
  readonly store: () => AnsweringStore | undefined
  /** Unix nanoseconds by this node's clock. */
  readonly now: () => bigint
}

const failureOf = (cause: unknown) => {
  if (isPeerFailure(cause)) return cause
  const fault = faultOf(cause)
  const detail = "detail" in fault ? fault.detail : fault._tag
  return peerFailure(peerCodeOf(fault), detail)
}

/** This node's clock, and the version of the link that is asked over. */
interface Asking {
  readonly now: () => bigint
  readonly version: number
}

const receive = async (
  { guard }: AnsweringStore,
  question: Question,
  { now, version }: Asking,
): Promise<Answer> => {
  const order = decodeOrder(question.json, version)
  const bytes = copyBytes(order.size, order.shard)
  const receiving = guard.receive(order, bytes)
  try {
    let came = 0
    const pieces = question.whole === undefined ? question.pieces() : [question.whole]
    for await (const piece of pieces) {
      came += piece.length
      if (came > bytes) break
      if (piece.length > 0) await receiving.write(piece)
    }
    if (came !== bytes) {
      throw peerFailure("INTERNAL", `a copy of ${bytes} bytes came with ${came} or more`)
    }
    const { copy, created } = await receiving.finish(now())
    return { json: messages.stored.encode({ created }), body: [encodeCopies([copy], version)] }
  } finally {
    await receiving.abort()
  }
}

const receiveWhole = async (
  { guard }: AnsweringStore,
  { order, bytes }: CopyCame,
  now: () => bigint,
) => {
  const receiving = guard.receive(order, bytes.length)
  try {
    if (bytes.length > 0) await receiving.write(bytes)
    return await receiving.finish(now())
  } finally {
    await receiving.abort()
  }
}

/** Copies that go together: all are under way at once, and each comes to an end of its own. */
const receiveMany = async (
  store: AnsweringStore,
  question: Question,
  { now, version }: Asking,
): Promise<Answer> => {
  const copies = decodeBatch(question, version)
  const outcomes = copies.map((copy) => receiveWhole(store, copy, now).catch(failureOf))
  return encodeOutcomes(await Promise.all(outcomes), version)
}

/** Windows whose faults are what another node understands. */
const told = async function* (windows: AsyncIterable<Uint8Array>) {
  try {
    yield* windows
  } catch (cause) {
    throw failureOf(cause)
  }
}

const fetch = async (
  { local }: AnsweringStore,
  { json }: Question,
  { now, version }: Asking,
): Promise<Answer> => {
  const { id, ...range } = messages.fetch_shard.decode(json)
  const { copy, meta, data, windows } = await local.read(id, range, now())
  const { labels, modified_at } = meta
  const record = encodeCopies([copy], version).toString("base64")
  return {
    json: messages.fetched.encode({ labels, modified_at, copy: record }),
    body: data === undefined ? told(windows()) : [data],
  }
}

/** Identifiers, or an error where there are more than may be asked for at once. */
const idsOf = async ({ whole, pieces }: Question) => {
  if (whole !== undefined) return decodeIds(whole)
  const parts: Array<Uint8Array> = []
  let bytes = 0
  for await (const piece of pieces()) {
    bytes += piece.length
    if (bytes > copies_max * id_bytes) throw peerFailure("INTERNAL", "too many blobs at once")
    parts.push(piece)
  }
  return decodeIds(Buffer.concat(parts))
}

const answerOf = async (
  store: AnsweringStore,
  question: Question,
  asking: Asking,
): Promise<Answer> => {
  const { local, guard } = store
  const { now, version } = asking
  const { operation, json } = question
  switch (operation) {
    case operations.replicate:
    case operations.replicate_stream:
    case operations.store_shard:
    case operations.migrate:
      return await receive(store, question, asking)
    case operations.replicate_many:
      return await receiveMany(store, question, asking)
    case operations.fetch_shard:
      return await fetch(store, question, asking)
    case operations.delete_internal: {
      const { id, origin, deleted_at } = messages.delete_internal.decode(json)
      await local.deleteClusterWide(id, origin, deleted_at)
      return { json: {} }
    }
    case operations.take_back: {
      const { id, created_at } = messages.take_back.decode(json)
      await guard.rollBack(id, created_at)
      return { json: {} }
    }
    case operations.renew: {
      const { id, put_at } = messages.renew.decode(json)
      const copy = await guard.renew(id, put_at, now())
      return { json: {}, body: [encodeCopies([copy], version)] }
    }
    case operations.have:
      return {
        json: {},
        body: [encodeCopies(await guard.copiesOf(await idsOf(question)), version)],
      }
    case operations.copies: {
      const { after_id, until_id, limit } = messages.copies.decode(json)
      const { copies, next } = await local.copies(after_id, until_id, limit)
      const page = messages.page.encode(next === undefined ? {} : { next })
      return { json: page, body: [encodeCopies(copies, version)] }
    }
    case operations.keeps: {
      const { ring_version, is_read = false } = messages.keeps.decode(json)
      const kept = await store.keeps(await idsOf(question), ring_version, is_read)
      return { json: {}, body: [Uint8Array.from(kept, Number)] }
    }
    case operations.ring:
      return { json: messages.ring.encode({ ring_version: store.ringVersion() }) }
    default:
      throw peerFailure("INTERNAL", `this node knows no operation ${operation}`)
  }
}

/** Answers questions of any node, in a version of the link. What is thrown is a PeerFailure. */
export const peerAnswers =
  ({ store, now }: PeerAnswersOptions) =>
  (version: number): Answering =>
  async (question) => {
    const open = store()
    if (open === undefined) throw peerFailure("UNAVAILABLE", "the store of this node is not open")
    try {
      return await answerOf(open, question, { now, version })
    } catch (cause) {
      throw failureOf(cause)
    }
  }
