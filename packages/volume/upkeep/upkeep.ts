/** Upkeep of a volume: compaction and scrub, each one round at a time, by a timer or on request. */
import { faultOf } from "#actors/blob-storage/blobs/fault.ts"
import { makeReclaim, type Reclaimed, type ReclaimParts, reclaim } from "../free-space/reclaim.ts"
import { makeTurns } from "../log/turns.ts"
import {
  type Compacted,
  compact,
  extentCandidate,
  logCandidates,
  spareExtentFiles,
} from "./compaction.ts"
import { makePace, type Pace, stopped, unhurried } from "./pace.ts"
import { makeScrub, type ScrubParts } from "./scrub.ts"

/** Interval between checks for something to do, in milliseconds. */
const look_every_ms = 1000
/** Maximum rate of background compaction, so that requests keep the disk. */
const compaction_bytes_per_second = 64 * 1024 * 1024

export interface UpkeepOptions {
  /** 0: no background scrub. */
  readonly scrub_bytes_per_second: number
  readonly now: () => number
  /** Reports background problems. */
  readonly report: (problem: string) => void
  /** Disk space that stored blobs need, in bytes. */
  readonly usedBytes: () => number
}

export interface Upkeep {
  /** Runs one round of compaction, unthrottled. */
  readonly compact: () => Promise<Compacted>
  /**
   * Reclaims everything that is worth a copy, or joins a run in progress (`VolumeEngine.reclaim`).
   */
  readonly reclaim: (wait_ms: number) => Promise<Reclaimed>
  /** Verifies all live data once, unthrottled. */
  readonly scrub: () => Promise<void>
  /**
   * When the least recently verified file was last verified, in Unix milliseconds. Undefined:
   * nothing is live.
   */
  readonly oldestUnverifiedAt: () => number | undefined
  readonly start: () => void
  /** Stops the work in progress, and waits for it. */
  readonly stop: () => Promise<void>
}

const makeTimers = (isStopped: () => boolean) => {
  const timers = new Set<NodeJS.Timeout>()
  /** Runs the work repeatedly, with a pause after each run. */
  const every = (ms: number, work: () => Promise<unknown>) => {
    const turn = async () => {
      timers.delete(timer)
      await work()
      if (!isStopped()) every(ms, work)
    }
    const timer = setTimeout(() => void turn(), ms)
    timers.add(timer.unref())
  }
  const clear = () => {
    for (const timer of timers) clearTimeout(timer)
  }
  return { every, clear }
}

export const makeUpkeep = (parts: ScrubParts & ReclaimParts, options: UpkeepOptions): Upkeep => {
  const scrub = makeScrub(parts)
  const compactions = makeTurns()
  const scrubs = makeTurns()
  let is_stopped = false
  const { every, clear } = makeTimers(() => is_stopped)

  /** Whether the last round of compaction met a full disk, which is reported once. */
  let is_full = false
  const compactOnce = async (pace: Pace) => {
    let full: string | undefined
    const compacted = await compact(parts, pace, (detail) => {
      full ??= detail
    })
    if (full !== undefined && !is_full) options.report(`Compaction has no room: ${full}`)
    is_full = full !== undefined
    return compacted
  }
  const paceOf = (bytes_per_second: number) =>
    makePace(bytes_per_second, options.now, () => is_stopped)
  const byHand: Pace = async (bytes) => {
    await unhurried(bytes)
    if (is_stopped) throw stopped
  }
  const isWorth = () =>
    logCandidates(parts).length > 0 ||
    extentCandidate(parts) !== undefined ||
    spareExtentFiles(parts).length > 0
  const quietly = async (what: string, work: () => Promise<unknown>) => {
    try {
      if (!is_stopped && parts.line.failed() === undefined) await work()
    } catch (cause) {
      if (cause === stopped) return
      const fault = faultOf(cause)
      options.report(`${what} failed: ${"detail" in fault ? fault.detail : fault._tag}`)
    }
  }
  const compactIfWorth = async () => {
    if (isWorth()) await compactOnce(paceOf(compaction_bytes_per_second))
  }
  const scrubWhatWaits = async () => {
    const pace = paceOf(options.scrub_bytes_per_second)
    while (!is_stopped && (await scrub.next(pace))) await pace(0)
  }
  return {
    compact: () => compactions.run(() => compactOnce(byHand)),
    reclaim: makeReclaim({
      parts,
      usedBytes: options.usedBytes,
      work: () => compactions.run(() => reclaim(parts, byHand)),
    }),
    scrub: () => scrubs.run(() => scrub.all(byHand)),
    oldestUnverifiedAt: scrub.oldestUnverifiedAt,
    start: () => {
      // Uploads reserve space without waiting for a query of the disk.
      every(look_every_ms, parts.space.look)
      every(look_every_ms, () => compactions.run(() => quietly("Compaction", compactIfWorth)))
      if (options.scrub_bytes_per_second <= 0) return
      every(look_every_ms, () => scrubs.run(() => quietly("The scrub", scrubWhatWaits)))
    },
    stop: async () => {
      is_stopped = true
      clear()
      await Promise.all([compactions.settled(), scrubs.settled()])
    },
  }
}
