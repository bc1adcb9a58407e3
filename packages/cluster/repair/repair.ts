/**
 * The repair of one node: it looks after every copy that is here, until all nodes have what they
 * are to have and nothing else. First what puts and gets hinted at, then all that is here, again
 * and again: at the start, after each change of the ring, and every so many seconds.
 *
 * It remembers nothing. Killed anywhere, it finds by the next sweep what there is to do.
 *
 * Source: document 1 §1, §3 leave; DECISIONS, document 1, graceful leave, replica count not
 * reachable, integrity; decision 0125.
 */

import type { Copy, Deletion } from "#actors/blob-storage/node-engine.ts"
import type { Members } from "#actors/blob-storage/peers.ts"
import type { RepairProgress, SweepResult } from "#actors/blob-storage/repair-progress.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { causeText } from "#schemas/cause-text.ts"
import { type Bell, makeBell } from "../bell.ts"
import type { Timing } from "../timing.ts"
import { makeActs, type RepairParts, type RepairTally } from "./acts.ts"
import {
  type Batches,
  type BatchSum,
  type Entry,
  emptySum,
  makeBatches,
  type Scene,
} from "./batch.ts"
import type { Hint } from "./hint.ts"
import { makeRepairQueue, type RepairQueue } from "./queue.ts"
import { makePace, wait } from "./rate.ts"
import { makeReleases, type Releases } from "./release.ts"
import { makeSettling, type Settling } from "./settling.ts"

/** Copies that are looked at together: their plans take a turn of the loop of two milliseconds. */
const page_limit = 256
/** Hints that are looked at together: everybody is asked about each. */
const hints_limit = 256
/** Milliseconds that a look at one copy takes of the threads of those who have it, measured. */
const look_ms_each = 0.06
/** How often the ring is looked at, in milliseconds. */
const look_ms_default = 1000
/** Pause before the next sweep where one found something to do; it doubles. Milliseconds. */
const again_ms = 2000
/** Pause of a node that leaves, at most: somebody waits for it. Milliseconds. */
const leaving_ms = 10_000
const ms_per_s = 1000
const ns_per_ms = 1_000_000n
const ns_per_s = 1_000_000_000n
/** An hour: who put a blob here comes back for it here. Also the age of a put that ended badly. */
const release_after_s = 3600

/** Nodes that begin together are to sweep apart: each takes another part of a pause, 0.75 to 1. */
const partOf = (node_id: string) => {
  let sum = 0
  for (const character of node_id) sum = (31 * sum + (character.codePointAt(0) ?? 0)) % 1009
  return 0.75 + (0.25 * sum) / 1009
}
const report_ns = 60_000_000_000n

export interface RepairOptions extends RepairParts {
  /** Told what goes wrong: at most once a minute. */
  readonly report: (problem: string) => void
  readonly sweep_seconds: number
  readonly repair_bytes_per_second: number
  /** How long a copy stays that is nobody's any more; an hour unless given. */
  readonly release_after_seconds?: number
  /** How often the ring is looked at, in milliseconds; a second unless given. */
  readonly look_ms?: number
  /** The rest after so long a piece of work that nobody waits for, both ms; none unless given. */
  readonly restAfter?: (took_ms: number) => number
}

export interface Repair {
  /** Takes note of a blob that may lack copies; never waits, and forgets those that do not fit. */
  readonly hint: Hint
  readonly start: () => void
  /** Resolves when nothing is under way any more. */
  readonly stop: () => Promise<void>
  /** Looks at all that is here once. */
  readonly sweep: () => Promise<SweepResult>
  /** Looks at some of the blobs that were hinted at; false where none is due. */
  readonly heal: () => Promise<boolean>
  /** What other nodes ask before they let a copy go: `keeps` of Peers. */
  readonly keeps: Releases["keeps"]
  readonly progress: () => RepairProgress
}

const isFound = ({ acts, lacking, displaced, is_complete }: BatchSum, is_leaving: boolean) =>
  acts > 0 || lacking > 0 || !is_complete || (is_leaving && displaced > 0)

