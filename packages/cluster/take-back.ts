/**
 * What a node tells others of the copies that it has, and what may be let go all the same: a shard
 * that an unfinished put had sent, unless somebody was told of it in between.
 *
 * Two nodes that put the same bytes at once may count one shard each for their own. If one of them
 * fails and takes back what it had sent, the other's blob must not miss it.
 *
 * Source: document 1 §7, `too many shard store failures`; decision 0124.
 */

import { store_origin } from "#actors/blob-storage/blobs/admission.ts"
import { faultOf } from "#actors/blob-storage/blobs/fault.ts"
import type { Deletion, HeldCopy, NodeEngine, Receiving } from "#actors/blob-storage/node-engine.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { makeBell } from "./bell.ts"
import { readThrough } from "./sound-reading.ts"
import type { Timing } from "./timing.ts"

/** Shards, and tellings, that are remembered: of more the oldest is forgotten, and so it stays. */
const remembered_max = 100_000

/** The part of a node's store that other nodes' questions come to, and the node's own puts. */
export interface TakeBackGuard {
  readonly receive: NodeEngine["receive"]
  readonly copiesOf: NodeEngine["copiesOf"]
  /**
   * As the engine's, once all of the copy was read: whoever asks for it counts on bytes that it has
   * not brought, and may tell a client so.
   */
  readonly renew: NodeEngine["renew"]
  /** The same for a put that has read the copy already, or has brought its bytes. */
  readonly renewRead: NodeEngine["renew"]
  /**
   * Lets the shard go that the put of `created_at` had sent here, if it came since this process
   * began and nobody was told of it since; else it stays for the sweep.
   */
  readonly takeBack: (id: BlobId, created_at: bigint) => Promise<void>
  /**
   * Lets the shard that came at `stored_at` go if nobody was told of it since `since`, by this
   * node's clock in Unix nanoseconds: for one that no put has finished. Says whether it is gone.
   */
  readonly releaseUntold: (id: BlobId, stored_at: bigint, since: bigint) => Promise<boolean>
}

/**
 * At most so many pairs, the newest ones. The places of pairs that went are passed over once, by an
 * iterator that is kept: a new one passes over as many as V8 has not yet cleared away, which took
 * 13 us for each copy behind the first 100,000 and 58 us behind 250,000, where this takes 1 to 3.
 */
export const makeNewest = <V>(pairs_max: number) => {
  const pairs = new Map<BlobId, V>()
  const oldest = pairs.keys()

  const forgetOldest = () => {
    // None that it has come by is among them any more.
    const { value: id } = oldest.next()
    if (id === undefined) return undefined
    const forgotten = pairs.get(id)
    pairs.delete(id)
    return forgotten
  }
  return {
    get: (id: BlobId) => pairs.get(id),
    delete: (id: BlobId) => pairs.delete(id),
    /** Answers what was forgotten for it. */
    remember: (id: BlobId, value: V): V | undefined => {
      pairs.delete(id)
      pairs.set(id, value)
      return pairs.size > pairs_max ? forgetOldest() : undefined
    },
  }
}

/** One at a time for each identifier. */
const makeTurns = () => {
  const busy = new Set<BlobId>()
  const bell = makeBell()
  return {
    isBusy: (id: BlobId) => busy.has(id),
    free: bell.heard,
    take: async <A>(id: BlobId, run: () => Promise<A>) => {
      while (busy.has(id)) await bell.heard()
      busy.add(id)
      try {
        return await run()
      } finally {
        busy.delete(id)
        bell.ring()
      }
    },
  }
}

/**
 * Reads what is here before it is renewed, outside of any turn: that may take long. Who asks while
 * it is read is served by the same reading.
 */
