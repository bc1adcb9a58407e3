/**
 * Erasure coded blobs as they are read: from any shards that are enough, a stripe at a time, and
 * checked against the blob's own hash before the last of it is handed out.
 *
 * Source: document 1 §1, §2 Replication policies; DECISIONS, document 1, integrity; decision 0124.
 */

import type { BlobRange, BlobReading } from "#actors/blob-storage/blobs/engine.ts"
import { thrown } from "#actors/blob-storage/blobs/fault.ts"
import type { HeldCopy } from "#actors/blob-storage/node-engine.ts"
import {
  dataOfStripe,
  type GivenUnits,
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

/** What is asked for of a blob whose shards were found: from `start`, and before `end`. */
interface Asked {
  readonly id: BlobId
  readonly checksum: string
  readonly plan: Striping
  readonly start: number
  readonly end: number
}

const find = async (
  parts: ErasureParts,
  id: BlobId,
  { offset = 0, length }: BlobRange,
  search: Search,
): Promise<Asked> => {
  const data_shards = await findReadable(search)
  const holders = search.holders()
  const copy = holders.find((holder) => holder.copy.shard?.data_shards === data_shards)?.copy
  if (data_shards === undefined || copy === undefined) {
    if (holders.length > 0) parts.onShortfall?.(id)
    // Shards say that there is, or was, such a blob: who is away may have the others.
    const away = holders.length > 0 ? (parts.members().offline ?? []) : []
    const missing = search.unanswered() + away.length
    if (missing === 0) throw thrown({ _tag: "BlobNotFound", id })
    const detail = `${holders.length} of its shards were found, ${missing} nodes do not answer.`
    throw thrown({ _tag: "BlobUnreachable", detail })
  }
  const { size, checksum } = copy
  const start = Math.min(Math.max(offset, 0), size)
  const end = Math.min(start + Math.max(length ?? size, 0), size)
  return { id, checksum, plan: striping(size, data_shards), start, end }
}

/**
 * What is known of the blob, from a node with a shard. The youngest is asked first: where the same
 * bytes were deleted on some nodes and put again, the others still know of the first time.
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
      // The next one knows as much.
    }
  }
  throw thrown({ _tag: "BlobUnreachable", detail: "No node that has a shard answers." })
}

/** The bytes of one stripe that are asked for, in one piece. */
const pieceOf = (
  { openCode }: ErasureParts,
  { plan, start, end }: Asked,
  stripe: number,
  given: GivenUnits,
): Uint8Array => {
  const units = dataOfStripe(openCode(plan.data_shards), plan, stripe, given)
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

/** What is asked for, in a piece of each stripe; `meet` is told what is known of the blob. */
const pieces = async function* (
  parts: ErasureParts,
  search: Search,
  asked: Asked,
  meet: (meta: BlobMeta) => void = () => undefined,
) {
  const { id, plan, start, end } = asked
  const { first, end: stop } = stripesOf(plan, start, end - start)
  const reading = readStripes({ parts, search, plan, end: stop, id })
  /** Whether a unit had to be made that no node is known to have. */
  const isMissing = (unit: Uint8Array | undefined, shard: number) =>
    unit === undefined && !search.holders().some(({ index }) => index === shard)
  let is_short = false
  try {
    for (let stripe = first; stripe < stop; stripe++) {
      const given = await reading.next(stripe)
      if (stripe === first) meet(reading.meta())
      is_short ||= given.slice(0, plan.data_shards).some(isMissing)
      yield pieceOf(parts, asked, stripe, given)
    }
  } finally {
    reading.close()
    if (is_short) parts.onShortfall?.(id)
  }
}

/** All that is asked for at once: of a small blob, or the first piece of a large one. */
const gather = async (parts: ErasureParts, search: Search, asked: Asked) => {
  const bytes = new Uint8Array(asked.end - asked.start)
  let meta: BlobMeta | undefined
  let used = 0
  for await (const piece of pieces(parts, search, asked, (met) => {
    meta = met
  })) {
    bytes.set(piece, used)
    used += piece.length
  }
  return { bytes, meta: meta ?? (await metaOfShards(parts, search.holders())) }
}

const isAll = ({ plan, start, end }: Asked) => start === 0 && end === plan.size

/** Whether these bytes are what the blob's name says; a part of them has no name. */
const agrees = ({ hasher }: ErasureParts, asked: Asked, bytes: Uint8Array) => {
  if (!isAll(asked)) return true
  const hash = hasher()
  hash.update(bytes)
  return hash.digest() === asked.checksum
}

const corrupt = ({ onShortfall }: ErasureParts, id: BlobId) => {
  onShortfall?.(id)
  return thrown({ _tag: "BlobCorrupt", id, detail: "The shards do not make the blob." })
}

/** The bytes without one of the shards, whichever it is that is not what it says. */
const gatherWithoutOne = async (parts: ErasureParts, search: Search, asked: Asked) => {
  await search.until(() => false)
  for (const { peer } of search.holders()) {
    const holders = () => search.holders().filter((other) => other.peer.node_id !== peer.node_id)
    if (!isReadable(holders(), asked.plan.data_shards)) continue
    const others = { ...search, holders, until: async () => false }
    const tried = await gather(parts, others, asked).catch(() => undefined)
    if (tried && agrees(parts, asked, tried.bytes)) {
      parts.onShortfall?.(asked.id)
      return tried
    }
  }
  throw corrupt(parts, asked.id)
}

/** What is asked for, `first` being read already; the last piece is kept until the hash agrees. */
const streamed = async function* (
  parts: ErasureParts,
  search: Search,
  asked: Asked,
  first: Uint8Array,
): AsyncGenerator<Uint8Array, void> {
  const hash = isAll(asked) ? parts.hasher() : undefined
  hash?.update(first)
  let kept = first
  for await (const piece of pieces(parts, search, {
    ...asked,
    start: asked.start + first.length,
  })) {
    hash?.update(piece)
    yield kept
    kept = piece
  }
  if (hash && hash.digest() !== asked.checksum) throw corrupt(parts, asked.id)
  yield kept
}

const once = async function* (bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield bytes
}

/**
 * Opens an erasure coded blob. `known` are the shards that were met already, by node. Fails with
 * BlobNotFound where all nodes were asked and have too few, with BlobUnreachable where some could
 * not be asked or are offline, and with BlobCorrupt; a large blob's pieces may fail with the last
 * two too.
 */
export const getErasure = async (
  parts: ErasureParts,
  id: BlobId,
  range: BlobRange,
  known: ReadonlyMap<string, HeldCopy>,
): Promise<BlobReading> => {
  const search = searchShards(parts, id, known)
  const asked = await find(parts, id, range, search)
  const { start, end, plan } = asked
  if (end - start <= window_bytes) {
    const gathered = await gather(parts, search, asked)
    const is_good = agrees(parts, asked, gathered.bytes)
    const { bytes, meta } = is_good ? gathered : await gatherWithoutOne(parts, search, asked)
    return { meta, data: bytes, windows: () => once(bytes) }
  }
  const stripe_bytes = plan.data_shards * unit_bytes
  const first_end = start - (start % stripe_bytes) + stripe_bytes
  const { bytes, meta } = await gather(parts, search, { ...asked, end: Math.min(first_end, end) })
  return { meta, data: undefined, windows: () => streamed(parts, search, asked, bytes) }
}