/** What is known of the cluster and of the sweeps so far. */
const makeCourse = (options: RepairOptions) => {
  const { members, timing, sweep_seconds, release_after_seconds = release_after_s } = options
  const release_after_ns = BigInt(Math.ceil(release_after_seconds)) * ns_per_s
  let key = ""
  let round = 0
  let pause_ms = 0
  let ended_at = 0n
  let is_over = false
  let last: SweepResult | undefined
  let checked_ring: number | undefined
  let lacks: readonly [number, number] | undefined

  const keyOf = () => `${members().ring_version} ${members().is_leaving}`
  const end = (result: SweepResult, is_found: boolean) => {
    const longest_ms = Math.min(sweep_seconds * ms_per_s, result.is_leaving ? leaving_ms : Infinity)
    pause_ms = is_found ? Math.min(Math.max(again_ms, 2 * pause_ms), longest_ms) : longest_ms
    ended_at = timing.now()
    is_over = true
    last = result
    if (!result.is_complete) return
    lacks = [lacks?.[1] ?? 0, result.lacking]
    checked_ring = result.ring_version
  }
  return {
    end,
    begin: () => {
      const is_same = key === keyOf()
      if (!is_same) pause_ms = 0
      round = is_same ? round + 1 : 1
      key = keyOf()
      is_over = false
      return members()
    },
    isDue: () => {
      const waited_ms = (timing.now() - ended_at) / ns_per_ms
      // A clock that was set back says nothing.
      return (
        key !== keyOf() ||
        waited_ms < 0n ||
        waited_ms >= BigInt(Math.ceil(pause_ms * partOf(members().node_id)))
      )
    },
    hurry: () => {
      pause_ms = Math.min(pause_ms, again_ms)
    },
    /** As the sweep sees it that is under way, or was the last; `0`: as a hint does. */
    scene: (of_round = round): Scene => ({
      members: members(),
      round: of_round,
      release_after_ns,
    }),
    /** Whether copies may have to move: no sweep by this ring is over yet, or this node leaves. */
    isAwaited: () => key !== keyOf() || (round === 1 && !is_over) || members().is_leaving,
    told: () => {
      const { is_leaving } = members()
      // Others go on writing and deleting: what is told to them meanwhile does not hold it up.
      const is_moved = last?.is_leaving && last.is_complete && last.displaced === 0
      const displaced = last?.displaced ?? 0
      return {
        pending_migrations: is_leaving && !is_moved ? Math.max(1, displaced) : displaced,
        last_sweep: last,
        checked_ring,
        under_replicated: lacks && Math.min(...lacks),
      }
    },
  }
}

type Course = ReturnType<typeof makeCourse>

const isWideDeletion = (copy: Copy): copy is Deletion =>
  copy.kind === "tombstone" && copy.is_cluster_wide

/**
 * Looks at copies that nobody hinted at, and keeps in mind which are too young. Where all is as it
 * is to be, users' requests come first: but for what waits for a new ring, and for a node to leave.
 */
const makeLook = (
  { timing, restAfter }: RepairOptions,
  course: Course,
  batches: Batches,
  settling: Settling,
) =>
  async function look(entries: ReadonlyArray<Entry>, sum: BatchSum) {
    const { acts } = sum
    const looked = await batches.run(course.scene(), entries, sum)
    const young = looked.filter(({ is_early }) => is_early)
    settling.add(
      young.map(({ id }) => id),
      timing.now(),
    )
    if (course.isAwaited() || sum.acts > acts) return
    const rest_ms = restAfter?.(entries.length * look_ms_each) ?? 0
    if (rest_ms > 0) await wait(timing, rest_ms)
  }

type Look = ReturnType<typeof makeLook>

/** One walk over all that is here; between two pages, what was hinted at comes first. */
const makeSweep = (
  { local, members }: RepairOptions,
  course: Course,
  { look, batches, settling }: { look: Look; batches: Batches; settling: Settling },
  between: () => Promise<unknown>,
  isOver: () => boolean,
) =>
  async function sweep(): Promise<SweepResult> {
    const first = course.begin()
    const sum = emptySum()
    settling.clear()
    let next: string | undefined = ""
    while (next !== undefined && !isOver()) {
      const page = await local.copies(next, "", page_limit)
      const held = page.copies.filter(({ kind }) => kind !== "tombstone")
      await look(
        held.map((copy) => [copy.id, copy]),
        sum,
      )
      await batches.spread(course.scene(), page.copies.filter(isWideDeletion), sum)
      next = page.next
      if (next !== undefined) await between()
    }
    const { ring_version, is_leaving } = first
    const is_same = members().ring_version === ring_version && !isOver()
    const { acts, lacking, displaced, early } = sum
    const is_complete = sum.is_complete && is_same
    const result = { ring_version, is_leaving, acts, lacking, displaced, early, is_complete }
    course.end(result, isFound({ ...sum, is_complete }, is_leaving) || settling.hasLost())
    return result
  }

