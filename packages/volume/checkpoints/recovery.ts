/**
 * Recovery at startup: finds the volume's files, loads the checkpoint, replays the log after it,
 * and makes the result durable.
 */
import { dirname, join } from "node:path"
import { crc32c } from "@node-rs/crc32"
import { makeIndex } from "../blob-index/blob-index.ts"
import type { VolumeDisk } from "../disk.ts"
import { makeExtents } from "../extents/files.ts"
import type { FreeSpace } from "../free-space/gauge.ts"
import {
  claimedGeneration,
  data_start,
  decodeBatchHeader,
  page_bytes,
  seedOf,
} from "../log/format.ts"
import { firstBatchOf, makeLogReader, searchHeader } from "../log/reader.ts"
import { type ReplayFile, replay } from "../log/replay.ts"
import {
  type FoundFiles,
  type FoundSegment,
  findSegments,
  makeSegments,
  type OpenSegments,
} from "../log/segments.ts"
import { type Counters, fresh_counters, makeState } from "../log/state.ts"
import { log_start } from "../log/writer.ts"
import type { Segment } from "../parts.ts"
import { type CheckpointFacts, type KnownLog, readCheckpoint } from "./checkpoint.ts"

/** Marks a clean shutdown, and names the checkpoint that covers the whole volume. */
const clean_pattern = /^clean-(\d+)$/
/** Read size of a search for a batch in a file with a damaged superblock, in bytes. */
const search_bytes = 1024 * 1024

export interface RecoveryOptions {
  readonly disk: VolumeDisk
  readonly dir: string
  readonly segment_bytes: number
  /** The identifier of a new volume. */
  readonly new_volume_id: Uint8Array
  readonly now: () => number
  readonly fail: (detail: string) => void
  readonly space: FreeSpace
}

/**
 * Removes the mark of a clean shutdown, and returns the serial of its checkpoint. Undefined after a
 * crash.
 */
const takeCleanMark = async (disk: VolumeDisk, dir: string) => {
  let serial: number | undefined
  for (const name of await disk.names(dir)) {
    const [, digits] = clean_pattern.exec(name) ?? []
    if (digits === undefined) continue
    serial = Number(digits)
    await disk.remove(join(dir, name))
  }
  await disk.syncFolder(dir)
  return serial
}

/** Marks a clean shutdown: the checkpoint of this serial covers the whole volume. */
export const writeCleanMark = async (disk: VolumeDisk, dir: string, serial: number) => {
  const file = await disk.create(join(dir, `clean-${serial}`))
  await file.close()
  await disk.syncFolder(dir)
}

/** Finds the generation of a file with a damaged superblock, from its first valid batch. */
const findGeneration = async (found: FoundSegment, volume_id: Uint8Array) => {
  for (let start = data_start; start < found.bytes; start += search_bytes) {
    const bytes = Buffer.from(await found.file.read(start, search_bytes))
    for (let page = 0; page < bytes.length; page += page_bytes) {
      const generation = claimedGeneration(bytes, page)
      const is_possible = generation > 0 && Number.isSafeInteger(generation)
      const seed = is_possible ? seedOf({ ...found, volume_id, generation }) : 0
      if (is_possible && decodeBatchHeader(bytes, page, seed)) return { ...found, generation }
    }
  }
  return found
}

interface LogFiles {
  /** Files with batches after the checkpoint, in the order of those. */
  readonly replayed: ReadonlyArray<Segment>
  /** Files that were retired before the process ended, but not recycled yet. */
  readonly stale: ReadonlyArray<Segment>
}

interface ClassifyParts {
  readonly found: FoundFiles
  readonly volume_id: Uint8Array
  readonly facts: CheckpointFacts | undefined
  readonly is_clean: boolean
  readonly segments: OpenSegments
}

/** Determines which of the log files unknown to the checkpoint are in use. */
const classifyLogs = async (
  { volume_id, segments, facts, is_clean }: ClassifyParts,
  unknown: ReadonlyArray<FoundSegment>,
): Promise<LogFiles> => {
  const replayed: Array<{ readonly segment: Segment; readonly sequence: number }> = []
  const stale: Array<Segment> = []
  for (const one of unknown) {
    if (is_clean) {
      segments.adopt(one, true)
      continue
    }
    const found = one.generation === 0 ? await findGeneration(one, volume_id) : one
    const probe = { ...found, seed: seedOf({ ...found, volume_id }) }
    const header = (await firstBatchOf(probe)) ?? (await searchHeader(probe, data_start, 0))
    const segment = segments.adopt(found, header === undefined)
    if (!header) continue
    if (facts && header.sequence <= facts.end.sequence) stale.push(segment)
    else replayed.push({ segment, sequence: header.sequence })
  }
  replayed.sort((one, other) => one.sequence - other.sequence)
  return { replayed: replayed.map(({ segment }) => segment), stale }
}

