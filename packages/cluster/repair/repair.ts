/**
 * The repair of one node: takes care of every local copy until all nodes have exactly the copies
 * that they should have. Hinted blobs come first. Then it sweeps all local copies: at startup,
 * after each ring change, and periodically.
 *
 * It stores no state. After a crash, the next sweep finds the remaining work.
 *
 * Source: document 1 §1, §3 leave; DECISIONS, document 1, graceful leave, replica count not
 * reachable, integrity; decision 0125.
 */

import type { Copy, Deletion } from "#actors/blob-storage/ports/node-engine.ts"
import type { Members } from "#actors/blob-storage/ports/peers.ts"
import type { RepairProgress, SweepResult } from "#actors/blob-storage/ports/repair-progress.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { causeText } from "#schemas/cause-text.ts"
import { makeSignal, type Signal } from "../signal.ts"
import type { Timing } from "../timing.ts"
import { makeActions, type RepairParts, type RepairTally } from "./actions.ts"
import {
  type BatchContext,
  type Batches,
  type BatchSum,
  type Entry,
  emptySum,
  makeBatches,
} from "./batch.ts"
import type { Hint } from "./hint.ts"
import { makeRepairQueue, type RepairQueue } from "./queue.ts"
import { makePace, wait } from "./rate.ts"
import { makeReleases, type Releases } from "./release.ts"
import { makeSettling, type Settling } from "./settling.ts"

/** Copies in one batch of a sweep: planning them takes two milliseconds of the event loop. */
const page_limit = 256
/** Hinted blobs in one batch: each is looked up on all nodes. */
const hints_limit = 256
/** Measured thread time to inspect one copy, summed over its nodes, in milliseconds. */
const inspection_ms = 0.06
/** Polling interval of the ring, in milliseconds. */
const poll_ms_default = 1000
/** Pause after a sweep that found work, in milliseconds. It doubles each time. */
const again_ms = 2000
/** Maximum pause of a leaving node, in milliseconds: an operator waits for it. */
const leaving_ms = 10_000
const ms_per_s = 1000
const ns_per_ms = 1_000_000n
const ns_per_s = 1_000_000_000n
/**
 * Default age at which a misplaced copy may be released: an hour, because clients tend to read from
 * the node that they wrote to. Also the age at which shards of unfinished puts are discarded.
 */
const release_after_s = 3600

/**
 * A factor from 0.75 to 1, by node, so that nodes that started together sweep at different times.
 */
const pauseFactor = (node_id: string) => {
  let sum = 0
  for (const character of node_id) sum = (31 * sum + (character.codePointAt(0) ?? 0)) % 1009
  return 0.75 + (0.25 * sum) / 1009
}
const report_ns = 60_000_000_000n

export interface RepairOptions extends RepairParts {
  /** Receives a warning about failures, at most once a minute. */
  readonly report: (problem: string) => void
  readonly sweep_seconds: number
  readonly repair_bytes_per_second: number
  /** Age at which a misplaced copy may be released; default: one hour. */
  readonly release_after_seconds?: number
  /** Polling interval of the ring in milliseconds; default: one second. */
  readonly poll_ms?: number
  /** The pause after background work of this length, both in milliseconds; default: none. */
  readonly pauseAfter?: (took_ms: number) => number
}

export interface Repair {
  /** Queues a blob that may lack copies. Never waits; drops hints that do not fit. */
  readonly hint: Hint
  readonly start: () => void
  /** Resolves when no step is running. */
  readonly stop: () => Promise<void>
  /** Inspects all local copies once. */
  readonly sweep: () => Promise<SweepResult>
  /** Repairs some of the hinted blobs; false if none is due. */
  readonly heal: () => Promise<boolean>
  /** Implements `keeps` of `Peers`, which other nodes call before they release a copy. */
  readonly keeps: Releases["keeps"]
  readonly progress: () => RepairProgress
}

const hasWork = ({ actions, missing, misplaced, is_complete }: BatchSum, is_leaving: boolean) =>
  actions > 0 || missing > 0 || !is_complete || (is_leaving && misplaced > 0)

