/** Finds batches and records in a volume's files, and damages them as a disk would. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import {
  data_start,
  decodeBatchHeader,
  decodeSuperblock,
  page_bytes,
  type ReadBatchHeader,
  seedOf,
} from "../log/format.ts"
import { decodeHead } from "../log/record.ts"

export interface FoundBatch extends Omit<ReadBatchHeader, "records"> {
  readonly path: string
  /** End of each record's head, in its file. */
  readonly records: ReadonlyArray<{
    readonly id: string
    readonly position: number
    readonly payload: number
  }>
}

const recordsOf = (bytes: Buffer, header: ReadBatchHeader, seed: number) => {
  const records = []
  for (let at = header.position + 96; records.length < header.records; at += 8) {
    const head = decodeHead(bytes, at, seed)
    if (!head) continue
    records.push({ id: head.id, position: at, payload: at + head.head_bytes })
    at += head.record_bytes - 8 - (head.record_bytes % 8)
  }
  return records
}

export const logPaths = (dir: string) =>
  readdirSync(dir)
    .filter((name) => /^log-.*\.seg$/.test(name))
    .map((name) => join(dir, name))

/** All batches of the log, in the order of their writes. */
export const batchesIn = (dir: string): ReadonlyArray<FoundBatch> =>
  logPaths(dir)
    .flatMap((path) => {
      const bytes = readFileSync(path)
      const superblock = decodeSuperblock(bytes)
      if (!superblock) return []
      const seed = seedOf(superblock)
      const found: Array<FoundBatch> = []
      for (let at = data_start; at < bytes.length; at += page_bytes) {
        const header = decodeBatchHeader(bytes, at, seed)
        if (header) found.push({ ...header, path, records: recordsOf(bytes, header, seed) })
      }
      return found
    })
    .sort((one, other) => one.sequence - other.sequence)

/** Flips one or several bits of a byte. */
export const flip = (path: string, position: number, bytes = 1) => {
  const all = readFileSync(path)
  for (let at = position; at < position + bytes; at++) all[at] = (all[at] ?? 0) ^ 0x10
  writeFileSync(path, all)
}

/** Zeros a span, as if an unsynced write was lost. */
export const lose = (path: string, position: number, bytes: number) => {
  const all = readFileSync(path)
  all.fill(0, position, position + bytes)
  writeFileSync(path, all)
}

export const checkpointPaths = (dir: string) =>
  readdirSync(dir)
    .filter((name) => name.startsWith("checkpoint-"))
    .map((name) => join(dir, name))

export const loseCheckpoints = (dir: string) => {
  for (const path of checkpointPaths(dir)) rmSync(path)
}
