/**
 * Handles the requests of other nodes on the local store; never forwards them.
 *
 * Source: document 1 §1 InternalService; DECISIONS, document 1, InternalService; decision 0122.
 */
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import {
  decodeBatch,
  encodeOutcomes,
  type ReceivedCopy,
} from "#adapters/blob-storage/peers/batch.ts"
import { copies_max, decodeIds, encodeCopies, id_bytes } from "#adapters/blob-storage/peers/copy.ts"
import { decodeOrder, messages, operations } from "#adapters/blob-storage/peers/message.ts"
import { isPeerFailure, peerCodeOf, peerFailure } from "#cluster"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { copyBytes } from "#volume"
import type { Handler, Request, Response } from "./link.ts"

/** The local store as peers use it. */
export interface PeerStore {
  readonly local: NodeEngine
  readonly guard: Pick<NodeEngine, "receive" | "copiesOf" | "renew"> & {
    readonly rollBack: (id: BlobId, created_at: bigint) => Promise<void>
  }
  /** Implements `keeps` of `Peers`. */
  readonly keeps: (
    ids: ReadonlyArray<BlobId>,
    ring_version: number,
    is_read: boolean,
  ) => Promise<ReadonlyArray<boolean>>
  /** The ring version that this node knows. */
  readonly ringVersion: () => number
}

export interface PeerHandlerOptions {
  /** Undefined until the store is open. */
  readonly store: () => PeerStore | undefined
  /** Unix nanoseconds by this node's clock. */
  readonly now: () => bigint
}

const failureOf = (cause: unknown) => {
  if (isPeerFailure(cause)) return cause
  const fault = faultOf(cause)
  const detail = "detail" in fault ? fault.detail : fault._tag
  return peerFailure(peerCodeOf(fault), detail)
}

/** This node's clock, and the protocol version of the link. */
interface CallContext {
  readonly now: () => bigint
  readonly version: number
}

const receive = async (
  { guard }: PeerStore,
  request: Request,
  { now, version }: CallContext,
): Promise<Response> => {
  const order = decodeOrder(request.json, version)
  const bytes = copyBytes(order.size, order.shard)
  const receiving = guard.receive(order, bytes)
  try {
    let received_bytes = 0
    const pieces = request.whole === undefined ? request.pieces() : [request.whole]
    for await (const piece of pieces) {
      received_bytes += piece.length
      if (received_bytes > bytes) break
      if (piece.length > 0) await receiving.write(piece)
    }
    if (received_bytes !== bytes) {
      throw peerFailure(
        "INTERNAL",
        `a copy of ${bytes} bytes was announced, but ${received_bytes} or more arrived`,
      )
    }
    const { copy, created } = await receiving.finish(now())
    return { json: messages.stored.encode({ created }), body: [encodeCopies([copy], version)] }
  } finally {
    await receiving.abort()
  }
}

const receiveWhole = async (
  { guard }: PeerStore,
  { order, bytes }: ReceivedCopy,
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

/** Stores the copies of a batch concurrently; each has its own outcome. */
const receiveBatch = async (
  store: PeerStore,
  request: Request,
  { now, version }: CallContext,
): Promise<Response> => {
  const copies = decodeBatch(request, version)
  const outcomes = copies.map((copy) => receiveWhole(store, copy, now).catch(failureOf))
  return encodeOutcomes(await Promise.all(outcomes), version)
}

/** Maps faults to failures that peers understand. */
const mapFaults = async function* (windows: AsyncIterable<Uint8Array>) {
  try {
    yield* windows
  } catch (cause) {
    throw failureOf(cause)
  }
}

const fetch = async (
  { local }: PeerStore,
  { json }: Request,
  { now, version }: CallContext,
): Promise<Response> => {
  const { id, ...range } = messages.fetch_shard.decode(json)
  const { copy, meta, data, windows } = await local.read(id, range, now())
  const { labels, modified_at } = meta
  const record = encodeCopies([copy], version).toString("base64")
  return {
    json: messages.fetched.encode({ labels, modified_at, copy: record }),
    body: data === undefined ? mapFaults(windows()) : [data],
  }
}

/** Decodes the requested ids; fails if there are too many. */
const idsOf = async ({ whole, pieces }: Request) => {
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

const responseTo = async (
  store: PeerStore,
  request: Request,
  context: CallContext,
): Promise<Response> => {
  const { local, guard } = store
  const { now, version } = context
  const { operation, json } = request
  switch (operation) {
    case operations.replicate:
    case operations.replicate_stream:
    case operations.store_shard:
    case operations.migrate:
      return await receive(store, request, context)
    case operations.replicate_many:
      return await receiveBatch(store, request, context)
    case operations.fetch_shard:
      return await fetch(store, request, context)
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
        body: [encodeCopies(await guard.copiesOf(await idsOf(request)), version)],
      }
    case operations.copies: {
      const { after_id, until_id, limit } = messages.copies.decode(json)
      const { copies, next } = await local.copies(after_id, until_id, limit)
      const page = messages.page.encode(next === undefined ? {} : { next })
      return { json: page, body: [encodeCopies(copies, version)] }
    }
    case operations.keeps: {
      const { ring_version, is_read = false } = messages.keeps.decode(json)
      const confirmations = await store.keeps(await idsOf(request), ring_version, is_read)
      return { json: {}, body: [Uint8Array.from(confirmations, Number)] }
    }
    case operations.ring:
      return { json: messages.ring.encode({ ring_version: store.ringVersion() }) }
    default:
      throw peerFailure("INTERNAL", `unknown operation ${operation}`)
  }
}

/** Creates the request handler for a protocol version. It throws PeerFailure only. */
export const peerHandler =
  ({ store, now }: PeerHandlerOptions) =>
  (version: number): Handler =>
  async (request) => {
    const open = store()
    if (open === undefined) throw peerFailure("UNAVAILABLE", "the store of this node is not open")
    try {
      return await responseTo(open, request, { now, version })
    } catch (cause) {
      throw failureOf(cause)
    }
  }
