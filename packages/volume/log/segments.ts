/**
 * Opens, creates and recycles the volume's files. The superblock identifies a file; its name
 * repeats kind and number. Log files are filled with zeros, because a sync after overwriting
 * allocated blocks takes a third of the time of a sync after appending. Extent files grow as they
 * are written.
 */
import { join } from "node:path"
import type { VolumeDisk, VolumeFile } from "../disk.ts"
import { alignedZeros } from "../extents/memory.ts"
import { type FreeSpace, unmonitored } from "../free-space/gauge.ts"
import type { Segment, Segments } from "../parts.ts"
import {
  data_start,
  decodeSuperblock,
  encodeSuperblock,
  formats,
  page_bytes,
  type SegmentKind,
  seedOf,
  toPages,
} from "./format.ts"

/** Maximum length of a file created under load, in bytes. */
export const segment_bytes_max = 1024 ** 3
/** A file requested within this time of the previous one is twice as long, in milliseconds. */
const growth_ms = 10_000
/** Maximum share of the free space above the floor for a log file above minimum length. */
const spare_share_max = 1 / 4
/** Maximum number of spare log files. Any others are removed. */
const spare_log_files_max = 2
/**
 * Size of a write that fills a file, and the number of writes per sync. Under load, a turn of the
 * event loop takes longer than writing 1 MiB.
 */
const fill_bytes = 4 * 1024 * 1024
const fills_per_sync = 4

/** Page-aligned, to bypass the page cache, which would cost more than all later writes. */
const zeros = alignedZeros(fill_bytes)
const name_pattern = /^(log|ext)-(\d{8})\.seg$/
const unfinished_pattern = /^new-(log|ext)-\d{8}\.tmp$/

export const segmentName = (kind: SegmentKind, number: number) =>
  `${kind}-${String(number).padStart(8, "0")}.seg`

/** A file found in the folder. Its superblock may be damaged. */
export interface FoundSegment {
  readonly kind: SegmentKind
  readonly number: number
  readonly file: VolumeFile
  readonly bytes: number
  /** Length on disk. Writes beyond it allocate disk space. */
  readonly written_bytes: number
  /** 0 if the superblock is damaged. Then only a checkpoint knows it. */
  readonly generation: number
  /** `formats.first` if the superblock is damaged. */
  readonly format: number
}

export interface FoundFiles {
  /** Undefined if the folder has no files. */
  readonly volume_id: Uint8Array | undefined
  readonly files: ReadonlyArray<FoundSegment>
}

/** Fills a span with zeros, durably, and yields to the event loop between writes. */
export const fillZeros = async (
  file: Pick<VolumeFile, "write" | "datasync">,
  start: number,
  end: number,
) => {
  let unsynced = 0
  for (let at = start; at < end; at += fill_bytes) {
    await file.write([zeros.subarray(0, Math.min(fill_bytes, end - at))], at)
    unsynced += 1
    if (unsynced < fills_per_sync) continue
    await file.datasync()
    unsynced = 0
  }
  await file.datasync()
}

/** Opens all files in the folder. Removes files that an earlier process did not finish creating. */
export const findSegments = async (disk: VolumeDisk, dir: string): Promise<FoundFiles> => {
  const files: Array<FoundSegment> = []
  let volume_id: Uint8Array | undefined
  const names = Array.from(await disk.names(dir)).sort()
  for (const name of names) {
    if (unfinished_pattern.test(name)) await disk.remove(join(dir, name))
    const [, kind, digits] = name_pattern.exec(name) ?? []
    if (digits === undefined) continue
    const number = Number(digits)
    const file = await disk.open(join(dir, name))
    const superblock = decodeSuperblock(Buffer.from(await file.read(0, data_start)))
    const is_name_right = superblock?.kind === kind && superblock?.number === number
    const named = is_name_right ? superblock : undefined
    volume_id ??= named?.volume_id
    const is_ours = named && Buffer.compare(named.volume_id, volume_id ?? zeros) === 0
    const written_bytes = await file.size()
    files.push({
      // The pattern matches no other kinds.
      kind: kind as SegmentKind,
      number,
      file,
      written_bytes,
      bytes: is_ours ? named.bytes : written_bytes,
      generation: is_ours ? named.generation : 0,
      format: is_ours ? named.format : formats.first,
    })
  }
  return { volume_id, files }
}

/** Counts reads in progress, during which a file must not be closed or zeroed. */
interface CountedFile extends VolumeFile {
  /** Resolves when no read is in progress. */
  readonly unused: () => Promise<void>
}

const countReads = (file: VolumeFile): CountedFile => {
  let reads = 0
  let waiting: Array<() => void> = []
  const end = () => {
    reads -= 1
    if (reads > 0) return
    for (const resolve of waiting) resolve()
    waiting = []
  }
  return {
    ...file,
    read: (position, length, into) => {
      reads += 1
      const bytes = file.read(position, length, into)
      bytes.then(end, end)
      return bytes
    },
    unused: () =>
      reads === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve)),
  }
}

