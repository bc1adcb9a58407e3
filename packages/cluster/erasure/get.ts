/**
 * Reads erasure coded blobs from any sufficient set of shards, stripe by stripe. The hash of a
 * whole blob is checked before its last piece is returned.
 *
 * Source: document 1 §1, §2 Replication policies; DECISIONS, document 1, integrity; decision 0124.
 */

import type { BlobRange, BlobReading } from "#actors/blob-storage/ports/engine.ts"
import { faultError } from "#actors/blob-storage/ports/fault.ts"
import type { HeldCopy } from "#actors/blob-storage/ports/node-engine.ts"
import {
  type AvailableUnits,
  dataOfStripe,
  type Striping,
  stripesOf,
  striping,
  unit_bytes,
} from "#erasure"
import {
  type BlobId,
  type BlobMeta,
  get_chunk_bytes_max as window_bytes,
} from "#schemas/blob-storage/blob.ts"
import { type ErasureParts, stall_ms } from "./layout.ts"
import { findReadable, type Holder, isReadable, type Search, searchShards } from "./search.ts"
import { readStripes } from "./sources.ts"

/** A range of a blob whose shards were found: `start` inclusive, `end` exclusive. */
interface ReadRequest {
  readonly id: BlobId
  readonly checksum: string
  readonly plan: Striping
  readonly start: number
  readonly end: number
}

const findShards = async (
  parts: ErasureParts,
  id: BlobId,
  { offset = 0, length }: BlobRange,
  search: Search,
): Promise<ReadRequest> => {
  const data_shards = await findReadable(search)
  const holders = search.holders()
  const copy = holders.find((holder) => holder.copy.shard?.data_shards === data_shards)?.copy
  if (data_shards === undefined || copy === undefined) {
    if (holders.length > 0) parts.onShortfall?.(id)
    // Shards prove that the blob exists or existed; offline nodes may have the others.
    const offline = holders.length > 0 ? (parts.members().offline ?? []) : []
    const missing = search.unanswered() + offline.length
    if (missing === 0) throw faultError({ _tag: "BlobNotFound", id })
    const detail = `${holders.length} of its shards were found; ${missing} nodes do not respond.`
    throw faultError({ _tag: "BlobUnreachable", detail })
  }
  const { size, checksum } = copy
  const start = Math.min(Math.max(offset, 0), size)
  const end = Math.min(start + Math.max(length ?? size, 0), size)
  return { id, checksum, plan: striping(size, data_shards), start, end }
}

/**
 * Gets the blob's metadata from a node with a shard, the most recent shard first: after a deletion
 * and another put of the same bytes, older shards may have outdated metadata.
 */
export const metaOfShards = async (
  { local, peers, members, timing }: Pick<ErasureParts, "local" | "peers" | "members" | "timing">,
  holders: ReadonlyArray<Pick<Holder, "peer" | "copy">>,
): Promise<BlobMeta> => {
  const nothing = { offset: 0, length: 0 }
  const by_age = holders.toSorted((one, other) =>
    one.copy.created_at < other.copy.created_at ? 1 : -1,
  )
  for (const { peer, copy } of by_age) {
    try {
      if (peer.node_id === members().node_id) {
        return (await local.read(copy.id, nothing, timing.now())).meta
      }
      const { meta, bytes } = await peers.fetch(peer, copy.id, nothing, stall_ms)
      await bytes.return?.()
      return meta
    } catch {
      // The next node has the same metadata.
    }
  }
  throw faultError({ _tag: "BlobUnreachable", detail: "No node with a shard responds." })
}

/** The requested bytes of one stripe, in one buffer. */
const pieceOf = (
  { openCode }: ErasureParts,
  { plan, start, end }: ReadRequest,
  stripe: number,
  available: AvailableUnits,
): Uint8Array => {
  const units = dataOfStripe(openCode(plan.data_shards), plan, stripe, available)
  const stripe_start = stripe * plan.data_shards * unit_bytes
  const stripe_bytes = units.reduce((sum, unit) => sum + unit.length, 0)
  const first = Math.max(stripe_start, start)
  const piece = new Uint8Array(Math.min(stripe_start + stripe_bytes, end) - first)
  let at = stripe_start
  for (const unit of units) {
    const wanted = unit.subarray(Math.max(0, first - at), Math.max(0, end - at))
    if (wanted.length > 0) piece.set(wanted, Math.max(at, first) - first)
    at += unit.length
  }
  return piece
}

