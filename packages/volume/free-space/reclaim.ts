/**
 * Reclaims the space of deleted blobs on request. Background compaction leaves files that cost more
 * writes than they return; this empties every file that is worth a copy.
 *
 * Moved data takes space until the old file is removed. So empty files are removed first, and a
 * file is only started if all its live data fits elsewhere: deletes need the rest of the log.
 *
 * Source: decision 0178.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { faultError, faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { VolumeParts } from "../parts.ts"
import {
  type CompactionParts,
  isExpectedEnd,
  isExtentFileWorthIt,
  logCandidates,
  retire,
  spaceElsewhere,
  spareExtentFiles,
} from "../upkeep/compaction.ts"
import { emptyExtentFile, no_space } from "../upkeep/extent-mover.ts"
import { emptyLog } from "../upkeep/log-mover.ts"
import { type Pace, stopped } from "../upkeep/pace.ts"
import { on_request } from "./thresholds.ts"

export interface ReclaimParts
  extends CompactionParts,
    Pick<VolumeParts, "limits" | "sealLog" | "trimLog" | "logSpace" | "now"> {
  /** Waits this many milliseconds. */
  readonly pause: (ms: number) => Promise<void>
}

/** The progress of a run. */
export interface Reclaimed {
  readonly is_done: boolean
  /** By how much the volume's files have shrunk since the start, not counting growth by puts. */
  readonly given_back_bytes: number
  /** Dead bytes in the files that are still to be emptied. */
  readonly remaining_bytes: number
  /** Total length of the volume's files. */
  readonly disk_bytes: number
  /** The part of it that stored blobs need. */
  readonly used_bytes: number
  /** Why the run ended early, and what to do. */
  readonly problem: string | undefined
}

/**
 * Emptied files are removed each time this many bytes were moved: each removal takes a checkpoint.
 */
const moved_bytes_max = 2 ** 30
/** How long to wait for the event log without progress, and the interval between checks. */
const facts_idle_ms_max = 3000
const facts_check_ms = 100
/** Time until the gauge sees removed files: it queries the disk every 100 ms. */
const refresh_wait_ms = 150
/** How long an outcome is kept for later requests. */
const outcome_ms_max = 10_000

const mebibyte = 2 ** 20
const inMebibytes = (bytes: number) => `${Math.ceil(bytes / mebibyte)} MiB`

const sum = <A>(all: ReadonlyArray<A>, of: (one: A) => number) =>
  all.reduce((total, one) => total + of(one), 0)

const extentFilesWorthIt = ({ extents }: ReclaimParts) =>
  extents.files().filter((file) => isExtentFileWorthIt(file, on_request.extent_live_max))

/** Bytes that would be returned by emptying every file worth emptying. */
const remainingBytes = (parts: ReclaimParts) => {
  const logs = logCandidates(parts, on_request)
  const files = [...extentFilesWorthIt(parts), ...spareExtentFiles(parts, on_request)]
  return (
    sum(logs, ({ segment, live_bytes }) => segment.bytes - live_bytes) +
    sum(files, ({ data_bytes, live_bytes }) => data_bytes - live_bytes)
  )
}

/** Waits until the event log has all facts: a file with others cannot be retired. */
const waitForFacts = async ({ logFiles, acknowledged, pause }: ReclaimParts, pace: Pace) => {
  const last = Math.max(0, ...logFiles().map(({ last_cursor }) => last_cursor))
  let [seen, idle_ms] = [acknowledged(), 0]
  while (seen < last && idle_ms < facts_idle_ms_max) {
    await pause(facts_check_ms)
    await pace(0)
    idle_ms = acknowledged() > seen ? 0 : idle_ms + facts_check_ms
    seen = acknowledged()
  }
  return seen >= last
}

/** Whether the live data of a file fits elsewhere, after removing empty files if necessary. */
const ensureFits = async (parts: ReclaimParts, fits: () => boolean) => {
  await parts.space.refresh()
  if (fits()) return true
  await retire(parts, on_request)
  await parts.pause(refresh_wait_ms)
  await parts.space.refresh()
  return fits()
}

/**
 * Whether the disk has space for a copy, and for the files that the log may need in the meantime.
 */
const fitsDisk = ({ space, limits }: ReclaimParts, bytes: number) =>
  space.freeBytes() >= bytes + 2 * limits.segment_bytes

const noSpaceText = (bytes: number) =>
  `The disk has no room to move ${inMebibytes(bytes)}: ` +
  "delete more blobs or free space on the disk, then run it again."

/** Removes emptied files from time to time, so that space returns during the run. */
const makeRemover = (parts: ReclaimParts) => {
  let moved_bytes = 0
  return async (bytes: number) => {
    moved_bytes += bytes
    if (moved_bytes < moved_bytes_max) return
    moved_bytes = 0
    await retire(parts, on_request)
  }
}

/** Share of the log's space that moves may take: on a full disk, deletes need the rest. */
const log_share = 3 / 4

const fitsLog = (parts: ReclaimParts, bytes: number) =>
  bytes <= parts.logSpace() * log_share || fitsDisk(parts, bytes)

