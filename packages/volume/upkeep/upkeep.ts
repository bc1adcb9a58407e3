/** Upkeep of a volume: compaction and scrub, each one round at a time, by a timer or on request. */
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import { makeReclaim, type Reclaimed, type ReclaimParts, reclaim } from "../free-space/reclaim.ts"
import { makeMutex } from "../mutex.ts"
import {
  type Compacted,
  compact,
  extentCandidate,
  logCandidates,
  spareExtentFiles,
} from "./compaction.ts"
import { makePace, type Pace, stopped, unthrottled } from "./pace.ts"
import { makeScrub, type ScrubParts } from "./scrub.ts"

/** Interval between checks for something to do, in milliseconds. */
const check_interval_ms = 1000
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
  const compactions = makeMutex()
  const scrubs = makeMutex()
  let is_stopped = false
  const { every, clear } = makeTimers(() => is_stopped)

  /** Whether the last round of compaction hit a full disk, which is reported once. */
  let is_full = false
  const compactOnce = async (pace: Pace) => {
    let full: string | undefined
    const compacted = await compact(parts, pace, (detail) => {
      full ??= detail
    })
    if (full !== undefined && !is_full)
      options.report(`Compaction has not enough free space: ${full}`)
    is_full = full !== undefined
    return compacted
  }
  const paceOf = (bytes_per_second: number) =>
    makePace(bytes_per_second, options.now, () => is_stopped)
  const manualPace: Pace = async (bytes) => {
    await unthrottled(bytes)
    if (is_stopped) throw stopped
  }
  const hasWork = () =>
    logCandidates(parts).length > 0 ||
    extentCandidate(parts) !== undefined ||
    spareExtentFiles(parts).length > 0
  const reportingErrors = async (what: string, work: () => Promise<unknown>) => {
    try {
      if (!is_stopped && parts.commits.failed() === undefined) await work()
    } catch (cause) {
      if (cause === stopped) return
      const fault = faultOf(cause)
      options.report(`${what} failed: ${"detail" in fault ? fault.detail : fault._tag}`)
    }
  }
  const compactIfNeeded = async () => {
    if (hasWork()) await compactOnce(paceOf(compaction_bytes_per_second))
  }
  const scrubDue = async () => {
    const pace = paceOf(options.scrub_bytes_per_second)
    while (!is_stopped && (await scrub.next(pace))) await pace(0)
  }
  return {
    compact: () => compactions.run(() => compactOnce(manualPace)),
    reclaim: makeReclaim({
      parts,
      usedBytes: options.usedBytes,
      work: () => compactions.run(() => reclaim(parts, manualPace)),
    }),
    scrub: () => scrubs.run(() => scrub.all(manualPace)),
    oldestUnverifiedAt: scrub.oldestUnverifiedAt,
    start: () => {
      // Uploads reserve space without waiting for a query of the disk.
      every(check_interval_ms, parts.space.refresh)
      every(check_interval_ms, () =>
        compactions.run(() => reportingErrors("Compaction", compactIfNeeded)),
      )
      if (options.scrub_bytes_per_second <= 0) return
      every(check_interval_ms, () => scrubs.run(() => reportingErrors("The scrub", scrubDue)))
    },
    stop: async () => {
      is_stopped = true
      clear()
      await Promise.all([compactions.settled(), scrubs.settled()])
    },
  }
}