/** Yields the requested bytes stripe by stripe; `onMeta` receives the blob's metadata. */
const pieces = async function* (
  parts: ErasureParts,
  search: Search,
  request: ReadRequest,
  onMeta: (meta: BlobMeta) => void = () => undefined,
) {
  const { id, plan, start, end } = request
  const { first, end: stop } = stripesOf(plan, start, end - start)
  const reading = readStripes({ parts, search, plan, end: stop, id })
  /** Whether a unit is missing that no known node has. */
  const isMissing = (unit: Uint8Array | undefined, shard: number) =>
    unit === undefined && !search.holders().some(({ index }) => index === shard)
  let is_short = false
  try {
    for (let stripe = first; stripe < stop; stripe++) {
      const available = await reading.next(stripe)
      if (stripe === first) onMeta(reading.meta())
      is_short ||= available.slice(0, plan.data_shards).some(isMissing)
      yield pieceOf(parts, request, stripe, available)
    }
  } finally {
    reading.close()
    if (is_short) parts.onShortfall?.(id)
  }
}

/** Reads the whole range into memory: a small blob, or the first piece of a large one. */
const gather = async (parts: ErasureParts, search: Search, request: ReadRequest) => {
  const bytes = new Uint8Array(request.end - request.start)
  let meta: BlobMeta | undefined
  let used = 0
  for await (const piece of pieces(parts, search, request, (received) => {
    meta = received
  })) {
    bytes.set(piece, used)
    used += piece.length
  }
  return { bytes, meta: meta ?? (await metaOfShards(parts, search.holders())) }
}

const isWholeBlob = ({ plan, start, end }: ReadRequest) => start === 0 && end === plan.size

/** Whether the bytes match the blob's checksum; parts of a blob cannot be checked. */
const matchesHash = ({ hasher }: ErasureParts, request: ReadRequest, bytes: Uint8Array) => {
  if (!isWholeBlob(request)) return true
  const hash = hasher()
  hash.update(bytes)
  return hash.digest() === request.checksum
}

const corrupt = ({ onShortfall }: ErasureParts, id: BlobId) => {
  onShortfall?.(id)
  return faultError({
    _tag: "BlobCorrupt",
    id,
    detail: "The shards do not match the checksum of the blob.",
  })
}

/** Finds the corrupt shard by reading without each shard in turn. */
const gatherWithoutOne = async (parts: ErasureParts, search: Search, request: ReadRequest) => {
  await search.runUntil(() => false)
  for (const { peer } of search.holders()) {
    const holders = () => search.holders().filter((other) => other.peer.node_id !== peer.node_id)
    if (!isReadable(holders(), request.plan.data_shards)) continue
    const others = { ...search, holders, until: async () => false }
    const repaired = await gather(parts, others, request).catch(() => undefined)
    if (repaired && matchesHash(parts, request, repaired.bytes)) {
      parts.onShortfall?.(request.id)
      return repaired
    }
  }
  throw corrupt(parts, request.id)
}

/** Yields `first` and the rest; the last piece is held back until the hash matches. */
const streamed = async function* (
  parts: ErasureParts,
  search: Search,
  request: ReadRequest,
  first: Uint8Array,
): AsyncGenerator<Uint8Array, void> {
  const hash = isWholeBlob(request) ? parts.hasher() : undefined
  hash?.update(first)
  let pending = first
  for await (const piece of pieces(parts, search, {
    ...request,
    start: request.start + first.length,
  })) {
    hash?.update(piece)
    yield pending
    pending = piece
  }
  if (hash && hash.digest() !== request.checksum) throw corrupt(parts, request.id)
  yield pending
}

const single = async function* (bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield bytes
}

/**
 * Opens an erasure coded blob. `known` are shards found before, by node. Rejects with BlobNotFound
 * if all nodes responded and have too few shards, with BlobUnreachable if some are offline or did
 * not respond, and with BlobCorrupt. A large blob may also fail with the last two while streaming.
 */
export const getErasure = async (
  parts: ErasureParts,
  id: BlobId,
  range: BlobRange,
  known: ReadonlyMap<string, HeldCopy>,
): Promise<BlobReading> => {
  const search = searchShards(parts, id, known)
  const request = await findShards(parts, id, range, search)
  const { start, end, plan } = request
  if (end - start <= window_bytes) {
    const gathered = await gather(parts, search, request)
    const is_good = matchesHash(parts, request, gathered.bytes)
    const { bytes, meta } = is_good ? gathered : await gatherWithoutOne(parts, search, request)
    return { meta, data: bytes, windows: () => single(bytes) }
  }
  const stripe_bytes = plan.data_shards * unit_bytes
  const first_end = start - (start % stripe_bytes) + stripe_bytes
  const { bytes, meta } = await gather(parts, search, { ...request, end: Math.min(first_end, end) })
  return { meta, data: undefined, windows: () => streamed(parts, search, request, bytes) }
}
