/**
 * Sends the shards of a blob to their nodes, a few units each and in step, so that little is
 * buffered. A failed node is dropped while the others continue.
 *
 * Source: document 1 §8 Limits, EC put tolerated shard store failures; decision 0124.
 */

import { faultError, faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { CopyOrder, ReceiveResult } from "#actors/blob-storage/ports/node-engine.ts"
import type { CopyBytes, Peer, Reason } from "#actors/blob-storage/ports/peers.ts"
import { parity_shards } from "#erasure"
import { isPeerFailure, peerFailure } from "../peer-failure.ts"
import { makeSignal } from "../signal.ts"
import { type ErasureParts, stall_ms } from "./layout.ts"

/**
 * Maximum number of queued units per node, 512 KiB. When a queue is full, all nodes wait for it.
 */
const waiting_max = 8

export interface Target {
  readonly peer: Peer
  readonly index: number
}

/** The outcome of one shard. `is_open`: the node may have stored it despite the failure. */
export type Stored =
  | (Target & { readonly received: ReceiveResult })
  | (Target & { readonly cause: Error; readonly is_open: boolean })

export const isStored = (stored: Stored): stored is Target & { readonly received: ReceiveResult } =>
  "received" in stored

/** A queue of units. Units are passed on unchanged: merging them would copy. */
const makeQueue = () => {
  const units: Array<Uint8Array> = []
  const filled = makeSignal()
  const taken = makeSignal()
  let is_full = false
  let is_over = false
  let failure: Error | undefined

  const take = async function* (): AsyncGenerator<Uint8Array, void> {
    try {
      for (;;) {
        if (failure) throw failure
        const next = units.shift()
        if (next !== undefined) {
          taken.notify()
          yield next
        } else if (is_full) return
        else await filled.wait()
      }
    } finally {
      is_over = true
      units.length = 0
      taken.notify()
    }
  }
  return {
    take,
    push: (unit: Uint8Array) => {
      if (is_over || failure) return
      units.push(unit)
      filled.notify()
    },
    /** No more units follow. */
    end: () => {
      is_full = true
      filled.notify()
    },
    fail: (cause: Error) => {
      failure ??= cause
      units.length = 0
      filled.notify()
      taken.notify()
    },
    /** Whether another unit fits; a queue that ended or failed never blocks the others. */
    hasRoom: () => is_over || failure !== undefined || units.length < waiting_max,
    taken: taken.wait,
  }
}

const errorOf = (cause: unknown) => (cause instanceof Error ? cause : new Error(String(cause)))

/** Codes of a node that certainly has not stored the shard. */
const refusals = new Set([
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "FAILED_PRECONDITION",
  "RESOURCE_EXHAUSTED",
  "UNAUTHENTICATED",
])

const mayBeStored = (cause: Error) => !("code" in cause && refusals.has(String(cause.code)))

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

export interface ShardTransfer {
  readonly order: Omit<CopyOrder, "shard">
  readonly data_shards: number
  readonly shard_bytes: number
  readonly reason: Reason
  /** The units of each shard, by index, if all are in memory. Then `push` is not used. */
  readonly whole?: ReadonlyArray<ReadonlyArray<Uint8Array>>
}

type Parts = Pick<ErasureParts, "guard" | "peers" | "members" | "timing">

const openStore = (
  parts: Parts,
  transfer: ShardTransfer,
  target: Target,
  ended: () => void,
): Store => {
  const { order, data_shards, shard_bytes, reason, whole } = transfer
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
    // The remaining units are not read.
    queue.fail(new Error("the node ended the transfer"))
    ended()
  }
  send().then(
    (received) => settle({ ...target, received }),
    (failure: unknown) => {
      const cause = errorOf(failure)
      settle({ ...target, cause, is_open: mayBeStored(cause) })
    },
  )
  return { target, queue, outcome: () => outcome }
}

/** Whether a node, possibly this one, is full. */
const isOutOfSpace = (cause: Error) =>
  isPeerFailure(cause)
    ? cause.code === "RESOURCE_EXHAUSTED"
    : faultOf(cause)._tag === "BlobCapacityExceeded"

const messageOf = (cause: Error) => {
  const fault = faultOf(cause)
  return "detail" in fault ? fault.detail : cause.message
}

const tooManyFailures = (
  { data_shards }: ShardTransfer,
  failed: ReadonlyArray<{ readonly cause: Error }>,
  failures_max: number,
) => {
  const causes = [...new Set(failed.map(({ cause }) => messageOf(cause)))].join("; ")
  // Nodes that were not tried count as failed too.
  const all = failed.length + parity_shards - failures_max
  const detail = `${all} of ${data_shards + parity_shards} shard stores failed: ${causes}`
  const is_full = failed.filter(({ cause }) => !isOutOfSpace(cause)).length <= failures_max
  return faultError({ _tag: "BlobShardsFailed", detail, is_full })
}

/**
 * Sends a shard to each target. `push` queues the units of one stripe, by index, and resolves when
 * the next may follow; a node that accepts no data for 5 seconds has failed. `finish` returns the
 * outcome of each shard. Both reject with BlobShardsFailed when more than `failures_max` nodes
 * fail. `abort` ends the transfers, waits for them, and returns what may have been stored.
 */
export const openStores = (
  parts: Parts,
  transfer: ShardTransfer,
  targets: ReadonlyArray<Target>,
  failures_max: number,
) => {
  const ended = makeSignal()
  const abandoned = new Map<Store, Stored>()
  const stores = targets.map((target) => openStore(parts, transfer, target, ended.notify))

  const outcomeOf = (store: Store) => abandoned.get(store) ?? store.outcome()
  const outcomes = () => stores.map(outcomeOf).filter((stored) => stored !== undefined)
  const abandon = (store: Store, cause: Error) => {
    if (outcomeOf(store)) return
    store.queue.fail(cause)
    abandoned.set(store, { ...store.target, cause, is_open: true })
    ended.notify()
  }
  const failures = () =>
    stores.flatMap((store) => {
      const outcome = outcomeOf(store)
      return outcome === undefined || isStored(outcome) ? [] : [outcome]
    })
  const assertFailuresAllowed = () => {
    const failed = failures()
    if (failed.length > failures_max) throw tooManyFailures(transfer, failed, failures_max)
  }
  /** Waits until `isReady` for each store. Stores without progress for `stall_ms` are abandoned. */
  const settle = async (isReady: (store: Store) => boolean) => {
    for (;;) {
      assertFailuresAllowed()
      const late = stores.filter((store) => outcomeOf(store) === undefined && !isReady(store))
      if (late.length === 0) return
      const detail = `the node received nothing for ${stall_ms} ms`
      const cancel = parts.timing.after(stall_ms, () => {
        for (const store of late) abandon(store, peerFailure("DEADLINE_EXCEEDED", detail))
      })
      await Promise.race([ended.wait(), ...late.map(({ queue }) => queue.taken())])
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
        ended.notify()
      })
      while (!is_late && stores.some((store) => !outcomeOf(store))) await ended.wait()
      cancel()
      for (const store of stores) abandon(store, cause)
      return outcomes()
    },
  }
}
