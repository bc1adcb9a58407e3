/**
 * Appends batches to the log. Keeps spare log files: the next one, and one held in reserve so that
 * deletes work on a full disk.
 */
import { type BlobFault, faultOf, isFull } from "#actors/blob-storage/ports/fault.ts"
import type { FreeSpace } from "../free-space/gauge.ts"
import { type BatchRecord, formatOf, makeBatchEncoder } from "./batch.ts"
import type { OpenSegments } from "./segments.ts"
import type { LogFileState, VolumeState } from "./state.ts"

/** Minimum time between attempts on a full disk, in milliseconds. */
const full_retry_ms = 200

/**
 * The next file is created once at most this share of the current one is free. Under load the next
 * file is twice as long, and must be ready when the current one is full.
 */
const begun_share = 7 / 8

/** The last durable batch, and the position of the next one. */
export interface LogEnd {
  /** Number of the file; 0 if there is none yet. */
  readonly file: number
  readonly position: number
  readonly sequence: number
  readonly crc: number
}

export const log_start: LogEnd = { file: 0, position: 0, sequence: 0, crc: 0 }

export interface WriterParts {
  readonly segments: OpenSegments
  readonly state: VolumeState
  readonly now: () => number
  readonly fail: (detail: string) => void
  readonly space: FreeSpace
  /** Why a checkpoint would not fit if more puts were accepted. */
  readonly checkpointFault: () => Promise<BlobFault | undefined>
}

/**
 * Keeps spare log files: always one, and a second once the current file is partly written. The
 * first is for deletes and may take the disk below its floor; the second is for puts and may not. A
 * full disk is not a failure; any other error in creating a file makes the volume read-only.
 */
const makeReserve = ({ segments, now, fail, space }: WriterParts) => {
  let full: { readonly fault: BlobFault; readonly at: number } | undefined
  let making: Promise<void> | undefined

  const count = () => segments.spareCount("log")
  const make = async () => {
    await space.refresh()
    const refused = count() === 0 ? undefined : space.fault(segments.smallest_bytes)
    if (refused) {
      full = { fault: refused, at: now() }
      return
    }
    try {
      await segments.prepare("log")
      full = undefined
    } catch (cause) {
      const fault = faultOf(cause)
      if (!isFull(cause)) fail(`A log file could not be created: ${String(cause)}`)
      full = { fault, at: now() }
    }
  }
  /** Creates a spare file, unless the disk was full a moment ago. */
  const add = (): Promise<void> => {
    if (full && now() - full.at < full_retry_ms) return Promise.resolve()
    making ??= make().finally(() => {
      making = undefined
    })
    return making
  }
  /**
   * Tries to have more than `reserved` spare files. Tries again after an attempt in progress,
   * because that one may have started when the disk was full.
   */
  const ensureMoreThan = async (reserved: number) => {
    await making
    if (count() <= reserved) await add()
  }
  return { add, ensureMoreThan, count, fault: () => full?.fault }
}

/** Encodes, writes and syncs batches, one after the other. */
export const makeWriter = (parts: WriterParts, end: LogEnd) => {
  const { segments, state, fail } = parts
  const reserve = makeReserve(parts)
  const encode = makeBatchEncoder()
  let current: LogFileState | undefined = state.files.get(end.file)
  let { sequence, crc } = end
  const written = { batches: 0, records: 0 }

  const available = () => (current ? current.segment.bytes - current.end : 0)
  const disk_full: BlobFault = { _tag: "BlobCapacityExceeded", detail: "The disk is full." }

  /** Switches to another file with enough space. A put may not take the last spare file. */
  const roll = async (bytes: number, is_put: boolean): Promise<BlobFault | undefined> => {
    const reserved = is_put ? 1 : 0
    for (let made = reserve.count(); made <= reserved; made++)
      await reserve.ensureMoreThan(reserved)
    if (reserve.count() <= reserved) return reserve.fault() ?? disk_full
    try {
      current = state.addFile(await segments.take("log", bytes))
      return undefined
    } catch (cause) {
      if (!isFull(cause)) fail(`A log file could not be created: ${String(cause)}`)
      return faultOf(cause)
    }
  }
  /**
   * Waits for the reserved file and for checkpoint space. Returns the reason if puts lack either.
   */
  const putFault = async (): Promise<BlobFault | undefined> => {
    await parts.space.refresh()
    if (reserve.count() === 0) await reserve.ensureMoreThan(0)
    if (reserve.count() === 0) return reserve.fault() ?? disk_full
    // Checked last, because creating the reserved file may have taken the disk below its floor.
    return (await parts.checkpointFault()) ?? parts.space.fault(0)
  }
  /**
   * Creates the first file and the reserved one in advance, so that they exist if the disk fills up
   * later. A full disk is not an error here.
   */
  const begin = async () => {
    if (!current && segments.spareCount("log") === 0) await reserve.add()
    if (!current && segments.spareCount("log") > 0) await roll(0, false)
    if (segments.spareCount("log") === 0) await reserve.add()
  }
  const prepareNext = () => {
    const is_begun = current !== undefined && available() < current.segment.bytes * begun_share
    if (reserve.count() < (is_begun ? 2 : 1)) void reserve.add()
  }
  /** Writes the records durably as one batch, for which `available` must have space. */
  const write = async (records: ReadonlyArray<BatchRecord>, first_cursor: number) => {
    if (!current) throw new Error("no log file to write to")
    const { segment, end: position } = current
    const { acknowledged } = state.counters
    const place = { segment, position, sequence: sequence + 1, previous_crc: crc }
    const batch = encode(records, { ...place, first_cursor, acknowledged })
    const format = formatOf(records)
    if (format > segment.format) await segments.raise(segment, format)
    await segment.file.write(batch.parts, position)
    await segment.file.datasync()
    current.end = position + batch.bytes
    sequence += 1
    crc = batch.crc
    written.batches += 1
    written.records += records.length
    prepareNext()
    return { file: current, bytes: batch.bytes }
  }
  const where = (): LogEnd =>
    current ? { file: current.segment.number, position: current.end, sequence, crc } : log_start
  return { begin, available, roll, putFault, write, where, written: () => written }
}
export type LogWriter = ReturnType<typeof makeWriter>
