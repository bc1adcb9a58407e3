/**
 * Quarantine of corrupt and lost copies: a copy leaves the volume before an error is returned, and
 * its bytes are kept for inspection.
 */
import { join } from "node:path"
import { codeOf, faultError, faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import type { Place } from "../blob-index/blob-index.ts"
import type { VolumeFile } from "../disk.ts"
import { type ExtentFiles, spanOfExtent } from "../extents/files.ts"
import { extentsOf, type RecordHead } from "../log/record.ts"
import type { VolumeParts } from "../parts.ts"
import { type Damage, damaged_record } from "../reads/damage.ts"

export type QuarantineParts = Pick<
  VolumeParts,
  "dir" | "disk" | "segments" | "index" | "commits" | "log"
>

/** Bytes copied at once. */
const copy_bytes = 1024 * 1024
/** Larger copies are copied after the response, so that no reader waits for them. */
const awaited_bytes_max = 64 * 1024 * 1024

/** Maximum number of copies quarantined at once at startup, each in its own file. */
const concurrent_max = 64

/** A copy that was read and found damaged. */
export interface DamagedCopy {
  readonly id: BlobId
  readonly place: Place
  readonly damage: Damage
  /** Unix nanoseconds. */
  readonly at: bigint
}

export interface Quarantine {
  /**
   * Removes the copy from the volume, if it is still the live one. On a read-only volume it is
   * hidden until the next startup instead.
   */
  readonly quarantine: (copy: DamagedCopy) => Promise<void>
  /** Whether the copy was found damaged and could not be removed. */
  readonly isHidden: (id: BlobId, place: Place) => boolean
  /** Resolves when nothing is being copied. */
  readonly settled: () => Promise<void>
}

/** A span of a volume's file that held a part of the copy. */
interface Remains {
  readonly file: VolumeFile
  readonly start: number
  readonly end: number
}

const keyOf = (id: BlobId, { file, position }: Place) => `${id} ${file} ${position}`

/** The remains of a copy: its record, then its extents as they are on disk. */
const remainsOf = (
  { segments }: QuarantineParts,
  place: Place,
  head: RecordHead | undefined,
): ReadonlyArray<Remains> => {
  const log = segments.find("log", place.file)
  const { position, bytes } = place
  const record = log ? [{ file: log.file, start: position, end: position + bytes }] : []
  const extents = (head ? extentsOf(head) : []).flatMap((extent) => {
    const file = segments.find("ext", extent.file)?.file
    return file ? [{ file, ...spanOfExtent(extent) }] : []
  })
  return [...record, ...extents]
}

const copyRemains = async (
  { disk, dir }: QuarantineParts,
  name: string,
  remains: ReadonlyArray<Remains>,
) => {
  const folder = join(dir, "quarantine")
  await disk.makeFolder(folder)
  const path = join(folder, name)
  const file = await disk.create(path)
  try {
    let written = 0
    for (const { file: source, start, end } of remains) {
      for (let at = start; at < end; at += copy_bytes) {
        const bytes = await source.read(at, Math.min(copy_bytes, end - at))
        await file.write([bytes], written)
        written += bytes.length
      }
    }
    await file.datasync()
  } catch (cause) {
    await disk.remove(path)
    throw cause
  } finally {
    await file.close()
  }
  await disk.syncFolder(folder)
}

/** The volume's quarantine. Reports remains that could not be copied to it. */
export const makeQuarantine = (
  parts: QuarantineParts,
  extents: ExtentFiles,
  report: (problem: string) => void,
): Quarantine => {
  const { commits, log } = parts
  const hidden = new Set<string>()
  const copying = new Set<Promise<void>>()

  const copy = async (name: string, remains: ReadonlyArray<Remains>, unpin: () => void) => {
    try {
      await copyRemains(parts, name, remains)
    } catch (cause) {
      // The blob is removed either way; a full disk, for example, has no space for its remains.
      report(`${name} could not be copied to the quarantine: ${codeOf(cause)} ${String(cause)}`)
    } finally {
      unpin()
    }
  }
  const remove = async ({ id, place, damage, at }: DamagedCopy) => {
    const head = await log.head(id, place)
    const unpin = extents.pin(head ? extentsOf(head) : [])
    let is_done = false
    try {
      const { kind, detail } = damage
      const outcome = await commits.submit({ kind, id, place, detail, at })
      is_done = outcome.is_done
      if (!is_done) return
      const remains = remainsOf(parts, place, head)
      const work = copy(`${id}-${outcome.at}`, remains, unpin)
      copying.add(work)
      void work.finally(() => copying.delete(work))
      const bytes = remains.reduce((sum, { start, end }) => sum + end - start, 0)
      if (bytes <= awaited_bytes_max) await work
    } finally {
      if (!is_done) unpin()
    }
  }
  const quarantine = async (one: DamagedCopy) => {
    try {
      await remove(one)
    } catch (cause) {
      if (faultOf(cause)._tag !== "BlobStoreReadOnly") throw cause
      hidden.add(keyOf(one.id, one.place))
    }
  }
  return {
    quarantine: quarantine,
    isHidden: (id, place) => hidden.size > 0 && hidden.has(keyOf(id, place)),
    settled: async () => {
      await Promise.all(copying)
    },
  }
}

/**
 * Quarantines copies that startup found damaged in the log, so that they are reported even if
 * no request reads them. A copy that cannot be removed now stays in the index, where a read or the
 * scrub finds it.
 */
export const quarantineHeadless = async (
  { quarantine }: Quarantine,
  blobs: ReadonlyArray<Pick<DamagedCopy, "id" | "place">>,
  at: bigint,
  report: (problem: string) => void,
) => {
  const damage = { kind: "quarantined", detail: damaged_record } as const
  const one = async (blob: Pick<DamagedCopy, "id" | "place">) => {
    try {
      await quarantine({ ...blob, damage, at })
      report(`the log record of ${blob.id} is damaged: the blob was quarantined`)
    } catch (cause) {
      report(`${blob.id} is damaged and could not be quarantined: ${String(cause)}`)
    }
  }
  for (let n = 0; n < blobs.length; n += concurrent_max) {
    await Promise.all(blobs.slice(n, n + concurrent_max).map(one))
  }
}

/** The error for readers of a damaged copy. */
export const corrupt = (id: BlobId, { detail }: Damage) =>
  faultError({ _tag: "BlobCorrupt", id, detail })