interface CountedSegment extends Segment {
  readonly file: CountedFile
}

export interface SegmentsOptions {
  readonly disk: VolumeDisk
  readonly dir: string
  readonly volume_id: Uint8Array
  readonly segment_bytes: number
  /** The highest generation ever used. */
  readonly generation: number
  readonly now: () => number
  readonly space?: FreeSpace
}

/** Length of the next file of a kind: doubles while files are requested in quick succession. */
const makeGrowth = (segment_bytes: number, now: () => number) => {
  let last_bytes = segment_bytes
  let last_ms = Number.NEGATIVE_INFINITY
  const next = () => {
    const is_soon = now() - last_ms < growth_ms
    const bytes = is_soon ? last_bytes * 2 : Math.floor(last_bytes / 2)
    last_bytes = Math.max(segment_bytes, Math.min(bytes, segment_bytes_max))
    last_ms = now()
    return last_bytes
  }
  /** Resets to the initial length. */
  const reset = () => {
    last_bytes = segment_bytes
    last_ms = Number.NEGATIVE_INFINITY
  }
  return { next, reset }
}

/** Creates the volume's files. Numbers and generations are never reused. */
const makeFiles = ({ disk, dir, volume_id, space = unmonitored, ...options }: SegmentsOptions) => {
  const growths = {
    log: makeGrowth(options.segment_bytes, options.now),
    ext: makeGrowth(options.segment_bytes, options.now),
  }
  const numbers = { log: 0, ext: 0 }
  let generation = options.generation

  const noteNumber = (kind: SegmentKind, number: number) => {
    numbers[kind] = Math.max(numbers[kind], number)
  }
  const open = (found: FoundSegment): CountedSegment => {
    noteNumber(found.kind, found.number)
    generation = Math.max(generation, found.generation)
    return { ...found, file: countReads(found.file), seed: seedOf({ volume_id, ...found }) }
  }
  const nextGeneration = () => {
    generation += 1
    return generation
  }
  const init = async (file: CountedFile, kind: SegmentKind, number: number, bytes: number) => {
    const place = { volume_id, kind, number, generation: nextGeneration(), bytes }
    const superblock = { ...place, format: formats.first }
    await file.write([encodeSuperblock(superblock)], 0)
    await file.datasync()
    const written_bytes = await file.size()
    return { ...superblock, file, written_bytes, seed: seedOf(superblock) }
  }
  const make = async (kind: SegmentKind, data_bytes: number): Promise<CountedSegment> => {
    const grown = toPages(growths[kind].next())
    const has_space = kind === "ext" || grown <= space.spareBytes() * spare_share_max
    const wanted = has_space ? grown : toPages(options.segment_bytes)
    const bytes = Math.max(wanted, toPages(data_bytes) + data_start)
    numbers[kind] += 1
    const number = numbers[kind]
    const name = segmentName(kind, number)
    const unfinished = join(dir, `new-${name.replace(/seg$/, "tmp")}`)
    const file = countReads(await disk.create(unfinished))
    try {
      if (kind === "log") await fillZeros(file, 0, bytes)
      const segment = await init(file, kind, number, bytes)
      await disk.rename(unfinished, join(dir, name))
      await disk.syncFolder(dir)
      return segment
    } catch (cause) {
      await file.close()
      await disk.remove(unfinished)
      throw cause
    }
  }
  /** Recycles a log file under a new generation, which invalidates its contents. */
  const regenerate = async ({ number, bytes, file }: CountedSegment) => {
    const segment = await init(file, "log", number, bytes)
    await fillZeros(file, data_start, bytes)
    return segment
  }
  /** Writes one copy after the other, so that a crash leaves a valid one. */
  const raiseFormat = async (segment: Segment, format: number) => {
    const pages = encodeSuperblock({ ...segment, volume_id, format })
    for (const copy of [0, page_bytes]) {
      await segment.file.write([pages.subarray(copy, copy + page_bytes)], copy)
      await segment.file.datasync()
    }
    segment.format = format
  }
  const { reset } = growths.log
  return { open, make, regenerate, raise: raiseFormat, reset, generation: () => generation }
}

export interface OpenSegments extends Segments {
  /** Length of a file created on a nearly full disk, in bytes. */
  readonly smallest_bytes: number
  readonly generation: () => number
  /** Raises the format in a file's superblock, durably. */
  readonly raise: (segment: Segment, format: number) => Promise<void>
  /** Registers a found file as in use or as spare. */
  readonly adopt: (found: FoundSegment, is_spare: boolean) => Segment
  readonly spareCount: (kind: SegmentKind) => number
  /** Bytes of data that the spare log files can hold. */
  readonly spareDataBytes: () => number
  /** Waits for files that are being created or recycled. False if recycling one failed. */
  readonly settled: () => Promise<boolean>
  /** Creates another spare file. Rejects with the disk's error. */
  readonly prepare: (kind: SegmentKind) => Promise<void>
  /** Removes a spare file, if any. Nothing durable refers to it. */
  readonly discardSpare: (kind: SegmentKind) => Promise<void>
  /** Removes the spare log files except one of minimum length, and resets the growth. */
  readonly trimSpares: () => Promise<void>
  readonly closeAll: () => Promise<void>
}