const makeReadFirst = (
  local: NodeEngine,
  { now }: Timing,
  renewRead: NodeEngine["renew"],
): NodeEngine["renew"] => {
  const readings = new Map<BlobId, Promise<void>>()
  const read = async (id: BlobId) => {
    try {
      await readThrough(local, id, now())
    } catch (cause) {
      // What was corrupt is gone now, and what has come in its place was just written.
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
 * Whoever has a copy take over a put's time counts on it from now on. Of many that wait for their
 * turn the first takes over the latest time for all, so that they wait for one write of the disk.
 */
const makeRenew = (
  local: NodeEngine,
  turns: ReturnType<typeof makeTurns>,
  tell: (id: BlobId) => void,
): NodeEngine["renew"] => {
  const latest = new Map<BlobId, bigint>()
  return (id, put_at, at) => {
    if (put_at > (latest.get(id) ?? -1n)) latest.set(id, put_at)
    return turns.take(id, async () => {
      const others = latest.get(id)
      latest.delete(id)
      // Who had the turn before may have taken this time along, and failed with it.
      const wanted = others !== undefined && others > put_at ? others : put_at
      const copy = await local.renew(id, wanted, at)
      if (copy !== undefined) tell(id)
      return copy
    })
  }
}

/** A shard that came: its blob's `created_at`, and the deletion that it took the place of. */
interface Came {
  readonly created_at: bigint
  readonly over: Deletion | undefined
}

export const takeBackGuard = (local: NodeEngine, timing: Timing): TakeBackGuard => {
  /** The shards that came and that nobody was told of. */
  const came = makeNewest<Came>(remembered_max)
  const told = makeNewest<bigint>(remembered_max)
  /** What was told before is not known any more. */
  let known_since = timing.now()
  const asked = new Set<ReadonlySet<BlobId>>()
  const turns = makeTurns()

  const tell = (id: BlobId) => {
    came.delete(id)
    const forgotten = told.remember(id, timing.now())
    if (forgotten !== undefined && forgotten >= known_since) known_since = forgotten + 1n
  }
  const renewRead = makeRenew(local, turns, tell)
  const isAsked = (id: BlobId) => asked.values().some((ids) => ids.has(id))

  const receive: NodeEngine["receive"] = (order, bytes) => {
    const receiving: Receiving = local.receive(order, bytes)
    const finish = async (at: bigint) => {
      const { id, created_at } = order
      const [before] = order.shard ? await local.copiesOf([id]) : []
      const received = await receiving.finish(at)
      const over = before?.kind === "tombstone" ? before : undefined
      if (received.created && order.shard) came.remember(id, { created_at, over })
      else tell(id)
      return received
    }
    return { ...receiving, finish: (at) => turns.take(order.id, () => finish(at)) }
  }
  const copiesOf: NodeEngine["copiesOf"] = async (ids) => {
    while (ids.some(turns.isBusy)) await turns.free()
    const asking = new Set(ids)
    asked.add(asking)
    try {
      const copies = await local.copiesOf(ids)
      for (const copy of copies) if (copy && copy.kind !== "tombstone") tell(copy.id)
      return copies
    } finally {
      asked.delete(asking)
    }
  }
  const isOf = (id: BlobId, created_at: bigint) => came.get(id)?.created_at === created_at
  /** Runs where nothing comes for the blob, and nobody asks: not even in the meantime. */
  const letGo = (id: BlobId, isMeant: (copy: HeldCopy) => boolean) =>
    turns.take(id, async () => {
      if (isAsked(id)) return false
      const [copy] = await local.copiesOf([id])
      if (copy?.kind !== "shard" || !isMeant(copy)) return false
      const { over } = came.get(id) ?? {}
      if (over === undefined) return local.release(id, copy.stored_at, timing.now())
      // With the shard the deletion under it would be forgotten, and what is older come back.
      await local.delete(id, store_origin, timing.now())
      if (over.is_cluster_wide) await local.deleteClusterWide(id, store_origin, over.deleted_at)
      return true
    })
  return {
    receive,
    copiesOf,
    renewRead,
    renew: makeReadFirst(local, timing, renewRead),
    takeBack: async (id, created_at) => {
      await letGo(id, (copy) => copy.created_at === created_at && isOf(id, created_at))
      if (isOf(id, created_at)) came.delete(id)
    },
    releaseUntold: (id, stored_at, since) =>
      letGo(id, (copy) => {
        const told_at = told.get(id)
        const is_untold = since >= known_since && (told_at === undefined || told_at < since)
        return copy.stored_at === stored_at && is_untold
      }),
  }
}
