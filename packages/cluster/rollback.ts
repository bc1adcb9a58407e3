/**
 * Rolls back the shards of failed puts, except those that another put may rely on.
 *
 * Two nodes that put the same bytes concurrently may each count the same shard as theirs. If one
 * put fails and rolls back the shards it sent, the blob of the other must stay complete. So a node
 * remembers which shards it has reported to any caller since they arrived, and keeps those.
 *
 * Source: document 1 §7, `too many shard store failures`; decision 0124.
 */

import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type {
  Deletion,
  HeldCopy,
  IncomingCopy,
  NodeEngine,
} from "#actors/blob-storage/ports/node-engine.ts"
import { store_origin } from "#actors/blob-storage/ports/origin.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { makeSignal } from "./signal.ts"
import type { Timing } from "./timing.ts"
import { verifyCopy } from "./verify.ts"

/** Maximum number of remembered arrivals and reports. When an entry is evicted, its shard stays. */
const entries_max = 100_000

/** The operations of the local store that peers, and this node's own puts, must go through. */
export interface RollbackGuard {
  readonly receive: NodeEngine["receive"]
  readonly copiesOf: NodeEngine["copiesOf"]
  /**
   * Like `renew` of the engine, after verifying the whole copy: the caller relies on bytes that it
   * has not sent, and may confirm them to a client.
   */
  readonly renew: NodeEngine["renew"]
  /** The same without verification, for a put that has read the copy or sent its bytes. */
  readonly renewVerified: NodeEngine["renew"]
  /**
   * Removes the shard that the put of `created_at` sent, if it arrived since this process started
   * and was not reported since then. Otherwise it stays until a sweep removes it.
   */
  readonly rollBack: (id: BlobId, created_at: bigint) => Promise<void>
  /**
   * Removes the shard stored at `stored_at` if it was not reported since `since`, in Unix
   * nanoseconds by this node's clock. For shards of unfinished puts. Returns whether it was
   * removed.
   */
  readonly releaseUnreported: (id: BlobId, stored_at: bigint, since: bigint) => Promise<boolean>
}

/**
 * A map of the `pairs_max` newest entries. It evicts with one long-lived iterator, because a new
 * iterator first skips the deleted entries that V8 has not compacted yet: that cost 13 us an
 * eviction at 100,000 entries and 58 us at 250,000, and this costs 1 to 3 us.
 */
export const makeNewestMap = <V>(pairs_max: number) => {
  const pairs = new Map<BlobId, V>()
  const oldest = pairs.keys()

  const forgetOldest = () => {
    // Keys that the iterator has passed are never in the map again, except at its end.
    const { value: id } = oldest.next()
    if (id === undefined) return undefined
    const evicted = pairs.get(id)
    pairs.delete(id)
    return evicted
  }
  return {
    get: (id: BlobId) => pairs.get(id),
    delete: (id: BlobId) => pairs.delete(id),
    /** Returns the value that was evicted, if any. */
    remember: (id: BlobId, value: V): V | undefined => {
      pairs.delete(id)
      pairs.set(id, value)
      return pairs.size > pairs_max ? forgetOldest() : undefined
    },
  }
}

/** One lock per blob. */
const makeLocks = () => {
  const busy = new Set<BlobId>()
  const signal = makeSignal()
  return {
    isBusy: (id: BlobId) => busy.has(id),
    free: signal.wait,
    take: async <A>(id: BlobId, run: () => Promise<A>) => {
      while (busy.has(id)) await signal.wait()
      busy.add(id)
      try {
        return await run()
      } finally {
        busy.delete(id)
        signal.notify()
      }
    },
  }
}

/**
 * Verifies the local copy before renewing it. Verification may take long, so it holds no lock;
 * concurrent requests share it.
 */
const makeRenewAfterVerify = (
  local: NodeEngine,
  { now }: Timing,
  renewRead: NodeEngine["renew"],
): NodeEngine["renew"] => {
  const readings = new Map<BlobId, Promise<void>>()
  const read = async (id: BlobId) => {
    try {
      await verifyCopy(local, id, now())
    } catch (cause) {
      // A corrupt copy was removed by the failed read, and one that replaced it was just written.
      if (!["BlobNotFound", "BlobCorrupt"].includes(faultOf(cause)._tag)) throw cause
    } finally {
      readings.delete(id)
    }
  }
  return async (id, put_at, at) => {
    const reading = readings.get(id) ?? read(id)
    readings.set(id, reading)
    await reading
    return renewRead(id, put_at, at)
  }
}

