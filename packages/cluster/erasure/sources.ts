/**
 * Reads the shards of a blob from as many nodes as needed, stripe by stripe in step. A node that
 * fails or is slow is replaced by another at that stripe.
 *
 * Source: document 1 §2 Replication policies; decision 0124.
 */

import { faultError, faultOf } from "#actors/blob-storage/ports/fault.ts"
import { type AvailableUnits, parity_shards, type Striping, unit_bytes } from "#erasure"
import type { BlobId, BlobMeta } from "#schemas/blob-storage/blob.ts"
import { isPeerFailure } from "../peer-failure.ts"
import { makeSignal, type Signal } from "../signal.ts"
import { type ErasureParts, hedge_ms, stall_ms } from "./layout.ts"
import type { Holder, Search } from "./search.ts"

/** Maximum number of units that are read ahead from one node. */
const ahead_max = 2
/** Maximum number of attempts per node in one read. */
const tries_max = 3

type Parts = Pick<ErasureParts, "local" | "peers" | "members" | "timing">

/** Regroups a byte stream into pieces of requested lengths. */
const unitsOf = (bytes: AsyncIterator<Uint8Array>) => {
  let rest: Uint8Array = new Uint8Array(0)
  const more = async () => {
    const { done, value } = await bytes.next()
    if (done === true) throw new Error("the shard ended before its length")
    rest = value
  }
  return async (length: number): Promise<Uint8Array> => {
    while (rest.length === 0) await more()
    if (rest.length >= length) {
      const unit = rest.subarray(0, length)
      rest = rest.subarray(length)
      return unit
    }
    const unit = new Uint8Array(length)
    for (let used = 0; used < length; ) {
      if (rest.length === 0) await more()
      const part = rest.subarray(0, length - used)
      unit.set(part, used)
      used += part.length
      rest = rest.subarray(part.length)
    }
    return unit
  }
}

interface Opened {
  readonly copy: Holder["copy"]
  readonly meta: BlobMeta
  readonly bytes: AsyncIterator<Uint8Array>
}

/** Opens a range of a shard, locally or on its node. */
const openShard = async (
  { local, peers, members, timing }: Parts,
  { peer, copy: { id } }: Holder,
  offset: number,
  length: number,
): Promise<Opened> => {
  const range = { offset, length }
  if (peer.node_id !== members().node_id) return peers.fetch(peer, id, range, stall_ms)
  const { copy, meta, data, windows } = await local.read(id, range, timing.now())
  const all = async function* () {
    if (data) yield data
  }
  return { copy, meta, bytes: data ? all() : windows() }
}

/** Whether the opened copy is the expected shard. */
const isSameShard = ({ copy, index }: Holder, opened: Opened["copy"]) =>
  opened.shard?.index === index &&
  opened.shard.data_shards === copy.shard?.data_shards &&
  opened.size === copy.size &&
  opened.checksum === copy.checksum

/** A shard being read from one node. */
interface Source {
  readonly holder: Holder
  /** The blob's metadata on that node, once the shard is open. */
  readonly meta: () => BlobMeta | undefined
  /** The unit of the stripe, if it has arrived. */
  readonly unit: (stripe: number) => Uint8Array | undefined
  readonly failure: () => unknown
  /** Discards the oldest unit: its stripe is complete. */
  readonly next: () => void
  readonly close: () => void
}

/** Offset of a stripe in a shard. All units but the last have full length. */
const shardOffset = (stripe: number) => stripe * unit_bytes

