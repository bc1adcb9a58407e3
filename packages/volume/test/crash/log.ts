/** Contents of a volume's files by position, so that a test knows which blobs damage may affect. */

import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { spanOfExtent } from "../../extents/files.ts"
import {
  data_start,
  decodeBatchHeader,
  decodeSuperblock,
  page_bytes,
  seedOf,
} from "../../log/format.ts"
import { decodeHead, extentsOf, type RecordHead } from "../../log/record.ts"
import type { SimulatedDisk } from "../simulated/disk.ts"

interface Found {
  readonly id: BlobId
  readonly sequence: number
  readonly path: string
  readonly start: number
  readonly end: number
  readonly head: RecordHead
}

interface Batch {
  readonly sequence: number
  readonly path: string
  readonly start: number
  readonly end: number
  readonly has_header: boolean
  readonly records: ReadonlyArray<Found>
}

const recordsOf = (
  path: string,
  bytes: Buffer,
  seed: number,
  batch: Pick<Batch, "sequence" | "start" | "end">,
) => {
  const records: Array<Found> = []
  for (let at = batch.start; at < batch.end; ) {
    const head = decodeHead(bytes, at, seed)
    if (!head) {
      at += 8
      continue
    }
    const end = at + head.record_bytes
    records.push({ id: head.id, sequence: batch.sequence, path, start: at, end, head })
    at = Math.ceil(end / 8) * 8
  }
  return records
}

/**
 * The batches in a log file's bytes, and the records outside of a valid batch, which startup
 * salvages too. None if the superblock is damaged.
 */
const batchesOf = (path: string, bytes: Buffer): ReadonlyArray<Batch> => {
  const superblock = decodeSuperblock(bytes.subarray(0, data_start))
  if (superblock?.kind !== "log") return []
  const seed = seedOf(superblock)
  const batches: Array<Batch> = []
  const add = (start: number, end: number, sequence: number, has_header: boolean) => {
    const batch = { path, sequence, start, end, has_header }
    const records = recordsOf(path, bytes, seed, batch)
    if (has_header || records.length > 0) batches.push({ ...batch, records })
  }
  let ended = data_start
  for (let start = data_start; start < bytes.length; start += page_bytes) {
    const header = decodeBatchHeader(bytes, start, seed)
    if (header?.position !== start) continue
    const end = start + header.bytes
    if (start > ended) add(ended, start, header.sequence - 1 / 2, false)
    add(start, end, header.sequence, true)
    ended = end
    start = end - page_bytes
  }
  if (ended < bytes.length) add(ended, bytes.length, batches.at(-1)?.sequence ?? 0, false)
  return batches
}

export interface Span {
  readonly path: string
  readonly start: number
  readonly end: number
}

const overlaps = (one: Span, other: Span) =>
  one.path === other.path && one.start < other.end && other.start < one.end

const numberOf = (path: string) => Number(/-(\d{8})\.seg$/.exec(path)?.[1])

/** Where a record's bytes are: the record itself, and its extents. */
const stretchesOf = ({ path, start, end, head }: Found): ReadonlyArray<Span> => [
  { path, start, end },
  ...extentsOf(head).map((extent) => {
    const name = `ext-${String(extent.file).padStart(8, "0")}.seg`
    return { path: path.replace(/log-\d{8}\.seg$/, name), ...spanOfExtent(extent) }
  }),
]

/** Whether a log file has lost its superblocks, so that a test cannot know its contents. */
export const hasUnknownLog = (simulated: SimulatedDisk) =>
  simulated
    .paths()
    .filter((path) => /log-\d{8}\.seg$/.test(path))
    .some((path) => !decodeSuperblock(Buffer.from(simulated.bytes(path).subarray(0, data_start))))

/** All records in the log files of a disk, oldest first. */
const mapOf = (simulated: SimulatedDisk) => {
  const logs = simulated.paths().filter((path) => /log-\d{8}\.seg$/.test(path))
  const batches = logs
    .flatMap((path) => batchesOf(path, Buffer.from(simulated.bytes(path))))
    .toSorted((one, other) => one.sequence - other.sequence)
  const last = batches.findLast(({ has_header }) => has_header)
  return { batches, last, files: logs.map(numberOf) }
}

/**
 * Ids whose newest record, or content, overlaps the span; all of the last batch if the span
 * overlaps it, because it may look torn. `touched`: ids with any record that overlaps it.
 */
export const hurtBy = (simulated: SimulatedDisk, span: Span) => {
  const { batches, last } = mapOf(simulated)
  const newest = new Map<BlobId, Found>()
  for (const record of batches.flatMap(({ records }) => records)) {
    const other = newest.get(record.id)
    // Times rise from record to record, and a moved record keeps its own.
    if (!other || other.head.at <= record.head.at) newest.set(record.id, record)
  }
  const hurt = new Set<BlobId>()
  const is_end = last !== undefined && overlaps(last, span)
  for (const record of newest.values()) {
    if (stretchesOf(record).some((one) => overlaps(one, span))) hurt.add(record.id)
  }
  if (is_end) for (const { id } of last.records) hurt.add(id)
  const records = batches.flatMap((batch) => batch.records)
  const touched = records.filter((record) => overlaps(record, span)).map(({ id }) => id)
  return { ids: hurt, is_end, touched }
}

/** Spans with content that may be damaged, with equal probability. */
export const stretchesIn = (simulated: SimulatedDisk): ReadonlyArray<Span> => {
  const { batches } = mapOf(simulated)
  const records = batches.flatMap((batch) => [batch, ...batch.records.flatMap(stretchesOf)])
  const files = simulated.paths().map((path) => ({ path, start: 0, end: 2 * page_bytes }))
  const checkpoints = simulated
    .paths()
    .filter((path) => path.includes("checkpoint"))
    .map((path) => ({ path, start: 0, end: simulated.bytes(path).length }))
  return [...records, ...files, ...checkpoints].filter(
    ({ path, start }) => simulated.paths().includes(path) && start < simulated.bytes(path).length,
  )
}

/** Records of deletions in the log. */
export const deletesIn = (simulated: SimulatedDisk): ReadonlyArray<Span> =>
  mapOf(simulated).batches.flatMap(({ records }) =>
    records.filter(({ head }) => head.kind === "tombstone"),
  )

/** Heads of the blobs' records in the log. */
export const headsIn = (simulated: SimulatedDisk): ReadonlyArray<Span> =>
  mapOf(simulated).batches.flatMap(({ records }) =>
    records
      .filter(({ head }) => head.kind === "blob")
      .map(({ path, start, head }) => ({ path, start, end: start + head.head_bytes })),
  )

/** Ids with records in a write to a log file that was meant for `position`. */
export const recordsWritten = (
  simulated: SimulatedDisk,
  path: string,
  bytes: Uint8Array,
  position: number,
): ReadonlyArray<BlobId> => {
  const superblock = decodeSuperblock(Buffer.from(simulated.bytes(path).subarray(0, data_start)))
  if (superblock?.kind !== "log") return []
  const span = { sequence: 0, start: 0, end: bytes.length }
  const records = recordsOf(path, Buffer.from(bytes), seedOf(superblock), span)
  return records.filter(() => position >= data_start).map(({ id }) => id)
}