/** The schedule of sweeps, and the progress of past ones. */
const makeSchedule = (options: RepairOptions) => {
  const { members, timing, sweep_seconds, release_after_seconds = release_after_s } = options
  const release_after_ns = BigInt(Math.ceil(release_after_seconds)) * ns_per_s
  let key = ""
  let sweep_number = 0
  let pause_ms = 0
  let ended_at = 0n
  let is_over = false
  let last: SweepResult | undefined
  let checked_ring: number | undefined
  let lacks: readonly [number, number] | undefined

  const keyOf = () => `${members().ring_version} ${members().is_leaving}`
  const end = (result: SweepResult, has_work: boolean) => {
    const longest_ms = Math.min(sweep_seconds * ms_per_s, result.is_leaving ? leaving_ms : Infinity)
    pause_ms = has_work ? Math.min(Math.max(again_ms, 2 * pause_ms), longest_ms) : longest_ms
    ended_at = timing.now()
    is_over = true
    last = result
    if (!result.is_complete) return
    lacks = [lacks?.[1] ?? 0, result.missing]
    checked_ring = result.ring_version
  }
  return {
    end,
    begin: () => {
      const is_same = key === keyOf()
      if (!is_same) pause_ms = 0
      sweep_number = is_same ? sweep_number + 1 : 1
      key = keyOf()
      is_over = false
      return members()
    },
    isDue: () => {
      const waited_ms = (timing.now() - ended_at) / ns_per_ms
      // A clock that was set back makes the sweep due.
      return (
        key !== keyOf() ||
        waited_ms < 0n ||
        waited_ms >= BigInt(Math.ceil(pause_ms * pauseFactor(members().node_id)))
      )
    },
    hurry: () => {
      pause_ms = Math.min(pause_ms, again_ms)
    },
    /** The context of the current or last sweep; sweep number 0 is for hints. */
    context: (number = sweep_number): BatchContext => ({
      members: members(),
      sweep_number: number,
      release_after_ns,
    }),
    /**
     * Whether copies may have to move: this ring has no complete sweep yet, or this node is
     * leaving.
     */
    isAwaited: () => key !== keyOf() || (sweep_number === 1 && !is_over) || members().is_leaving,
    progress: () => {
      const { is_leaving } = members()
      // Ongoing writes and deletes on other nodes do not keep a node from leaving.
      const is_moved = last?.is_leaving && last.is_complete && last.misplaced === 0
      const misplaced = last?.misplaced ?? 0
      return {
        pending_migrations: is_leaving && !is_moved ? Math.max(1, misplaced) : misplaced,
        last_sweep: last,
        checked_ring,
        under_replicated: lacks && Math.min(...lacks),
      }
    },
  }
}

type Schedule = ReturnType<typeof makeSchedule>

const isClusterDeletion = (copy: Copy): copy is Deletion =>
  copy.kind === "tombstone" && copy.is_cluster_wide

/**
 * Inspects copies of a sweep, and remembers those that are too recent. Pauses in favor of client
 * requests while there is nothing to repair, unless a new ring or a leave waits for it.
 */
const makeInspect = (
  { timing, pauseAfter }: RepairOptions,
  schedule: Schedule,
  batches: Batches,
  settling: Settling,
) =>
  async function inspect(entries: ReadonlyArray<Entry>, sum: BatchSum) {
    const { actions } = sum
    const inspected = await batches.run(schedule.context(), entries, sum)
    const recent = inspected.filter(({ is_early }) => is_early)
    settling.add(
      recent.map(({ id }) => id),
      timing.now(),
    )
    if (schedule.isAwaited() || sum.actions > actions) return
    const pause_ms = pauseAfter?.(entries.length * inspection_ms) ?? 0
    if (pause_ms > 0) await wait(timing, pause_ms)
  }

type Inspect = ReturnType<typeof makeInspect>

/** Sweeps all local copies; hinted blobs are repaired between pages. */
const makeSweep = (
  { local, members }: RepairOptions,
  schedule: Schedule,
  { inspect, batches, settling }: { inspect: Inspect; batches: Batches; settling: Settling },
  between: () => Promise<unknown>,
  isOver: () => boolean,
) =>
  async function sweep(): Promise<SweepResult> {
    const first = schedule.begin()
    const sum = emptySum()
    settling.clear()
    let next: string | undefined = ""
    while (next !== undefined && !isOver()) {
      const page = await local.copies(next, "", page_limit)
      const held = page.copies.filter(({ kind }) => kind !== "tombstone")
      await inspect(
        held.map((copy) => [copy.id, copy]),
        sum,
      )
      await batches.spread(schedule.context(), page.copies.filter(isClusterDeletion), sum)
      next = page.next
      if (next !== undefined) await between()
    }
    const { ring_version, is_leaving } = first
    const is_same = members().ring_version === ring_version && !isOver()
    const { actions, missing, misplaced, settling: too_new } = sum
    const is_complete = sum.is_complete && is_same
    const result = { ring_version, is_leaving, actions, missing, misplaced, too_new, is_complete }
    schedule.end(result, hasWork({ ...sum, is_complete }, is_leaving) || settling.hasLost())
    return result
  }