const makeSource = (
  parts: Parts,
  holder: Holder,
  plan: Striping,
  { from, end }: { readonly from: number; readonly end: number },
  arrived: Signal,
): Source => {
  const units: Array<Uint8Array> = []
  const room = makeSignal()
  let meta: BlobMeta | undefined
  let failure: unknown
  let head = from
  let is_closed = false
  let bytes: AsyncIterator<Uint8Array> | undefined

  const close = () => {
    if (is_closed) return
    is_closed = true
    room.notify()
    // The rest of the response, and any error at its end, are irrelevant.
    bytes?.return?.().then(undefined, () => undefined)
  }
  const read = async () => {
    const offset = shardOffset(from)
    const length = shardOffset(end - 1) + plan.unitOf(end - 1) - offset
    const opened = await openShard(parts, holder, offset, length)
    bytes = opened.bytes
    if (!isSameShard(holder, opened.copy)) throw new Error("the node now has another copy")
    meta = opened.meta
    const take = unitsOf(bytes)
    for (let stripe = from; stripe < end && !is_closed; stripe++) {
      units.push(await take(plan.unitOf(stripe)))
      arrived.notify()
      while (units.length >= ahead_max && !is_closed) await room.wait()
    }
    // Everything requested has arrived; a later failure does not matter.
    if (!is_closed) await bytes.next().catch(() => undefined)
  }
  read()
    .catch((cause: unknown) => {
      failure = cause
      arrived.notify()
    })
    .finally(() => {
      if (failure !== undefined || is_closed) bytes?.return?.().then(undefined, () => undefined)
    })
  return {
    holder,
    meta: () => meta,
    unit: (stripe) => units[stripe - head],
    failure: () => failure,
    next: () => {
      head += 1
      units.shift()
      room.notify()
    },
    close,
  }
}

/** Whether the failure means that the shard is missing or corrupt. */
const isShardMissing = (cause: unknown) => {
  if (isPeerFailure(cause)) return cause.code === "NOT_FOUND" || cause.code === "DATA_LOSS"
  const { _tag } = faultOf(cause)
  return _tag === "BlobNotFound" || _tag === "BlobCorrupt"
}

export interface StripeReading {
  /** The blob's metadata from the most recent shard that is read. */
  readonly meta: () => BlobMeta
  /** The units of the next stripe, without those that no node sent. */
  readonly next: (stripe: number) => Promise<AvailableUnits>
  /** Ends all transfers; must always be called. */
  readonly close: () => void
}

/** The nodes worth trying, in order of preference. */
const makeCandidates = (search: Search, data_shards: number) => {
  const tries = new Map<string, number>()
  const rank = ({ peer, index }: Holder) =>
    (tries.get(peer.node_id) ?? 0) * 1000 + (index < data_shards ? 0 : 100) + index
  return {
    /** The best node without an open source, with an index that is not `busy`. */
    pick: (open: ReadonlyArray<Source>, busy: ReadonlySet<number>) => {
      const nodes = new Set(open.map(({ holder }) => holder.peer.node_id))
      const [best] = search
        .holders()
        .filter(({ peer, copy, index }) => {
          const is_worth = (tries.get(peer.node_id) ?? 0) < tries_max
          const is_of_code = copy.shard?.data_shards === data_shards
          return is_worth && is_of_code && !busy.has(index) && !nodes.has(peer.node_id)
        })
        .sort((one, other) => rank(one) - rank(other))
      return best
    },
    failed: ({ peer }: Holder, is_gone: boolean) => {
      tries.set(peer.node_id, (tries.get(peer.node_id) ?? 0) + (is_gone ? tries_max : 1))
    },
  }
}

const indexesOf = (sources: ReadonlyArray<Source>) =>
  new Set(sources.map(({ holder }) => holder.index))

/** The sources whose unit of the stripe has arrived, one per index, data shards first. */
const readySources = (sources: ReadonlyArray<Source>, stripe: number, count: number) => {
  const ready = new Map<number, Source>()
  for (const source of sources) {
    const { index } = source.holder
    if (source.unit(stripe) !== undefined && !ready.has(index)) ready.set(index, source)
  }
  if (ready.size < count) return undefined
  return [...ready.values()]
    .sort((one, other) => one.holder.index - other.holder.index)
    .slice(0, count)
}

/** Whether it failed before this stripe. Units that arrived earlier are valid. */
const isLost = (source: Source, stripe: number) =>
  source.failure() !== undefined && source.unit(stripe) === undefined

interface Reading {
  readonly parts: Parts & Pick<ErasureParts, "onShortfall">
  readonly search: Search
  readonly plan: Striping
  /** End of the read as a stripe number, exclusive. */
  readonly end: number
  readonly id: BlobId
}

