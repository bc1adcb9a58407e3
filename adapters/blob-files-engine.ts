/**
 * The plain blob store without its thread: one file per blob, one index, promises and plain data.
 * Every method rejects with what `faultOf` turns into a BlobFault.
 */
import type { BlobOrigin } from "#actors/blob-storage/blob-admission.ts"
import type { BlobFact, BlobPage, BlobUsage } from "#actors/blob-storage/blob-store.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { commitLine, type Operation, type Outcome } from "./blob-files-commit.ts"
import { type Disk, disk as realDisk } from "./blob-files-disk.ts"
import { makeReads } from "./blob-files-reads.ts"
import { placesOf, recover } from "./blob-files-recovery.ts"
import { makeReserve } from "./blob-files-reserve.ts"
import { makeUploads } from "./blob-files-uploads.ts"

export interface EngineOptions {
  readonly dir: string
  readonly capacity_bytes: number
  readonly size_max_bytes: number
  /** Unix nanoseconds, for what the start itself records. */
  readonly at: bigint
}

type Parts = Awaited<ReturnType<typeof openParts>>

const openParts = async (options: EngineOptions, disk: Disk) => {
  const places = placesOf(options.dir)
  const index = await recover(disk, places, options.at)
  const reserve = makeReserve(disk, places.dir)
  await reserve.hold()
  const totals = { ...index.totals() }
  const committed = ({ blob, created }: Outcome, { kind }: Operation) => {
    if (!blob || (kind === "put" && !created)) return
    const sign = kind === "put" ? 1 : -1
    totals.used_bytes += sign * blob.size
    totals.blob_count += sign
    if (kind === "quarantined" || kind === "lost") totals.quarantined += 1
  }
  const line = commitLine(
    { disk, index, reserve, blobPath: places.blob, quarantine_folder: places.quarantine },
    committed,
  )
  return { disk, places, index, reserve, totals, line }
}

const makeQueries = ({ index, totals, line }: Parts, { capacity_bytes }: EngineOptions) => ({
  list: async (after_id: string, prefix: string, limit: number): Promise<BlobPage> => {
    const ids = index.list(after_id, prefix, limit + 1)
    return { ids: ids.slice(0, limit), has_more: ids.length > limit }
  },
  tombstone: async (id: BlobId): Promise<bigint | undefined> => index.tombstone(id),
  scan: async (after_cursor: number, limit: number): Promise<ReadonlyArray<BlobFact>> =>
    index.scan(after_cursor, limit),
  usage: async (): Promise<BlobUsage> => ({
    ...totals,
    capacity_bytes,
    read_only: line.failed() !== undefined,
  }),
})

/** Opens the store in a folder, which it then has alone; rejects where it cannot. */
export const openEngine = async (options: EngineOptions, disk: Disk = realDisk) => {
  const parts = await openParts(options, disk)
  const { index, line, totals } = parts
  const uploads = makeUploads({ ...parts, ...options, used_bytes: () => totals.used_bytes })
  const reads = makeReads(parts)
  return {
    putWhole: uploads.whole,
    putBegin: uploads.begin,
    putAppend: uploads.append,
    putFinish: uploads.finish,
    putEnd: uploads.end,
    get: reads.get,
    stat: reads.stat,
    readOpen: reads.open,
    readNext: reads.read,
    readClose: reads.close,
    delete: async (id: BlobId, origin: BlobOrigin, at: bigint) => {
      line.assertWritable()
      await line.submit({ kind: "delete", id, origin, at })
    },
    acknowledge: async (cursor: number) => {
      line.assertWritable()
      await line.submit({ kind: "acknowledge", id: "journal", cursor })
    },
    ...makeQueries(parts, options),
    /** Waits for what stands in the line, leaves nothing half done, and gives the folder free. */
    shut: async () => {
      await uploads.endAll()
      await reads.closeAll()
      await line.settled()
      index.close()
    },
  }
}
export type Engine = Awaited<ReturnType<typeof openEngine>>
