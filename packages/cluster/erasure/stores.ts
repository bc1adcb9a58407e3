/**
 * A blob's shards on their way to the nodes that store them: a few units each and in step, so that
 * few bytes wait. A node that fails is left behind, and the others go on.
 *
 * Source: document 1 §8 Limits, EC put tolerated shard store failures; decision 0124.
 */

import { faultOf, thrown } from "#actors/blob-storage/blobs/fault.ts"
import type { CopyOrder, Received } from "#actors/blob-storage/node-engine.ts"
import type { CopyBytes, Peer, Reason } from "#actors/blob-storage/peers.ts"
import { parity_shards } from "#erasure"
import { makeBell } from "../bell.ts"
import { isPeerFailure, peerFailure } from "../peer-failure.ts"
import { type ErasureParts, stall_ms } from "./layout.ts"

/** Units that wait for one node, 512 KiB: with more all the others wait for it. */
const waiting_max = 8

export interface Target {
  readonly peer: Peer
  readonly index: number
}

/** What became of one shard. `is_open` where the node may have stored it for all we know. */
export type Stored =
  | (Target & { readonly received: Received })
  | (Target & { readonly cause: Error; readonly is_open: boolean })

export const isStored = (stored: Stored): stored is Target & { readonly received: Received } =>
  "received" in stored

/** Units that are handed over and taken as they are: copied together they would be fewer. */
const makeQueue = () => {
  const units: Array<Uint8Array> = []
  const filled = makeBell()
  const taken = makeBell()
  let is_full = false
  let is_over = false
  let failure: Error | undefined

  const take = async function* (): AsyncGenerator<Uint8Array, void> {
    try {
      for (;;) {
        if (failure) throw failure
        const next = units.shift()
        if (next !== undefined) {
          taken.ring()
          yield next
        } else if (is_full) return
        else await filled.heard()
      }
    } finally {
      is_over = true
      units.length = 0
      taken.ring()
    }
  }
  return {
    take,
    push: (unit: Uint8Array) => {
      if (is_over || failure) return
      units.push(unit)
      filled.ring()
    },
    /** Nothing more is to come. */
    end: () => {
      is_full = true
      filled.ring()
    },
    fail: (cause: Error) => {
      failure ??= cause
      units.length = 0
      filled.ring()
      taken.ring()
    },
    /** Whether another unit may come; one that is not taken any more holds nobody up. */
    hasRoom: () => is_over || failure !== undefined || units.length < waiting_max,
    taken: taken.heard,
  }
}

const errorOf = (cause: unknown) => (cause instanceof Error ? cause : new Error(String(cause)))

/** Codes by which a node says that it has not stored what was sent. */
const refusals = new Set([
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "FAILED_PRECONDITION",
  "RESOURCE_EXHAUSTED",
  "UNAUTHENTICATED",
])

const isOpen = (cause: Error) => !("code" in cause && refusals.has(String(cause.code)))

/** Stores a shard on this node. */
const storeHere = async (
  { guard, timing }: Pick<ErasureParts, "guard" | "timing">,
  order: CopyOrder,
  shard_bytes: number,
  units: CopyBytes,
) => {
  const receiving = guard.receive(order, shard_bytes)
  try {
    for await (const unit of units) await receiving.write(unit)
    return await receiving.finish(timing.now())
  } finally {
    await receiving.abort()
  }
}

interface Store {
  readonly target: Target
  readonly queue: ReturnType<typeof makeQueue>
  readonly outcome: () => Stored | undefined
}

export interface Shipping {
  readonly order: Omit<CopyOrder, "shard">
  readonly data_shards: number
  readonly shard_bytes: number
  readonly reason: Reason
  /** The units of each shard, by index, where all of them are there: then nothing is pushed. */
  readonly whole?: ReadonlyArray<ReadonlyArray<Uint8Array>>
}

type Parts = Pick<ErasureParts, "guard" | "peers" | "members" | "timing">

const openStore = (parts: Parts, shipping: Shipping, target: Target, ended: () => void): Store => {
  const { order, data_shards, shard_bytes, reason, whole } = shipping
  const { peer, index } = target
  const queue = makeQueue()
  const copy: CopyOrder = { ...order, shard: { index, data_shards } }
  let outcome: Stored | undefined

  const send = () => {
    const bytes = whole?.[index] ?? queue.take()
    return peer.node_id === parts.members().node_id
      ? storeHere(parts, copy, shard_bytes, bytes)
      : parts.peers.send(peer, copy, bytes, reason, stall_ms)
  }
  const settle = (stored: Stored) => {
    outcome = stored
    // What is still to be said is for nobody.
    queue.fail(new Error("the node has ended the exchange"))
    ended()
  }
  send().then(
    (received) => settle({ ...target, received }),
    (failure: unknown) => {
      const cause = errorOf(failure)
      settle({ ...target, cause, is_open: isOpen(cause) })
    },
  )
  return { target, queue, outcome: () => outcome }
}