/** Inspects blobs that were too recent before; false if none is due. */
const makeInspectSettled = (
  { local, members, timing }: RepairOptions,
  schedule: Schedule,
  inspect: Inspect,
  settling: Settling,
) =>
  async function inspectSettled() {
    const ids = settling.take(timing.now())
    if (ids.length === 0) return false
    const sum = emptySum()
    let has_work = true
    try {
      const copies = await local.copiesOf(ids)
      const entries = ids.map((id, at): Entry => [id, copies[at]])
      await inspect(
        entries.filter(([, copy]) => copy !== undefined && copy.kind !== "tombstone"),
        sum,
      )
      has_work = hasWork(sum, members().is_leaving) || settling.hasLost()
    } finally {
      // The next sweep does the rest: its number decides whose turn it is.
      if (has_work) schedule.hurry()
    }
    return true
  }

/** Reports failures at most once a minute. */
const makeReport = ({ report, timing }: RepairOptions, tally: RepairTally) => {
  let reported = 0
  let reported_at: bigint | undefined
  return () => {
    const failed = tally.failures - reported
    const now = timing.now()
    if (failed === 0 || (reported_at !== undefined && now - reported_at < report_ns)) return
    reported = tally.failures
    reported_at = now
    report(`${failed} copies could not be created or moved yet; last failure: ${tally.cause}`)
  }
}

/** Repairs hinted blobs in batches. */
const makeHeal = (
  { local, timing }: RepairOptions,
  schedule: Schedule,
  batches: Batches,
  queue: RepairQueue,
  fail: (cause: unknown) => void,
) => {
  const inspect = async (ids: ReadonlyArray<BlobId>) => {
    const copies = await local.copiesOf(ids)
    const entries = ids.map((id, at) => [id, copies[at]] as const)
    return batches.run(schedule.context(0), entries, emptySum())
  }
  return async function heal() {
    const ids = queue.take(timing.now(), hints_limit)
    if (ids.length === 0) return false
    const inspected = await inspect(ids).catch((cause: unknown) => {
      fail(cause)
      return ids.map((id) => ({ id, is_done: false }))
    })
    for (const { id, is_done } of inspected) {
      if (is_done) queue.settle(id)
      else queue.postpone(id, timing.now())
    }
    if (queue.hasLost()) schedule.hurry()
    return true
  }
}

const isAlone = ({ active, leaving, node_id }: Members) =>
  [...active, ...leaving].every((peer) => peer.node_id === node_id)

/**
 * Runs steps until it is stopped. After a step without work it waits for a signal or the polling
 * interval.
 */
const makeLoop = (
  signal: Signal,
  timing: Timing,
  poll_ms: number,
  step: () => Promise<boolean>,
) => {
  let is_over = false
  let running: Promise<void> | undefined
  const run = async () => {
    while (!is_over) {
      const notified = signal.wait()
      if ((await step()) || is_over) continue
      const cancel = timing.after(poll_ms, signal.notify)
      await notified
      cancel()
    }
  }
  return {
    isOver: () => is_over,
    start: () => {
      is_over = false
      running ??= run()
    },
    stop: async () => {
      is_over = true
      signal.notify()
      await running
      running = undefined
    },
  }
}

export const repair = (options: RepairOptions): Repair => {
  const { members, timing, repair_bytes_per_second, poll_ms = poll_ms_default } = options
  const tally: RepairTally = { bytes_moved: 0, repairs: 0, failures: 0, cause: "" }
  const pace = makePace(repair_bytes_per_second, timing)
  const releases = makeReleases({ ...options, pace })
  const batches = makeBatches(options, makeActions(options, pace, tally), releases, pace)
  const schedule = makeSchedule(options)
  const queue = makeRepairQueue()
  const signal = makeSignal()
  const reportFailures = makeReport(options, tally)

  const fail = (cause: unknown) => {
    tally.failures += 1
    tally.cause = causeText(cause)
    return false
  }
  const heal = makeHeal(options, schedule, batches, queue, fail)
  const settling = makeSettling()
  const inspect = makeInspect(options, schedule, batches, settling)
  const inspectSettled = makeInspectSettled(options, schedule, inspect, settling)
  const sweep = makeSweep(options, schedule, { inspect, batches, settling }, heal, () =>
    loop.isOver(),
  )

  /** Runs the most urgent work; false if there is none. */
  const step = async () => {
    if (isAlone(members())) return false
    if (!schedule.isDue()) return (await heal()) || inspectSettled()
    await sweep()
    return true
  }
  const loop = makeLoop(signal, timing, poll_ms, async () => {
    const is_busy = await step().catch(fail)
    reportFailures()
    return is_busy
  })
  return {
    hint: ({ id }) => {
      queue.add(id)
      signal.notify()
    },
    start: loop.start,
    stop: loop.stop,
    sweep,
    heal,
    keeps: releases.keeps,
    progress: () => {
      const { bytes_moved, repairs, failures } = tally
      return { bytes_moved, repairs, failures, ...schedule.progress() }
    },
  }
}
