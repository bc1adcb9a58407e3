/**
 * Compaction: moves the live data of mostly dead files elsewhere, and recycles the files. No file
 * is retired before a checkpoint without it is durable.
 */
import { faultError, faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { ExtentFile } from "../extents/files.ts"
import { type Thresholds, thresholdsOf } from "../free-space/thresholds.ts"
import type { LogFile, VolumeParts } from "../parts.ts"
import { type ExtentMoverParts, emptyExtentFile, no_space } from "./extent-mover.ts"
import { emptyLog, type MoverParts } from "./log-mover.ts"
import { type Pace, stopped } from "./pace.ts"

export interface CompactionParts
  extends MoverParts,
    ExtentMoverParts,
    Pick<
      VolumeParts,
      | "index"
      | "commits"
      | "segments"
      | "logFiles"
      | "acknowledged"
      | "checkpoint"
      | "retireLog"
      | "space"
    > {}

/** The files that one round retired. */
export interface Compacted {
  readonly log_files: number
  readonly extent_files: number
}

/** Maximum number of extent files emptied in one round. */
const extent_files_max = 8

/** The log files worth compacting, those with the least to move first. */
export const logCandidates = (
  { logFiles, acknowledged, space }: CompactionParts,
  { log_live_max }: Thresholds = thresholdsOf(space),
) =>
  logFiles()
    .filter(
      ({ is_current, written_bytes, live_bytes, last_cursor }) =>
        !is_current &&
        live_bytes < log_live_max * written_bytes &&
        // Facts that are not acknowledged are in no other file.
        last_cursor <= acknowledged(),
    )
    .sort((one, other) => one.live_bytes - other.live_bytes)

/**
 * The extent file to empty, if one is worth emptying: the one with the least live data, provided
 * that the others have space for twice as much. Otherwise another file would have to be created for
 * it.
 */
export const extentCandidate = (
  { extents, space }: CompactionParts,
  tried?: ReadonlySet<number>,
): ExtentFile | undefined => {
  const { extent_live_max } = thresholdsOf(space)
  const files = extents.files().filter(({ segment }) => !tried?.has(segment.number))
  const [least] = files
    .filter((file) => isExtentFileWorthIt(file, extent_live_max))
    .sort((one, other) => one.live_bytes - other.live_bytes)
  return least && spaceElsewhere(files, least) >= 2 * least.live_bytes ? least : undefined
}

/** Whether an extent file has something to move, and more to gain. */
export const isExtentFileWorthIt = ({ live_bytes, data_bytes }: ExtentFile, live_max: number) =>
  live_bytes > 0 && live_bytes < live_max * data_bytes

/** Free bytes in all of these files but one: writing there allocates no disk space. */
export const spaceElsewhere = (files: ReadonlyArray<ExtentFile>, one: ExtentFile) =>
  files.reduce((sum, file) => (file === one ? sum : sum + file.free_bytes), 0)

/** The empty extent files, except those kept for uploads. */
export const spareExtentFiles = (
  { extents, space }: CompactionParts,
  { empty_extent_files_max }: Thresholds = thresholdsOf(space),
) =>
  extents
    .files()
    .filter(({ segment }) => extents.isEmpty(segment.number))
    .slice(empty_extent_files_max)

const isEmptied = ({ acknowledged }: CompactionParts, file: LogFile) =>
  !file.is_current && file.live_bytes === 0 && file.last_cursor <= acknowledged()

/** Retires empty files. Returns their number. */
export const retire = async (
  parts: CompactionParts,
  thresholds: Thresholds = thresholdsOf(parts.space),
): Promise<Compacted> => {
  const { extents, segments, logFiles } = parts
  const empty = () => logFiles().filter((file) => isEmptied(parts, file))
  const logs = new Set(empty().map(({ segment }) => segment))
  const files = spareExtentFiles(parts, thresholds).map(({ segment }) => segment)
  for (const { number } of files) extents.close(number, true)
  const retired: Array<Promise<void>> = []
  let log_files = 0
  let extent_files = 0
  try {
    if (logs.size + files.length === 0) return { log_files, extent_files }
    // Retired log files become spare ones, so the one held in reserve may be used for the
    // checkpoint.
    await parts.checkpoint(logs.size > 0 ? 0 : 1)
    for (const { segment } of empty().filter((file) => logs.has(file.segment))) {
      log_files += 1
      retired.push(parts.retireLog(segment.number, thresholds.spare_log_files_max))
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

/**
 * Upkeep may use half of the floor, because moved data takes space until the old files are retired.
 */
const assertSpace = async ({ space }: CompactionParts) => {
  await space.refresh()
  const fault = space.isLow() ? space.fault(0) : undefined
  if (fault) throw faultError(fault)
}

/** Empties the log files worth emptying; near the floor only until there is space again. */
const emptyLogs = async (parts: CompactionParts, pace: Pace) => {
  let coming_bytes = 0
  for (const file of logCandidates(parts)) {
    await assertSpace(parts)
    const { log_live_max } = thresholdsOf(parts.space, coming_bytes)
    const { live_bytes, written_bytes } = file
    if (live_bytes >= log_live_max * written_bytes) continue
    await emptyLog(parts, file, pace)
    coming_bytes += file.segment.bytes - live_bytes
  }
}

/** Empties the extent files worth emptying, each once, as long as the others have space. */
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

/** Expected ends of a round: no space to move to, a read-only volume, or its shutdown. */
export const isExpectedEnd = (cause: unknown) =>
  cause === stopped || ["BlobCapacityExceeded", "BlobStoreReadOnly"].includes(faultOf(cause)._tag)

/** The detail of a round that hit a full disk, not merely fragmented files. */
const fullDetail = (cause: unknown) => {
  const fault = faultOf(cause)
  return fault._tag === "BlobCapacityExceeded" && cause !== no_space ? fault.detail : undefined
}

/**
 * Runs one round. Retires empty files in any case, and returns their number. Calls `onFull` if a
 * full disk ended it early.
 */
export const compact = async (
  parts: CompactionParts,
  pace: Pace,
  onFull: (detail: string) => void,
): Promise<Compacted> => {
  const end = (cause: unknown) => {
    if (!isExpectedEnd(cause)) throw cause
    const detail = fullDetail(cause)
    if (detail !== undefined) onFull(detail)
  }
  try {
    await emptyLogs(parts, pace)
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
