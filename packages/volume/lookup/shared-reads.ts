/**
 * A volume as a thread sees it that does not have it: blobs are found by the shared index and read
 * from the volume's files, opened here, in the same ways and with the same checks as where the
 * volume is. What does not hold is no verdict: `unsure` says to ask the thread that has it.
 *
 * Source: decision 0168.
 */
import { join } from "node:path"
import { openToRead } from "../disk.ts"
import { data_start, decodeSuperblock, type SegmentKind, seedOf } from "../log/format.ts"
import { makeLogReads } from "../log/reading.ts"
import { segmentName } from "../log/segments.ts"
import type { ReadableSegment, ReadableSegments } from "../parts.ts"
import { makeCopies } from "../reads/copies.ts"
import { makeReads, type Pin, type Reads } from "../reads/reads.ts"
import { makeWindows } from "../reads/windows.ts"
import type { SharedBucket, SharedVolume, VolumeNews } from "./sharing.ts"
import { findShared, type Key, type Place, readKey, type Table } from "./table.ts"

/** Thrown where this thread cannot tell what is there. */
export const unsure = new Error("the thread that has the volume is to be asked")

interface SharedTable {
  readonly table: Table
  readonly depth: number
}

/** The shared index: a directory of its own, over tables that another thread changes. */
export const makeSharedIndex = ({ seed, buckets }: SharedVolume) => {
  let bits = buckets.reduce((most, { depth }) => Math.max(most, depth), 0)
  let tables = new Array<SharedTable | undefined>(2 ** bits)
  const key: Key = new Uint32Array(4)

  const take = ({ first, depth, capacity, words }: SharedBucket) => {
    while (depth > bits) {
      tables = tables.flatMap((one) => [one, one])
      bits += 1
    }
    const from = first / 2 ** (32 - bits)
    const table = { words, capacity, seed, used: 0 }
    tables.fill({ table, depth }, from, from + 2 ** (bits - depth))
  }
  buckets.forEach(take)
  return {
    take,
    find: (id: string): Place | undefined => {
      readKey(id, key)
      const shared = tables[bits === 0 ? 0 : (key[0] ?? 0) >>> (32 - bits)]
      const place = shared && findShared(shared.table, key)
      if (shared === undefined || place === "unsure") throw unsure
      return place
    },
  }
}

/** The volume's files, opened as they are asked for. */
const makeSharedFiles = (dir: string) => {
  const known = new Map<string, ReadableSegment>()

  const open = (kind: SegmentKind, number: number): ReadableSegment | undefined => {
    const file = openToRead(join(dir, segmentName(kind, number)))
    const superblock = file && decodeSuperblock(Buffer.from(file.readNow(0, data_start)))
    if (!file || superblock?.kind !== kind || superblock.number !== number) {
      void file?.close()
      return undefined
    }
    return { kind, number, seed: seedOf(superblock), file }
  }
  const forget = (name: string) => {
    const segment = known.get(name)
    known.delete(name)
    void segment?.file.close()
  }
  const find: ReadableSegments["find"] = (kind, number) => {
    const name = segmentName(kind, number)
    const segment = known.get(name) ?? open(kind, number)
    if (segment) known.set(name, segment)
    return segment
  }
  return {
    find,
    forget: (kind: SegmentKind, number: number) => forget(segmentName(kind, number)),
    forgetAll: () => {
      for (const name of Array.from(known.keys())) forget(name)
    },
  }
}

export interface SharedReads extends Pick<Reads, "get" | "getNow" | "stat"> {
  readonly hear: (news: VolumeNews) => void
  readonly close: () => void
}

/** Reads of a volume that another thread has; each may throw `unsure`. */
export const makeSharedReads = (volume: SharedVolume, pin: Pin): SharedReads => {
  const { dir } = volume
  const index = makeSharedIndex(volume)
  const segments = makeSharedFiles(dir)
  const quarantine = {
    isHidden: () => false,
    // Which of it is wrong is not for this thread to say; a file may be another one by now.
    setAside: async () => {
      segments.forgetAll()
      throw unsure
    },
  }
  const disk = {
    open: async (path: string) => {
      const file = openToRead(path)
      if (file) return file
      throw unsure
    },
  }
  const copies = makeCopies({ dir, disk, segments, index }, quarantine)
  const windows = makeWindows(segments)
  const log = makeLogReads(segments)
  const reads = makeReads({ index, log, copies, windows, pin, quarantine })
  return {
    get: reads.get,
    getNow: reads.getNow,
    stat: reads.stat,
    hear: (news) => {
      if (news.news === "bucket") index.take(news.bucket)
      else segments.forget(news.kind, news.number)
    },
    close: segments.forgetAll,
  }
}
