/**
 * The volume's engine. Small blobs are records in an append-only log, where many puts share one
 * sync; large blobs are written to extent files. An index in memory locates the newest record of
 * each id.
 *
 * Source: document 1 §1, §4 BlobService; docs/decisions/0110-volume-store.md.
 */
import { randomBytes } from "node:crypto"
import { performance } from "node:perf_hooks"
import { setTimeout as sleep } from "node:timers/promises"
import type { BlobPage } from "#actors/blob-storage/ports/engine.ts"
import { isFull } from "#actors/blob-storage/ports/fault.ts"
import type { NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import { makeCheckpoints } from "./checkpoints/checkpointing.ts"
import { recover, writeCleanMark } from "./checkpoints/recovery.ts"
import { makeCheckpointSpace } from "./checkpoints/space.ts"
import { type VolumeDisk, volumeDisk } from "./disk.ts"
import type { ExtentFiles } from "./extents/files.ts"
import { budgetOf, makeUsage, usedBytes } from "./free-space/budget.ts"
import { monitorFreeSpace } from "./free-space/gauge.ts"
import { makeLogFiles } from "./free-space/log-files.ts"
import type { Reclaimed } from "./free-space/reclaim.ts"
import { makeHoldings } from "./holdings.ts"
import { makeCommitQueue } from "./log/commit.ts"
import { makeJournalScan } from "./log/journal.ts"
import { makeLogReader } from "./log/reader.ts"
import type { HeadlessBlob } from "./log/replay.ts"
import type { Counters } from "./log/state.ts"
import { makeWriter } from "./log/writer.ts"
import type { CommitQueue, VolumeLimits, VolumeParts } from "./parts.ts"
import { makeCopies } from "./reads/copies.ts"
import { makeReads } from "./reads/reads.ts"
import { makeWindows, type Windows } from "./reads/windows.ts"
import type { Compacted } from "./upkeep/compaction.ts"
import { makeQuarantine, quarantineHeadless } from "./upkeep/quarantine.ts"
import { makeUpkeep } from "./upkeep/upkeep.ts"
import { makePutSmall, sizeOf } from "./writes/puts.ts"
import { makeReceive } from "./writes/receive.ts"
import { makeRenew } from "./writes/renewal.ts"
import { makeStage } from "./writes/staging.ts"
import { makeUploads } from "./writes/uploads.ts"

export interface VolumeOptions {
  /** The volume's folder. The caller must hold its lock (`holdFolder`). */
  readonly dir: string
  /** Capacity in bytes. 0: 90% of the disk. */
  readonly capacity_bytes: number
  /** Free bytes that puts must leave on the disk. Undefined: free space is not monitored. */
  readonly free_floor_bytes?: number
  readonly size_max_bytes: number
  /** Initial length of a log or extent file. Files grow under load. */
  readonly segment_bytes: number
  /** Rate of the background scrub. 0: no background scrub. */
  readonly scrub_bytes_per_second: number
  /** False: no timers; only commits start background work. */
  readonly background?: boolean
  /**
   * The last cursor of this node in the event log. A restored or replaced volume resumes after it.
   */
  readonly resume_after?: number
  /** The identifier of a new volume. Default: 16 random bytes. */
  readonly volume_id?: Uint8Array
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number
  /**
   * Wall clock for damage found in the background, in Unix nanoseconds. Default: the system clock.
   */
  readonly clock?: () => bigint
  /** Reports background problems, which affect no response. */
  readonly report?: Report
}

export type Report = (problem: string) => void

export interface VolumeStatus {
  readonly log_files: number
  readonly extent_files: number
  /** Live and dead bytes over all files. Compaction reclaims dead bytes. */
  readonly live_bytes: number
  readonly dead_bytes: number
  /** Free bytes on the disk, and the floor that puts must leave. Undefined: not monitored. */
  readonly disk: { readonly free_bytes: number; readonly floor_bytes: number } | undefined
  readonly damaged_batches: number
  /** Batches written since startup. Each is one sync of the log. */
  readonly batches: number
  /** Records written since startup. */
  readonly records: number
  readonly index_bytes: number
  /**
   * When the least recently verified file was last verified, in Unix milliseconds. Undefined: the
   * volume is empty.
   */
  readonly oldest_unverified_at: number | undefined
}

export interface VolumeEngine extends NodeEngine {
  readonly status: () => VolumeStatus
  /** Runs one round of compaction, unthrottled. */
  readonly compact: () => Promise<Compacted>
  /**
   * Returns the space of deleted blobs to the disk, unthrottled. Concurrent calls share one run.
   * Resolves when the run ends or after `wait_ms`, with the progress so far.
   */
  readonly reclaim: (wait_ms: number) => Promise<Reclaimed>
  /** Verifies all live data, unthrottled. */
  readonly scrub: () => Promise<void>
  /** Writes a checkpoint now. */
  readonly checkpoint: () => Promise<void>
}

/** Blobs of at least this size are stored in extents, in bytes. */
const inline_bytes_max = 256 * 1024

const limitsOf = (options: VolumeOptions): VolumeLimits => ({
  size_max_bytes: options.size_max_bytes,
  segment_bytes: options.segment_bytes,
  inline_bytes_max: Math.min(inline_bytes_max, Math.floor(options.segment_bytes / 8)),
})

/** False if the disk is full. Any other error is thrown. */
const ignoreDiskFull = async (work: () => Promise<void>) => {
  try {
    await work()
    return true
  } catch (cause) {
    if (isFull(cause)) return false
    throw cause
  }
}

/**
 * The event log may hold facts from a later state of this folder, or from the folder it replaced.
 * Cursors resume after them, so that no cursor is used twice and no new fact is mistaken for an old
 * one.
 */
const resumeAfter = (counters: Counters, { resume_after = 0, report }: VolumeOptions) => {
  if (counters.cursor >= resume_after) return
  report?.(
    `its journal ends at ${counters.cursor}, but the event log has facts of this node up to ` +
      `${resume_after}: the folder was restored or replaced, and its cursors resume after that`,
  )
  counters.cursor = resume_after
  counters.acknowledged = resume_after
}

type Recovered = Awaited<ReturnType<typeof recover>>

const open = async (options: VolumeOptions, base_disk: VolumeDisk) => {
  const { dir, free_floor_bytes: floor_bytes } = options
  const now = options.now ?? (() => performance.now())
  const { disk, space } = monitorFreeSpace(base_disk, { dir, floor_bytes, now })
  const limits = limitsOf(options)
  const callbacks: { fail?: (detail: string) => void; noteWritten?: (bytes: number) => void } = {}
  const fail = (detail: string) => callbacks.fail?.(detail)
  const recovered = await recover({
    disk,
    dir,
    segment_bytes: limits.segment_bytes,
    now,
    fail,
    space,
    new_volume_id: options.volume_id ?? randomBytes(16),
  })
  const { segments, index, state, end, notes } = recovered
  const { counters } = state
  resumeAfter(counters, options)
  const log = makeLogReader(segments)
  const budget = budgetOf(recovered, options.capacity_bytes, space)
  const checkpoint_space = makeCheckpointSpace({ ...recovered, disk, dir, now, fail, space })
  const checkpointFault = checkpoint_space.fault
  const commits = makeCommitQueue({
    state,
    log,
    makeWriter: (failed) =>
      makeWriter({ segments, state, now, fail: failed, space, checkpointFault }, end),
    capacityFault: budget.capacityFault,
    noteWritten: (bytes) => callbacks.noteWritten?.(bytes),
    report: (problem) => options.report?.(problem),
    deletes: recovered.deletes,
  })
  callbacks.fail = commits.fail
  const checkpoints = makeCheckpoints(recovered, commits, { dir, disk, space: checkpoint_space })
  const { checkpoint } = checkpoints
  callbacks.noteWritten = checkpoints.noteWritten
  await space.refresh()
  await commits.writer.begin()
  await checkpoint_space.begin()
  const parts: VolumeParts = {
    dir,
    disk,
    limits,
    segments,
    index,
    commits,
    log,
    budget,
    space,
    notes,
    now,
    checkpoint,
    logFiles: () => state.logFiles(commits.writer.where().file),
    acknowledged: () => counters.acknowledged,
    ...makeLogFiles(recovered, commits),
  }
  const usage = makeUsage(recovered, budget, parts)
  return { parts, commits, recovered, checkpoints, scan: makeJournalScan(state), usage }
}

/** Operations that remove a copy and record the removal. */
const makeRemovals = (
  { assertWritable, submit }: CommitQueue,
  clock: () => bigint,
): Pick<NodeEngine, "delete" | "deleteClusterWide" | "release"> => ({
  delete: async (id, origin, at) => {
    assertWritable()
    await submit({ kind: "delete", id, origin, at })
  },
  deleteClusterWide: async (id, origin, deleted_at) => {
    assertWritable()
    await submit({ kind: "delete", id, origin, at: clock(), cluster_at: deleted_at })
  },
  release: async (id, stored_at, at) => {
    assertWritable()
    return (await submit({ kind: "release", id, stored_at, at })).is_done
  },
})

const bytesOnDisk = ({ logFiles }: VolumeParts, extents: ExtentFiles) => {
  const logs = logFiles()
  const { live, dead } = extents.bytes()
  const log_live = logs.reduce((sum, { live_bytes }) => sum + live_bytes, 0)
  const log_written = logs.reduce((sum, { written_bytes }) => sum + written_bytes, 0)
  return {
    log_files: logs.length,
    live_bytes: live + log_live,
    dead_bytes: dead + log_written - log_live,
  }
}

/** The system clock, in Unix nanoseconds. */
const machineClock = () => BigInt(Date.now()) * 1_000_000n
const clockOf = ({ clock = machineClock }: VolumeOptions) => clock

/** Wires reads to the parts that use them: quarantine, renewal and upkeep. */
const makeReadPaths = (
  parts: VolumeParts,
  { recovered, windows }: { readonly recovered: Recovered; readonly windows: Windows },
  options: VolumeOptions,
) => {
  const { extents } = recovered
  const report = options.report ?? (() => undefined)
  const quarantine = makeQuarantine(parts, extents, report)
  const copies = makeCopies(parts, quarantine)
  const reads = makeReads({ ...parts, copies, windows, extents, quarantine })
  const is_manual = options.background === false
  const pause = is_manual ? async () => {} : (ms: number) => sleep(ms)
  const upkeep = makeUpkeep(
    { ...parts, copies, windows, extents, clock: clockOf(options), pause },
    {
      scrub_bytes_per_second: options.scrub_bytes_per_second,
      now: parts.now,
      report,
      usedBytes: () => usedBytes(recovered),
    },
  )
  if (!is_manual) upkeep.start()
  const quarantineAll = (headless: ReadonlyArray<HeadlessBlob>) =>
    quarantineHeadless(quarantine, headless, clockOf(options)(), report)
  const renew = makeRenew({ ...parts, copies })
  return { ...reads, settled: quarantine.settled, quarantineAll, upkeep, renew }
}

/**
 * Wires the write paths. A put of stored content verifies the stored copy instead of writing it
 * again.
 */
const makeWritePaths = (
  parts: VolumeParts,
  { extents, windows }: { readonly extents: ExtentFiles; readonly windows: Windows },
  { verify, renew }: Pick<ReturnType<typeof makeReadPaths>, "verify" | "renew">,
  last_at: () => bigint,
) => {
  const putSmall = makePutSmall({ ...parts, verify })
  const uploads = makeUploads({ ...parts, verify }, { extents, windows, putSmall })
  const put: NodeEngine["put"] = (order, bytes, at, placed) =>
    sizeOf(bytes) < parts.limits.inline_bytes_max
      ? putSmall(order, bytes, at, placed)
      : uploads.putLarge(order, bytes, at)
  return {
    put,
    upload: uploads.upload,
    receive: makeReceive({ ...parts, verify, renew, last_at }, extents),
    stage: makeStage(parts, extents, windows),
  }
}

/** Opens a volume, or creates one if the folder has none. */
export const openVolume = async (
  options: VolumeOptions,
  disk: VolumeDisk = volumeDisk,
): Promise<VolumeEngine> => {
  const { parts, commits, recovered, checkpoints, scan, usage } = await open(options, disk)
  const { index, segments, extents, state } = recovered
  const { counters } = state
  const windows = makeWindows(segments)
  const reads = makeReadPaths(parts, { recovered, windows }, options)
  await reads.quarantineAll(recovered.headless)
  const last_at = () => counters.last_at
  return {
    ...makeWritePaths(parts, { extents, windows }, reads, last_at),
    get: reads.get,
    getCached: reads.getNow,
    read: reads.read,
    renew: reads.renew,
    ...makeHoldings({ ...parts, head: reads.head, last_at }),
    ...makeRemovals(commits, clockOf(options)),
    // A damaged record is quarantined with the last record's time, or a later one.
    stat: (id) => reads.stat(id, last_at()),
    list: async (after_id, prefix, limit): Promise<BlobPage> => {
      const ids = index.list(after_id, prefix, limit + 1)
      return { ids: ids.slice(0, limit), has_more: ids.length > limit }
    },
    usage,
    scan,
    acknowledge: async (cursor) => {
      commits.assertWritable()
      state.acknowledge(cursor)
    },
    compact: reads.upkeep.compact,
    reclaim: reads.upkeep.reclaim,
    scrub: reads.upkeep.scrub,
    close: async () => {
      await reads.upkeep.stop()
      await reads.settled()
      await checkpoints.settled()
      await commits.settled()
      await checkpoints.settled()
      const is_in_order = await segments.settled()
      // Without space for a checkpoint or its mark, the next startup replays more of the log.
      if (
        commits.failed() === undefined &&
        (await ignoreDiskFull(() => parts.checkpoint())) &&
        is_in_order
      ) {
        await ignoreDiskFull(() => writeCleanMark(disk, options.dir, checkpoints.serial()))
      }
      await segments.closeAll()
    },
    status: () => ({
      ...bytesOnDisk(parts, extents),
      extent_files: segments.all("ext").length,
      damaged_batches: counters.damaged_batches,
      disk:
        options.free_floor_bytes === undefined
          ? undefined
          : { free_bytes: parts.space.freeBytes(), floor_bytes: parts.space.floor_bytes },
      ...commits.writer.written(),
      index_bytes: index.bytes(),
      oldest_unverified_at: reads.upkeep.oldestUnverifiedAt(),
    }),
    checkpoint: () => parts.checkpoint(),
  }
}