/** The open sources: as many distinct shards as needed, and more if some are slow. */
const makeSources = ({ parts, search, plan, end, id }: Reading) => {
  const { data_shards } = plan
  const candidates = makeCandidates(search, data_shards)
  const arrived = makeSignal()
  let sources: ReadonlyArray<Source> = []

  const drop = (source: Source, is_gone: boolean) => {
    source.close()
    candidates.failed(source.holder, is_gone)
    sources = sources.filter((other) => other !== source)
  }
  /**
   * Opens another source with an index that is not open. As a hedge, any index whose unit has not
   * arrived will do.
   */
  const open = (stripe: number, is_hedge: boolean) => {
    const waiting = () => sources.filter((source) => source.unit(stripe))
    const best =
      candidates.pick(sources, indexesOf(sources)) ??
      (is_hedge ? candidates.pick(sources, indexesOf(waiting())) : undefined)
    if (best === undefined) return false
    sources = [...sources, makeSource(parts, best, plan, { from: stripe, end }, arrived)]
    return true
  }
  const dropLost = (stripe: number) => {
    for (const source of sources.filter((one) => isLost(one, stripe))) {
      const is_gone = isShardMissing(source.failure())
      drop(source, is_gone)
      if (is_gone) parts.onShortfall?.(id)
    }
  }
  return {
    drop,
    dropLost,
    all: () => sources,
    hasLost: (stripe: number) => sources.some((source) => isLost(source, stripe)),
    /** Opens sources until there are enough; false if there are too few. */
    fill: async (stripe: number, hedges: number): Promise<boolean> => {
      while (indexesOf(sources).size < data_shards) {
        if (open(stripe, false)) continue
        const known = search.holders().length
        const is_more = await search.runUntil((holders) => holders.length > known)
        dropLost(stripe)
        if (!is_more) return false
      }
      while (sources.length < data_shards + hedges && open(stripe, true));
      return true
    },
    /** Waits until a unit arrives or a source fails; calls `late` on timeout. */
    wait: async (late: () => void) => {
      const cancel = parts.timing.after(hedge_ms, () => {
        late()
        arrived.notify()
      })
      await arrived.wait()
      cancel()
    },
    close: () => {
      for (const source of sources) source.close()
      sources = []
    },
  }
}

const unreachable = (why: string, data_shards: number) =>
  faultError({ _tag: "BlobUnreachable", detail: `${why}: ${data_shards} shards are needed.` })

/**
 * Reads the stripes of a blob in step, up to `end`. `next` is called for each stripe in turn, and
 * rejects with BlobUnreachable if too few nodes send their units.
 */
export const readStripes = (reading: Reading): StripeReading => {
  const { data_shards } = reading.plan
  const { all, drop, dropLost, hasLost, fill, wait, close } = makeSources(reading)
  let meta: BlobMeta | undefined

  const gather = async (stripe: number): Promise<ReadonlyArray<Source>> => {
    for (let hedges = 0; hedges * hedge_ms < stall_ms; ) {
      dropLost(stripe)
      const ready = readySources(all(), stripe, data_shards)
      if (ready) return ready
      if (!(await fill(stripe, hedges))) {
        throw unreachable("Too few nodes send their shards", data_shards)
      }
      if (readySources(all(), stripe, data_shards) || hasLost(stripe)) continue
      await wait(() => {
        hedges += 1
      })
    }
    throw unreachable(`The nodes sent nothing for ${stall_ms} ms`, data_shards)
  }
  /** Keeps the metadata of the latest put. */
  const noteMeta = (next: BlobMeta | undefined) => {
    if (next && (meta === undefined || next.created_at > meta.created_at)) meta = next
  }
  return {
    meta: () => {
      if (meta === undefined) throw new Error("the blob's first stripe was not read yet")
      return meta
    },
    next: async (stripe) => {
      const ready = await gather(stripe)
      // The other sources are already late for this stripe.
      for (const source of all()) if (!ready.includes(source)) drop(source, false)
      const available: Array<Uint8Array | undefined> = Array.from({
        length: data_shards + parity_shards,
      })
      for (const source of ready) {
        noteMeta(source.meta())
        available[source.holder.index] = source.unit(stripe)
        source.next()
      }
      return available
    },
    close,
  }
}