const dataBytesOf = ({ bytes }: Segment) => bytes - data_start

/** Tracks file work in the background. Closing the volume waits for it. */
const makeTracker = () => {
  const busy = new Set<Promise<unknown>>()
  return {
    tracked: <A>(work: Promise<A>): Promise<A> => {
      busy.add(work)
      const end = () => busy.delete(work)
      work.then(end, end)
      return work
    },
    settled: async () => {
      while (busy.size > 0) await Promise.allSettled(busy)
    },
  }
}

/** Recycles or removes files that are out of use. */
const makeRetirement = (
  { disk, dir }: SegmentsOptions,
  { regenerate }: ReturnType<typeof makeFiles>,
  {
    spare,
    broken,
  }: {
    readonly spare: Readonly<Record<SegmentKind, Array<CountedSegment>>>
    readonly broken: Array<CountedSegment>
  },
) => {
  /** Log files being recycled. Many may go out of use at once. */
  let recycling = 0

  const discard = async ({ kind, number, file }: CountedSegment) => {
    await file.close()
    await disk.remove(join(dir, segmentName(kind, number)))
    await disk.syncFolder(dir)
  }
  const recycle = async (segment: CountedSegment) => {
    recycling += 1
    try {
      spare.log.push(await regenerate(segment))
    } finally {
      recycling -= 1
    }
  }
  /** Always removes an extent file: a spare one would occupy disk space and grow no faster. */
  const recycleOrDiscard = async (segment: CountedSegment, spare_max: number) => {
    await segment.file.unused()
    try {
      const is_kept = segment.kind === "log" && spare.log.length + recycling < spare_max
      if (is_kept) await recycle(segment)
      else await discard(segment)
    } catch (cause) {
      broken.push(segment)
      throw cause
    }
  }
  return { discard, recycleOrDiscard }
}

/** The files of a volume, initially none (`adopt`). */
export const makeSegments = (options: SegmentsOptions): OpenSegments => {
  const factory = makeFiles(options)
  const used = { log: new Map<number, CountedSegment>(), ext: new Map<number, CountedSegment>() }
  const spare: Record<SegmentKind, Array<CountedSegment>> = { log: [], ext: [] }
  /** Files whose recycling failed, in an unknown state. */
  const broken: Array<CountedSegment> = []
  const { tracked, settled } = makeTracker()
  const smallest_bytes = toPages(options.segment_bytes)

  const use = (segment: CountedSegment) => {
    used[segment.kind].set(segment.number, segment)
    return segment
  }
  const take = async (kind: SegmentKind, bytes: number) => {
    const index = spare[kind].findIndex((segment) => dataBytesOf(segment) >= bytes)
    const [found] = index < 0 ? [] : spare[kind].splice(index, 1)
    return use(found ?? (await tracked(factory.make(kind, bytes))))
  }
  const prepare = async (kind: SegmentKind) => {
    spare[kind].push(await tracked(factory.make(kind, page_bytes)))
  }
  const { discard, recycleOrDiscard } = makeRetirement(options, factory, { spare, broken })
  const retire = async ({ kind, number }: Segment, spare_max = spare_log_files_max) => {
    const segment = used[kind].get(number)
    used[kind].delete(number)
    if (segment) await tracked(recycleOrDiscard(segment, spare_max))
  }
  const closeAll = async () => {
    await settled()
    const all = [...used.log.values(), ...used.ext.values(), ...spare.log, ...spare.ext, ...broken]
    await Promise.allSettled(all.map(({ file }) => file.close()))
  }
  return {
    smallest_bytes,
    find: (kind, number) => used[kind].get(number),
    all: (kind) => Array.from(used[kind].values()),
    take,
    prepare,
    settled: async () => {
      await settled()
      return broken.length === 0
    },
    retire,
    adopt: (found, is_spare) => {
      const segment = factory.open(found)
      if (is_spare) spare[segment.kind].push(segment)
      else use(segment)
      return segment
    },
    spareCount: (kind) => spare[kind].length,
    spareDataBytes: () => spare.log.reduce((sum, segment) => sum + dataBytesOf(segment), 0),
    discardSpare: async (kind) => {
      for (const segment of spare[kind].splice(-1)) await tracked(discard(segment))
    },
    trimSpares: async () => {
      factory.reset()
      const all = spare.log.splice(0).sort((one, other) => one.bytes - other.bytes)
      if (all[0] && all[0].bytes <= smallest_bytes) spare.log.push(...all.splice(0, 1))
      for (const segment of all) await tracked(discard(segment))
    },
    generation: factory.generation,
    raise: factory.raise,
    closeAll,
  }
}