/** Returns why it ended early. */
const emptyLogs = async (parts: ReclaimParts, pace: Pace) => {
  const moved = makeRemover(parts)
  for (const { segment } of logCandidates(parts, on_request)) {
    const file = logCandidates(parts, on_request).find((one) => one.segment === segment)
    if (!file) continue
    const { live_bytes } = file
    if (!(await ensureFits(parts, () => fitsLog(parts, live_bytes)))) return noSpaceText(live_bytes)
    await emptyLog(parts, file, pace)
    await moved(live_bytes)
  }
  return undefined
}

const fitsExtents = (parts: ReclaimParts, number: number, tried: ReadonlySet<number>) => {
  const files = parts.extents.files()
  const file = files.find(({ segment }) => segment.number === number)
  if (!file) return true
  const others = files.filter((one) => one === file || !tried.has(one.segment.number))
  const is_inside = spaceElsewhere(others, file) >= 2 * file.live_bytes
  return is_inside || fitsDisk(parts, file.live_bytes)
}

/** Returns why it ended early. */
const emptyExtents = async (parts: ReclaimParts, pace: Pace) => {
  const { extents, segments } = parts
  const moved = makeRemover(parts)
  const candidates = new Set(extentFilesWorthIt(parts).map(({ segment }) => segment.number))
  const tried = new Set<number>()
  try {
    for (;;) {
      const [file] = extentFilesWorthIt(parts)
        .filter(({ segment: { number } }) => candidates.has(number) && !tried.has(number))
        .sort((one, other) => one.live_bytes - other.live_bytes)
      if (!file) return undefined
      const { live_bytes } = file
      const { number } = file.segment
      if (!(await ensureFits(parts, () => fitsExtents(parts, number, tried)))) {
        return noSpaceText(live_bytes)
      }
      tried.add(number)
      extents.close(number, true)
      await emptyExtentFile(parts, number, pace).catch((cause: unknown) => {
        if (cause !== no_space) throw cause
      })
      await moved(live_bytes)
    }
  } finally {
    for (const number of tried) {
      if (segments.find("ext", number)) extents.close(number, false)
    }
  }
}

const facts_missing =
  "Some space can be reclaimed only after the event log has all facts: check /readyz, then retry."

/** Reclaims all space that is worth a copy. Returns the reason if some is left. */
export const reclaim = async (parts: ReclaimParts, pace: Pace): Promise<string | undefined> => {
  parts.commits.assertWritable()
  const work = async () => {
    await retire(parts, on_request)
    await parts.trimLog()
    await parts.sealLog()
    const is_recorded = await waitForFacts(parts, pace)
    const short = (await emptyLogs(parts, pace)) ?? (await emptyExtents(parts, pace))
    return short ?? (is_recorded ? undefined : facts_missing)
  }
  const ended = (cause: unknown) => {
    if (cause === stopped || !isExpectedEnd(cause)) throw cause
    const fault = faultOf(cause)
    return "detail" in fault ? fault.detail : fault._tag
  }
  const problem = await work().catch(ended)
  await retire(parts, on_request).catch(ended)
  await parts.trimLog()
  return problem
}

/** A run, shared by all callers while it lasts. */
interface Run {
  readonly before_bytes: number
  readonly end: Promise<void>
  outcome:
    | { readonly at: number; readonly problem: string | undefined; cause?: unknown }
    | undefined
}

export interface Reclaiming {
  readonly parts: ReclaimParts
  readonly usedBytes: () => number
  /** Runs the reclaim, after any compaction in progress. */
  readonly work: () => Promise<string | undefined>
}

/** Starts a run, or joins the current one. Returns within `wait_ms`. */
export const makeReclaim = ({ parts, usedBytes, work }: Reclaiming) => {
  const { space, now } = parts
  let current: Run | undefined

  const begin = (): Run => {
    const end = async () => {
      const problem = await work()
      run.outcome = { at: now(), problem }
    }
    const fail = (cause: unknown) => {
      run.outcome = { at: now(), problem: undefined, cause }
    }
    const run: Run = {
      before_bytes: space.ownBytes(),
      // Deferred until `run` is assigned.
      end: Promise.resolve().then(end).catch(fail),
      outcome: undefined,
    }
    return run
  }
  const isOld = ({ outcome }: Run) => outcome && now() - outcome.at > outcome_ms_max
  return async (wait_ms: number): Promise<Reclaimed> => {
    if (current === undefined || isOld(current)) current = begin()
    const run = current
    const waiting = new AbortController()
    const { signal } = waiting
    await Promise.race([run.end, sleep(wait_ms, undefined, { signal }).catch(() => undefined)])
    waiting.abort()
    const { outcome } = run
    if (outcome && current === run) current = undefined
    if (outcome?.cause === stopped) {
      throw faultError({ _tag: "BlobStoreFailed", detail: "The volume is being closed." })
    }
    if (outcome?.cause !== undefined) throw outcome.cause
    return {
      is_done: outcome !== undefined,
      given_back_bytes: Math.max(0, run.before_bytes - space.ownBytes()),
      remaining_bytes: remainingBytes(parts),
      disk_bytes: space.ownBytes(),
      used_bytes: usedBytes(),
      problem: outcome?.problem,
    }
  }
}