/** The file as the checkpoint knows it, even if its superblock is damaged. */
const withKnownFacts = (
  found: FoundSegment,
  known: KnownLog | undefined,
): FoundSegment | undefined => {
  if (!known) return undefined
  if (found.generation === known.generation) return found
  const { generation, bytes } = known
  return found.generation === 0 ? { ...found, generation, bytes } : undefined
}

/**
 * Loads the checkpoint, unless a file that it names was retired later: then the whole log is
 * replayed. The next checkpoint gets a higher serial than any existing one, so that it takes
 * precedence.
 */
const loadCheckpoint = async (disk: VolumeDisk, dir: string, { files }: FoundFiles) => {
  const read = await readCheckpoint(disk, dir)
  if (!read) return { checkpoint: undefined, serial: 0 }
  const { checkpoint, is_last } = read
  const { serial } = checkpoint.facts
  if (is_last) return { checkpoint, serial }
  const exists = (log: KnownLog) =>
    files.some(
      ({ kind, number, generation }) =>
        kind === "log" && number === log.number && generation === log.generation,
    )
  const is_whole = checkpoint.facts.logs.every(exists)
  return { checkpoint: is_whole ? checkpoint : undefined, serial }
}

/** Opens the folder's volume, replayed and durable. Nothing else may have it open. */
export const recover = async (options: RecoveryOptions) => {
  const { disk, dir, segment_bytes, new_volume_id, now, fail, space } = options
  await disk.makeFolder(dir)
  await disk.syncFolder(dirname(dir))
  const clean_serial = await takeCleanMark(disk, dir)
  const found = await findSegments(disk, dir)
  const { checkpoint, serial } = await loadCheckpoint(disk, dir, found)
  const facts = checkpoint?.facts
  const is_clean = facts !== undefined && facts.serial === clean_serial
  const volume_id = facts ? Buffer.from(facts.volume_id, "hex") : (found.volume_id ?? new_volume_id)
  if (found.volume_id && Buffer.compare(found.volume_id, volume_id) !== 0) {
    throw new Error(`the files in ${dir} do not match its checkpoint`)
  }
  const generation = facts?.generation ?? 0
  const files = { disk, dir, volume_id, segment_bytes, generation, now, space }
  const segments = makeSegments(files)
  for (const one of found.files) if (one.kind === "ext") segments.adopt(one, false)
  const known = new Map(facts?.logs.map((log) => [log.number, log]))
  const unknown: Array<FoundSegment> = []
  const known_files: Array<readonly [Segment, KnownLog]> = []
  for (const one of found.files.filter(({ kind }) => kind === "log")) {
    const log = known.get(one.number)
    const same = withKnownFacts(one, log)
    if (same && log) known_files.push([segments.adopt(same, false), log])
    else unknown.push(one)
  }
  const logs = await classifyLogs({ found, volume_id, facts, is_clean, segments }, unknown)
  const index = makeIndex(checkpoint?.index ?? [], crc32c(volume_id))
  const images = checkpoint?.extents ?? []
  const extents = makeExtents({ segments, segment_bytes, fail, images, space })
  const counters: Counters = { ...(facts?.counters ?? fresh_counters) }
  const state = makeState(index, extents, counters)
  for (const [segment, log] of known_files) state.addFile(segment, log)
  const start = facts?.end ?? log_start
  const continued = state.files.get(start.file)
  const replayed: ReadonlyArray<ReplayFile> = [
    ...(continued ? [{ file: continued, position: start.position }] : []),
    ...logs.replayed.map((segment) => ({ file: state.addFile(segment), position: data_start })),
  ]
  const { end, deletes, headless } = is_clean
    ? { end: start, deletes: [], headless: [] }
    : await replay({ state, log: makeLogReader(segments) }, replayed, start)
  for (const segment of logs.stale) await segments.retire(segment)
  const notes: Record<string, string> = { ...facts?.notes }
  return { volume_id, segments, index, extents, state, end, deletes, headless, notes, serial }
}
