/**
 * Compaction: what is live in files that are mostly dead is written again elsewhere, and the files
 * are used anew. Nothing is given up before a checkpoint without it is durable.
 */
import { faultOf, thrown } from "#actors/blob-storage/blob-fault.ts"
import { type ExtentMoverParts, emptyExtentFile, no_room } from "./volume-extent-mover.ts"
import type { ExtentFile } from "./volume-extents.ts"
import { emptyLog, type MoverParts } from "./volume-log-mover.ts"
import { type Pace, stopped } from "./volume-pace.ts"
import type { LogFile, VolumeParts } from "./volume-parts.ts"

export interface CompactionParts
  extends MoverParts,
    ExtentMoverParts,
    Pick<
      VolumeParts,
      | "index"
      | "line"
      | "segments"
      | "logFiles"
      | "acknowledged"
      | "checkpoint"
      | "retireLog"
      | "space"
    > {}

/** What one round gave free to be used anew, in files. */
export interface Compacted {
  readonly log_files: number
  readonly extent_files: number
}

/** A log file is emptied when less than this part of what was written to it is live. */
const log_live_min = 0.5
/** A file of extents when less than this part of it is. */
const extent_live_min = 0.4
/** Files of extents that are emptied in one round at most. */
const extent_files_max = 8
/** Files of extents without anything in them that wait for uploads; more of them are given up. */
const empty_extent_files_max = 1

/** The log files that are worth it, those with the least to move first. */
export const logCandidates = ({ logFiles, acknowledged }: CompactionParts) =>
  logFiles()
    .filter(
      ({ is_current, written_bytes, live_bytes, last_cursor }) =>
        !is_current &&
        live_bytes < log_live_min * written_bytes &&
        // Facts that nobody has yet are in no other file.
        last_cursor <= acknowledged(),
    )
    .sort((one, other) => one.live_bytes - other.live_bytes)

/**
 * The file of extents to empty, if one is worth it: the one with the least in it, where the others
 * have room for that twice over; else another file would have to be made for it.
 */
export const extentCandidate = (
  { extents }: CompactionParts,
  tried?: ReadonlySet<number>,
): ExtentFile | undefined => {
  const files = extents.files().filter(({ segment }) => !tried?.has(segment.number))
  const [least] = files
    .filter(
      ({ live_bytes, data_bytes }) => live_bytes > 0 && live_bytes < extent_live_min * data_bytes,
    )
    .sort((one, other) => one.live_bytes - other.live_bytes)
  if (!least) return undefined
  const elsewhere = files.reduce((sum, file) => (file === least ? sum : sum + file.free_bytes), 0)
  return elsewhere >= 2 * least.live_bytes ? least : undefined
}

/** The files of extents without anything in them, but for those that are kept for uploads. */
export const spareExtentFiles = ({ extents }: CompactionParts) =>
  extents
    .files()
    .filter(({ segment }) => extents.isEmpty(segment.number))
    .slice(empty_extent_files_max)

const isEmptied = ({ acknowledged }: CompactionParts, file: LogFile) =>
  !file.is_current && file.live_bytes === 0 && file.last_cursor <= acknowledged()

/** Gives up what is empty; answers how many files those were. */
const retire = async (parts: CompactionParts): Promise<Compacted> => {
  const { extents, segments, logFiles } = parts
  const empty = () => logFiles().filter((file) => isEmptied(parts, file))
  const logs = new Set(empty().map(({ segment }) => segment))
  const files = spareExtentFiles(parts).map(({ segment }) => segment)
  for (const { number } of files) extents.close(number, true)
  const retired: Array<Promise<void>> = []
  let log_files = 0
  let extent_files = 0
  try {
    if (logs.size + files.length === 0) return { log_files, extent_files }
    // What the checkpoint gives up becomes the spare file: the one that is held back may make way.
    await parts.checkpoint(logs.size > 0 ? 0 : 1)
    for (const { segment } of empty().filter((file) => logs.has(file.segment))) {
      log_files += 1
      retired.push(parts.retireLog(segment.number))
    }
    for (const segment of files.filter(({ number }) => extents.isEmpty(number))) {
      extent_files += 1
      extents.drop(segment.number)
      retired.push(segments.retire(segment))
    }
  } finally {
    await Promise.all(retired)
    for (const segment of files) {
      if (segments.find("ext", segment.number) === segment) extents.close(segment.number, false)
    }
  }
  return { log_files, extent_files }
}

/** Upkeep may use half of the floor: what is moved takes space until the old files are retired. */
const assertSpace = async ({ space }: CompactionParts) => {
  await space.look()
  const fault = space.isLow() ? space.fault(0) : undefined
  if (fault) throw thrown(fault)
}

/** Empties the files that are worth it, each once, as long as the others have room for them. */
const emptyExtentFiles = async (parts: CompactionParts, pace: Pace) => {
  const tried = new Set<number>()
  try {
    for (let n = 0; n < extent_files_max; n++) {
      const file = extentCandidate(parts, tried)
      if (!file) return
      await assertSpace(parts)
      const { number } = file.segment
      tried.add(number)
      parts.extents.close(number, true)
      await emptyExtentFile(parts, number, pace)
    }
  } finally {
    for (const number of tried) parts.extents.close(number, false)
  }
}

/** What ends a round early and is no failure: no room to move to, no writing, the volume's end. */
const isEnd = (cause: unknown) =>
  cause === stopped || ["BlobCapacityExceeded", "BlobStoreReadOnly"].includes(faultOf(cause)._tag)

/** Why a round ended where the disk was full; files without a row of room are no such thing. */
const fullDetail = (cause: unknown) => {
  const fault = faultOf(cause)
  return fault._tag === "BlobCapacityExceeded" && cause !== no_room ? fault.detail : undefined
}

/**
 * One round; what is empty is given up in any case. Answers what that was; `onFull` is told where a
 * full disk ended it early.
 */
export const compact = async (
  parts: CompactionParts,
  pace: Pace,
  onFull: (detail: string) => void,
): Promise<Compacted> => {
  const end = (cause: unknown) => {
    if (!isEnd(cause)) throw cause
    const detail = fullDetail(cause)
    if (detail !== undefined) onFull(detail)
  }
  try {
    for (const file of logCandidates(parts)) {
      await assertSpace(parts)
      await emptyLog(parts, file, pace)
    }
    await emptyExtentFiles(parts, pace)
  } catch (cause) {
    end(cause)
    if (cause === stopped) return { log_files: 0, extent_files: 0 }
  }
  try {
    return await retire(parts)
  } catch (cause) {
    end(cause)
    return { log_files: 0, extent_files: 0 }
  }
}