/** Whether a node, this one or another, has no room for its shard. */
const isForRoom = (cause: Error) =>
  isPeerFailure(cause)
    ? cause.code === "RESOURCE_EXHAUSTED"
    : faultOf(cause)._tag === "BlobCapacityExceeded"

const wordsOf = (cause: Error) => {
  const fault = faultOf(cause)
  return "detail" in fault ? fault.detail : cause.message
}

const tooMany = (
  { data_shards }: Shipping,
  failed: ReadonlyArray<{ readonly cause: Error }>,
  failures_max: number,
) => {
  const causes = [...new Set(failed.map(({ cause }) => wordsOf(cause)))].join("; ")
  // Those that were not even tried have failed too.
  const all = failed.length + parity_shards - failures_max
  const detail = `${all} of ${data_shards + parity_shards} shard stores failed: ${causes}`
  const is_full = failed.filter(({ cause }) => !isForRoom(cause)).length <= failures_max
  return thrown({ _tag: "BlobShardsFailed", detail, is_full })
}

/**
 * Sends a shard to each of the targets. `push` hands over the units of one stripe, by index, and
 * resolves when the next may come; a node that takes none for 5 seconds has failed. `finish` says
 * what became of each. Both reject with BlobShardsFailed where more than `failures_max` fail.
 * `abort` ends what is under way, waits until it has ended, and says what may have been stored.
 */
export const openStores = (
  parts: Parts,
  shipping: Shipping,
  targets: ReadonlyArray<Target>,
  failures_max: number,
) => {
  const ended = makeBell()
  const given_up = new Map<Store, Stored>()
  const stores = targets.map((target) => openStore(parts, shipping, target, ended.ring))

  const outcomeOf = (store: Store) => given_up.get(store) ?? store.outcome()
  const outcomes = () => stores.map(outcomeOf).filter((stored) => stored !== undefined)
  const giveUp = (store: Store, cause: Error) => {
    if (outcomeOf(store)) return
    store.queue.fail(cause)
    given_up.set(store, { ...store.target, cause, is_open: true })
    ended.ring()
  }
  const failures = () =>
    stores.flatMap((store) => {
      const outcome = outcomeOf(store)
      return outcome === undefined || isStored(outcome) ? [] : [outcome]
    })
  const assertEnough = () => {
    const failed = failures()
    if (failed.length > failures_max) throw tooMany(shipping, failed, failures_max)
  }
  /** Waits until `isReady` of each, but for those that let `stall_ms` pass: they are given up. */
  const settle = async (isReady: (store: Store) => boolean) => {
    for (;;) {
      assertEnough()
      const late = stores.filter((store) => outcomeOf(store) === undefined && !isReady(store))
      if (late.length === 0) return
      const detail = `the node took nothing for ${stall_ms} ms`
      const cancel = parts.timing.after(stall_ms, () => {
        for (const store of late) giveUp(store, peerFailure("DEADLINE_EXCEEDED", detail))
      })
      await Promise.race([ended.heard(), ...late.map(({ queue }) => queue.taken())])
      cancel()
    }
  }
  return {
    push: (units: ReadonlyArray<Uint8Array | undefined>): Promise<void> | undefined => {
      for (const { queue, target } of stores) {
        const unit = units[target.index]
        if (unit !== undefined) queue.push(unit)
      }
      const is_free = stores.every(({ queue }) => queue.hasRoom())
      return is_free ? undefined : settle(({ queue }) => queue.hasRoom())
    },
    finish: async (): Promise<ReadonlyArray<Stored>> => {
      for (const { queue } of stores) queue.end()
      await settle(() => false)
      return outcomes()
    },
    abort: async (cause: Error): Promise<ReadonlyArray<Stored>> => {
      for (const { queue } of stores) queue.fail(cause)
      let is_late = false
      const cancel = parts.timing.after(stall_ms, () => {
        is_late = true
        ended.ring()
      })
      while (!is_late && stores.some((store) => !outcomeOf(store))) await ended.heard()
      cancel()
      for (const store of stores) giveUp(store, cause)
      return outcomes()
    },
  }
}
