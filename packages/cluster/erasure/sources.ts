/**
 * A blob's shards as they are read: from as many nodes as it takes, stripe by stripe and in step. A
 * node that fails or is slow is exchanged for another at the stripe where that is seen.
 *
 * Source: document 1 §2 Replication policies; decision 0124.
 */

import { faultOf, thrown } from "#actors/blob-storage/blobs/fault.ts"
import { type GivenUnits, parity_shards, type Striping, unit_bytes } from "#erasure"
import type { BlobId, BlobMeta } from "#schemas/blob-storage/blob.ts"
import { type Bell, makeBell } from "../bell.ts"
import { isPeerFailure } from "../peer-failure.ts"
import { type ErasureParts, hedge_ms, stall_ms } from "./layout.ts"
import type { Holder, Search } from "./search.ts"

/** Units that one node may be ahead of what is read. */
const ahead_max = 2
/** How often one node is asked for its shard again, in one reading. */
const tries_max = 3

type Parts = Pick<ErasureParts, "local" | "peers" | "members" | "timing">

/** Bytes of any lengths, taken in lengths that are asked for. */
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

/** Opens a shard where it lies, for some of its bytes. */
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

/** Whether the copy that was opened is the shard that was looked for. */
const isMeant = ({ copy, index }: Holder, opened: Opened["copy"]) =>
  opened.shard?.index === index &&
  opened.shard.data_shards === copy.shard?.data_shards &&
  opened.size === copy.size &&
  opened.checksum === copy.checksum

/** A shard that is being read, from one node. */
interface Source {
  readonly holder: Holder
  /** What is known of the blob there, once it is open. */
  readonly meta: () => BlobMeta | undefined
  /** The unit of the stripe, where it has come. */
  readonly unit: (stripe: number) => Uint8Array | undefined
  readonly failure: () => unknown
  /** Gives the unit's room free: the stripe is done with. */
  readonly next: () => void
  readonly close: () => void
}

/** Bytes of a shard before a stripe: all but the last are of whole units. */
const shardOffset = (stripe: number) => stripe * unit_bytes

const makeSource = (
  parts: Parts,
  holder: Holder,
  plan: Striping,
  { from, end }: { readonly from: number; readonly end: number },
  came: Bell,
): Source => {
  const units: Array<Uint8Array> = []
  const room = makeBell()
  let meta: BlobMeta | undefined
  let failure: unknown
  let head = from
  let is_closed = false
  let bytes: AsyncIterator<Uint8Array> | undefined

  const close = () => {
    if (is_closed) return
    is_closed = true
    room.ring()
    // What it still had to say is of no more use, and neither is how it ends.
    bytes?.return?.().then(undefined, () => undefined)
  }
  const read = async () => {
    const offset = shardOffset(from)
    const length = shardOffset(end - 1) + plan.unitOf(end - 1) - offset
    const opened = await openShard(parts, holder, offset, length)
    bytes = opened.bytes
    if (!isMeant(holder, opened.copy)) throw new Error("the node has another copy by now")
    meta = opened.meta
    const take = unitsOf(bytes)
    for (let stripe = from; stripe < end && !is_closed; stripe++) {
      units.push(await take(plan.unitOf(stripe)))
      came.ring()
      while (units.length >= ahead_max && !is_closed) await room.heard()
    }
    // All that was asked for has come: what the node says behind it is of no matter.
    if (!is_closed) await bytes.next().catch(() => undefined)
  }
  read()
    .catch((cause: unknown) => {
      failure = cause
      came.ring()
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
      room.ring()
    },
    close,
  }
}

/** Whether what a node said of its shard says that the shard is not there, or not whole. */
const isGone = (cause: unknown) => {
  if (isPeerFailure(cause)) return cause.code === "NOT_FOUND" || cause.code === "DATA_LOSS"
  const { _tag } = faultOf(cause)
  return _tag === "BlobNotFound" || _tag === "BlobCorrupt"
}

export interface StripeReading {
  /** What the nodes that are read from know of the blob: the one whose shard is the youngest. */
  readonly meta: () => BlobMeta
  /** The units of one stripe after the other, with those missing that nobody gave. */
  readonly next: (stripe: number) => Promise<GivenUnits>
  /** Ends what is under way; in any case to be called. */
  readonly close: () => void
}