/**
 * Renews a copy and marks it as reported. Of several requests that wait for the lock, the first
 * renews to the latest of their times, so that all of them wait for one disk write.
 */
const makeRenew = (
  local: NodeEngine,
  locks: ReturnType<typeof makeLocks>,
  markReported: (id: BlobId) => void,
): NodeEngine["renew"] => {
  const latest = new Map<BlobId, bigint>()
  return (id, put_at, at) => {
    if (put_at > (latest.get(id) ?? -1n)) latest.set(id, put_at)
    return locks.take(id, async () => {
      const others = latest.get(id)
      latest.delete(id)
      // The previous holder of the lock may have included this time and failed.
      const wanted = others !== undefined && others > put_at ? others : put_at
      const copy = await local.renew(id, wanted, at)
      if (copy !== undefined) markReported(id)
      return copy
    })
  }
}

/** A shard that arrived: the `created_at` of its blob, and the deletion that it replaced. */
interface Arrival {
  readonly created_at: bigint
  readonly replaced: Deletion | undefined
}

export const rollbackGuard = (local: NodeEngine, timing: Timing): RollbackGuard => {
  /** Shards that arrived and were not reported yet. */
  const arrivals = makeNewestMap<Arrival>(entries_max)
  const reported = makeNewestMap<bigint>(entries_max)
  /** Reports before this time are unknown. */
  let reported_since = timing.now()
  const queries = new Set<ReadonlySet<BlobId>>()
  const locks = makeLocks()

  const markReported = (id: BlobId) => {
    arrivals.delete(id)
    const evicted = reported.remember(id, timing.now())
    if (evicted !== undefined && evicted >= reported_since) reported_since = evicted + 1n
  }
  const renewRead = makeRenew(local, locks, markReported)

  const receive: NodeEngine["receive"] = (order, bytes) => {
    const receiving: IncomingCopy = local.receive(order, bytes)
    const finish = async (at: bigint) => {
      const { id, created_at } = order
      const [before] = order.shard ? await local.copiesOf([id]) : []
      const received = await receiving.finish(at)
      const replaced = before?.kind === "tombstone" ? before : undefined
      if (received.created && order.shard) arrivals.remember(id, { created_at, replaced })
      else markReported(id)
      return received
    }
    return { ...receiving, finish: (at) => locks.take(order.id, () => finish(at)) }
  }
  const copiesOf: NodeEngine["copiesOf"] = async (ids) => {
    while (ids.some(locks.isBusy)) await locks.free()
    const query = new Set(ids)
    queries.add(query)
    try {
      const copies = await local.copiesOf(ids)
      for (const copy of copies) if (copy && copy.kind !== "tombstone") markReported(copy.id)
      return copies
    } finally {
      queries.delete(query)
    }
  }
  const isFromPut = (id: BlobId, created_at: bigint) => arrivals.get(id)?.created_at === created_at
  /** Removes a shard while no transfer or query of the blob is running. */
  const release = (id: BlobId, isWanted: (copy: HeldCopy) => boolean) =>
    locks.take(id, async () => {
      if (queries.values().some((ids) => ids.has(id))) return false
      const [copy] = await local.copiesOf([id])
      if (copy?.kind !== "shard" || !isWanted(copy)) return false
      const { replaced } = arrivals.get(id) ?? {}
      if (replaced === undefined) return local.release(id, copy.stored_at, timing.now())
      // Releasing the shard alone would also forget the deletion it replaced, and older copies
      // could return.
      await local.delete(id, store_origin, timing.now())
      if (replaced.is_cluster_wide)
        await local.deleteClusterWide(id, store_origin, replaced.deleted_at)
      return true
    })
  return {
    receive,
    copiesOf,
    renewVerified: renewRead,
    renew: makeRenewAfterVerify(local, timing, renewRead),
    rollBack: async (id, created_at) => {
      await release(id, (copy) => copy.created_at === created_at && isFromPut(id, created_at))
      if (isFromPut(id, created_at)) arrivals.delete(id)
    },
    releaseUnreported: (id, stored_at, since) =>
      release(id, (copy) => {
        const reported_at = reported.get(id)
        const is_unreported =
          since >= reported_since && (reported_at === undefined || reported_at < since)
        return copy.stored_at === stored_at && is_unreported
      }),
  }
}