/** Looks once more at some that were too young; false where none is due. */
const makeLookAgain = (
  { local, members, timing }: RepairOptions,
  course: Course,
  look: Look,
  settling: Settling,
) =>
  async function lookAgain() {
    const ids = settling.take(timing.now())
    if (ids.length === 0) return false
    const sum = emptySum()
    let is_found = true
    try {
      const copies = await local.copiesOf(ids)
      const entries = ids.map((id, at): Entry => [id, copies[at]])
      await look(
        entries.filter(([, copy]) => copy !== undefined && copy.kind !== "tombstone"),
        sum,
      )
      is_found = isFound(sum, members().is_leaving) || settling.hasLost()
    } finally {
      // A sweep does what there is to be done next: by its number it goes whose turn that is.
      if (is_found) course.hurry()
    }
    return true
  }

/** Says at most once a minute what goes wrong. */
const makeReport = ({ report, timing }: RepairOptions, tally: RepairTally) => {
  let reported = 0
  let reported_at: bigint | undefined
  return () => {
    const failed = tally.failures - reported
    const now = timing.now()
    if (failed === 0 || (reported_at !== undefined && now - reported_at < report_ns)) return
    reported = tally.failures
    reported_at = now
    report(`${failed} copies could not be made or moved yet; the last: ${tally.cause}`)
  }
}

/** Blobs that were hinted at, some at a time. */
const makeHeal = (
  { local, timing }: RepairOptions,
  course: Course,
  batches: Batches,
  queue: RepairQueue,
  fail: (cause: unknown) => void,
) => {
  const look = async (ids: ReadonlyArray<BlobId>) => {
    const copies = await local.copiesOf(ids)
    const entries = ids.map((id, at) => [id, copies[at]] as const)
    return batches.run(course.scene(0), entries, emptySum())
  }
  return async function heal() {
    const ids = queue.take(timing.now(), hints_limit)
    if (ids.length === 0) return false
    const looked = await look(ids).catch((cause: unknown) => {
      fail(cause)
      return ids.map((id) => ({ id, is_done: false }))
    })
    for (const { id, is_done } of looked) {
      if (is_done) queue.settle(id)
      else queue.postpone(id, timing.now())
    }
    if (queue.hasLost()) course.hurry()
    return true
  }
}

const isAlone = ({ active, leaving, node_id }: Members) =>
  [...active, ...leaving].every((peer) => peer.node_id === node_id)

/** Runs steps until it is stopped; where one had nothing to do it waits for the bell, a while. */
const makeLoop = (bell: Bell, timing: Timing, look_ms: number, step: () => Promise<boolean>) => {
  let is_over = false
  let running: Promise<void> | undefined
  const run = async () => {
    while (!is_over) {
      const heard = bell.heard()
      if ((await step()) || is_over) continue
      const cancel = timing.after(look_ms, bell.ring)
      await heard
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
      bell.ring()
      await running
      running = undefined
    },
  }
}

export const repair = (options: RepairOptions): Repair => {
  const { members, timing, repair_bytes_per_second, look_ms = look_ms_default } = options
  const tally: RepairTally = { bytes_moved: 0, repairs: 0, failures: 0, cause: "" }
  const pace = makePace(repair_bytes_per_second, timing)
  const releases = makeReleases({ ...options, pace })
  const batches = makeBatches(options, makeActs(options, pace, tally), releases, pace)
  const course = makeCourse(options)
  const queue = makeRepairQueue()
  const bell = makeBell()
  const tellProblems = makeReport(options, tally)

  const fail = (cause: unknown) => {
    tally.failures += 1
    tally.cause = causeText(cause)
    return false
  }
  const heal = makeHeal(options, course, batches, queue, fail)
  const settling = makeSettling()
  const look = makeLook(options, course, batches, settling)
  const lookAgain = makeLookAgain(options, course, look, settling)
  const sweep = makeSweep(options, course, { look, batches, settling }, heal, () => loop.isOver())

  /** Does what is to be done first; false where nothing is. */
  const step = async () => {
    if (isAlone(members())) return false
    if (!course.isDue()) return (await heal()) || lookAgain()
    await sweep()
    return true
  }
  const loop = makeLoop(bell, timing, look_ms, async () => {
    const is_busy = await step().catch(fail)
    tellProblems()
    return is_busy
  })
  return {
    hint: ({ id }) => {
      queue.add(id)
      bell.ring()
    },
    start: loop.start,
    stop: loop.stop,
    sweep,
    heal,
    keeps: releases.keeps,
    progress: () => {
      const { bytes_moved, repairs, failures } = tally
      return { bytes_moved, repairs, failures, ...course.told() }
    },
  }
}