/** Which nodes are worth asking, and which of them first. */
const makeCandidates = (search: Search, data_shards: number) => {
  const tries = new Map<string, number>()
  const rank = ({ peer, index }: Holder) =>
    (tries.get(peer.node_id) ?? 0) * 1000 + (index < data_shards ? 0 : 100) + index
  return {
    /** The best one that is not open, of an index that is not `busy`. */
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

/** Those that have the stripe, one of each index, those of data first, as many as are needed. */
const readyOf = (sources: ReadonlyArray<Source>, stripe: number, count: number) => {
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

/** Whether it failed before the stripe: what came before that is good. */
const isLost = (source: Source, stripe: number) =>
  source.failure() !== undefined && source.unit(stripe) === undefined

interface Reading {
  readonly parts: Parts & Pick<ErasureParts, "onShortfall">
  readonly search: Search
  readonly plan: Striping
  /** The stripe before which the reading ends. */
  readonly end: number
  readonly id: BlobId
}

/** The sources that are open, as many different ones as it takes, and more where some are slow. */
const makeSources = ({ parts, search, plan, end, id }: Reading) => {
  const { data_shards } = plan
  const candidates = makeCandidates(search, data_shards)
  const came = makeBell()
  let sources: ReadonlyArray<Source> = []

  const drop = (source: Source, is_gone: boolean) => {
    source.close()
    candidates.failed(source.holder, is_gone)
    sources = sources.filter((other) => other !== source)
  }
  /** Opens one more, of an index that is not open; where `is_hedge`, any that is not there yet. */
  const open = (stripe: number, is_hedge: boolean) => {
    const waiting = () => sources.filter((source) => source.unit(stripe))
    const best =
      candidates.pick(sources, indexesOf(sources)) ??
      (is_hedge ? candidates.pick(sources, indexesOf(waiting())) : undefined)
    if (best === undefined) return false
    sources = [...sources, makeSource(parts, best, plan, { from: stripe, end }, came)]
    return true
  }
  const dropLost = (stripe: number) => {
    for (const source of sources.filter((one) => isLost(one, stripe))) {
      const is_gone = isGone(source.failure())
      drop(source, is_gone)
      if (is_gone) parts.onShortfall?.(id)
    }
  }
  return {
    drop,
    dropLost,
    all: () => sources,
    hasLost: (stripe: number) => sources.some((source) => isLost(source, stripe)),
    /** Opens until enough are under way; false where there are not so many. */
    fill: async (stripe: number, hedges: number): Promise<boolean> => {
      while (indexesOf(sources).size < data_shards) {
        if (open(stripe, false)) continue
        const known = search.holders().length
        const is_more = await search.until((holders) => holders.length > known)
        dropLost(stripe)
        if (!is_more) return false
      }
      while (sources.length < data_shards + hedges && open(stripe, true));
      return true
    },
    /** Waits until one of them gives or fails; `late` is run where that takes too long. */
    heard: async (late: () => void) => {
      const cancel = parts.timing.after(hedge_ms, () => {
        late()
        came.ring()
      })
      await came.heard()
      cancel()
    },
    close: () => {
      for (const source of sources) source.close()
      sources = []
    },
  }
}

const unreachable = (why: string, data_shards: number) =>
  thrown({ _tag: "BlobUnreachable", detail: `${why}: ${data_shards} shards are needed.` })

/**
 * Reads the stripes from some on and before `end` of a blob in step. `next` is asked for each in
 * turn, and rejects with BlobUnreachable where fewer nodes give their units than it takes.
 */
export const readStripes = (reading: Reading): StripeReading => {
  const { data_shards } = reading.plan
  const { all, drop, dropLost, hasLost, fill, heard, close } = makeSources(reading)
  let meta: BlobMeta | undefined

  const gather = async (stripe: number): Promise<ReadonlyArray<Source>> => {
    for (let hedges = 0; hedges * hedge_ms < stall_ms; ) {
      dropLost(stripe)
      const ready = readyOf(all(), stripe, data_shards)
      if (ready) return ready
      if (!(await fill(stripe, hedges))) {
        throw unreachable("Too few nodes give their shards", data_shards)
      }
      if (readyOf(all(), stripe, data_shards) || hasLost(stripe)) continue
      await heard(() => {
        hedges += 1
      })
    }
    throw unreachable(`The nodes gave no more for ${stall_ms} ms`, data_shards)
  }
  /** The blob as it was put last. */
  const meet = (met: BlobMeta | undefined) => {
    if (met && (meta === undefined || met.created_at > meta.created_at)) meta = met
  }
  return {
    meta: () => {
      if (meta === undefined) throw new Error("the blob's first stripe was not read yet")
      return meta
    },
    next: async (stripe) => {
      const ready = await gather(stripe)
      // Whoever was not among the first is late at this stripe already.
      for (const source of all()) if (!ready.includes(source)) drop(source, false)
      const given: Array<Uint8Array | undefined> = Array.from({
        length: data_shards + parity_shards,
      })
      for (const source of ready) {
        meet(source.meta())
        given[source.holder.index] = source.unit(stripe)
        source.next()
      }
      return given
    },
    close,
  }
}
