/**
 * Taking a store of plain files into a volume: what both hold at each moment, and the steps.
 *
 * The volume is made under another name beside the plain store, which stays the truth until the
 * volume is whole and renamed. Killed at any moment, the same steps done again come to the same.
 *
 * Source: docs/decisions/0111-blob-migration.md.
 */
import { existsSync, readFileSync, rmSync } from "node:fs"
import { mkdir, open, readdir, rename, rm } from "node:fs/promises"
import { join } from "node:path"
import { store_origin } from "#actors/blob-storage/blobs/admission.ts"
import type { PutOrder } from "#actors/blob-storage/blobs/engine.ts"
import { faultOf } from "#actors/blob-storage/blobs/fault.ts"
import { syncFolder } from "#files"
import { type BlobId, type BlobMeta, blob_bytes_max } from "#schemas/blob-storage/blob.ts"
import type { VolumeEngine, VolumeOptions } from "#volume"
import { volumeFolder } from "#volume"
import { hasPlain, type PlainBlob, type PlainStore, plainPlaces } from "./plain.ts"

/** Rows that are read at once. */
const page_rows = 1000
/** Small ones on their way at once: enough for one sync to carry many, 16 MiB at most. */
const small_at_once = 64
/** Large ones on their way at once: each has some MiB under way. */
const large_at_once = 4
/** A blob up to here is put as a whole; the volume keeps such in its log. */
const whole_bytes_max = 256 * 1024

/** The volume as long as it is not whole. */
const unfinishedFolder = (dir: string) => join(dir, "volume.migrating")
/** There from just before the volume has its name until nothing of the plain store is left. */
const markPath = (dir: string) => join(dir, "migrated")

/**
 * What is in a store's folder. `done`: the volume is whole, and files of the plain store are left.
 * `both`: a volume that was not made of the plain store beside it.
 */
export type MigrationState = "volume" | "plain" | "done" | "both"

export const migrationState = (dir: string): MigrationState => {
  const has_volume = existsSync(volumeFolder(dir))
  if (has_volume && existsSync(markPath(dir))) return "done"
  if (!hasPlain(dir)) return "volume"
  return has_volume ? "both" : "plain"
}

/** Thrown where the volume does not hold what the plain store holds: it has to be made anew. */
const stale_volume = new Error("the plain store was changed while it was migrated")

const orderOf = ({ id, labels, policy }: PlainBlob): PutOrder => ({
  labels,
  policy,
  origin: store_origin,
  expected_id: id,
  if_none_match: false,
})

const isSame = (blob: PlainBlob, meta: BlobMeta) =>
  meta.created_at === blob.created_at &&
  meta.policy === blob.policy &&
  meta.checksum === blob.checksum &&
  JSON.stringify(meta.labels) === JSON.stringify(blob.labels)

/** The blob's bytes into the volume; throws BlobCorrupt where its file is damaged or gone. */
const copy = async (plain: PlainStore, volume: VolumeEngine, blob: PlainBlob) => {
  const windows = plain.read(blob)
  const order = orderOf(blob)
  if (blob.size <= whole_bytes_max) {
    const parts: Array<Uint8Array> = []
    for await (const window of windows) parts.push(window)
    return (await volume.put(order, parts, blob.created_at)).meta
  }
  const upload = volume.upload(order, blob.size)
  try {
    for await (const window of windows) await upload.write(window)
    return (await upload.finish(blob.created_at)).meta
  } finally {
    await upload.abort()
  }
}

/** Takes one blob over, or out of the plain store where it is damaged or gone. */
const takeBlob = async (plain: PlainStore, volume: VolumeEngine, blob: PlainBlob, now: bigint) => {
  const meta = await copy(plain, volume, blob).catch((cause: unknown) => {
    if (faultOf(cause)._tag !== "BlobCorrupt") throw cause
    plain.setAside(blob, cause, now)
    return undefined
  })
  if (meta !== undefined && !isSame(blob, meta)) throw stale_volume
}

const statOf = (volume: VolumeEngine, id: BlobId) =>
  volume.stat(id).catch((cause: unknown) => {
    if (faultOf(cause)._tag === "BlobNotFound") return undefined
    throw cause
  })

/** Runs the work for each item, so many at once; after one that fails no other is begun. */
const forEach = async <A>(
  items: ReadonlyArray<A>,
  at_once: number,
  work: (item: A) => Promise<void>,
) => {
  const rest = items.values()
  let is_failed = false
  const run = async () => {
    for (const item of rest) {
      if (is_failed) return
      try {
        await work(item)
      } catch (cause) {
        is_failed = true
        throw cause
      }
    }
  }
  const results = await Promise.allSettled(Array.from({ length: at_once }, run))
  for (const result of results) if (result.status === "rejected") throw result.reason
}

const takeQuarantined = async (plain: PlainStore, volume: VolumeEngine) => {
  const { quarantined } = await volume.usage()
  // What is there came in this order, each durable before the next.
  for (let skip = quarantined; ; skip++) {
    const [row] = plain.quarantined(skip, 1)
    if (!row) return
    await volume.adoptQuarantined(row.id, row.detail, row.at)
  }
}

const takeTombstones = async (plain: PlainStore, volume: VolumeEngine) => {
  for (let after = ""; ; ) {
    const rows = plain.tombstones(after, page_rows)
    const last = rows.at(-1)
    if (!last) return
    await forEach(rows, small_at_once, async ({ id, at }) => {
      if ((await volume.tombstone(id)) !== at) await volume.delete(id, store_origin, at)
    })
    after = last.id
  }
}

const takeBlobs = async (
  plain: PlainStore,
  volume: VolumeEngine,
  { now, done }: Pick<MigrationOptions, "now" | "done">,
) => {
  let count = 0
  const take = async (blob: PlainBlob) => {
    const there = await statOf(volume, blob.id)
    if (there && !isSame(blob, there)) throw stale_volume
    if (!there) await takeBlob(plain, volume, blob, now())
    count += 1
    done(count)
  }
  const isSmall = ({ size }: PlainBlob) => size <= whole_bytes_max
  for (let after = ""; ; ) {
    const rows = plain.blobs(after, page_rows)
    const last = rows.at(-1)
    if (!last) return
    await forEach(rows.filter(isSmall), small_at_once, take)
    const large = rows.filter((blob) => !isSmall(blob))
    await forEach(large, large_at_once, take)
    after = last.id
  }
}

/** How the volume is opened that is filled: it takes all there is, whatever the capacity. */
export const migrationVolume = (
  dir: string,
  segment_bytes: number,
  first_cursor: number,
): VolumeOptions => ({
  dir,
  segment_bytes,
  first_cursor,
  is_adopting: true,
  capacity_bytes: Number.MAX_SAFE_INTEGER,
  size_max_bytes: blob_bytes_max,
  scrub_bytes_per_second: 0,
  background: false,
})

export interface MigrationOptions {
  /** The plain store's folder, in which the volume comes. */
  readonly dir: string
  readonly open: (folder: string) => Promise<VolumeEngine>
  /** Takes all facts of the journal into the log; the log knows the last one afterwards. */
  readonly record: () => Promise<void>
  /** Unix nanoseconds. */
  readonly now: () => bigint
  /** Told after each blob how many are done. */
  readonly done: (blobs: number) => void
  /** Called before each step that changes what is on disk: for tests. */
  readonly step?: (name: string) => void
}

const fill = async (plain: PlainStore, volume: VolumeEngine, options: MigrationOptions) => {
  const { step = () => undefined } = options
  step("quarantined")
  await takeQuarantined(plain, volume)
  step("tombstones")
  await takeTombstones(plain, volume)
  step("blobs")
  await takeBlobs(plain, volume, options)
  // Damaged files may have been found on the way: their facts too must be in the log. The records
  // that say so come last: the volume's log has the last cursor, not its checkpoint alone.
  step("record")
  await options.record()
  step("cursor")
  await volume.acknowledge(plain.cursor())
  step("found")
  await takeQuarantined(plain, volume)
  const { blobs, bytes, quarantined } = plain.totals()
  const usage = await volume.usage()
  const is_whole =
    usage.blob_count === blobs && usage.payload_bytes === bytes && usage.quarantined === quarantined
  if (!is_whole) throw stale_volume
}

/** The volume under its unfinished name, whole; made anew where it is of another time. */
const build = async (plain: PlainStore, options: MigrationOptions) => {
  const folder = unfinishedFolder(options.dir)
  for (const is_first of [true, false]) {
    const volume = await options.open(folder)
    try {
      await fill(plain, volume, options)
      return
    } catch (cause) {
      if (cause !== stale_volume || !is_first) throw cause
    } finally {
      await volume.shut()
    }
    await rm(folder, { recursive: true, force: true })
  }
}

const markOf = (plain: PlainStore) => JSON.stringify({ cursor: plain.cursor() })

/**
 * Fills a volume with all that the plain store holds and gives it its name. Rejects with what the
 * disk or the volume says, such as BlobCapacityExceeded; then the plain store is as it was.
 */
export const migrate = async (plain: PlainStore, options: MigrationOptions) => {
  const { dir, step = () => undefined } = options
  await options.record()
  await build(plain, options)
  step("mark")
  const mark = await open(`${markPath(dir)}.new`, "w", 0o600)
  await mark.writeFile(markOf(plain))
  await mark.sync()
  await mark.close()
  await rename(`${markPath(dir)}.new`, markPath(dir))
  await syncFolder(dir)
  step("name")
  await rename(unfinishedFolder(dir), volumeFolder(dir))
  await syncFolder(dir)
}

/** Copies that were set aside, to where the volume keeps its own. */
const moveQuarantine = async (dir: string, plain: PlainStore) => {
  const { quarantine, blobs } = plainPlaces(dir)
  const to = join(volumeFolder(dir), "quarantine")
  await mkdir(to, { recursive: true, mode: 0o700 })
  for (let skip = 0; ; skip += page_rows) {
    const rows = plain.quarantined(skip, page_rows)
    for (const { id, at } of rows) {
      const target = join(to, `${id}-${at}`)
      // One that migration itself found is still among the blobs.
      const places = [join(quarantine, `${id}-${at}`)]
      if (!plain.has(id)) places.push(join(blobs, id.slice(0, 2), id))
      const found = existsSync(target) ? undefined : places.find(existsSync)
      if (found !== undefined) await rename(found, target)
    }
    if (rows.length === 0) return syncFolder(to)
  }
}

/**
 * Removes the plain store's files once the volume has taken its place. Throws where it has changed
 * since: somebody ran an older version on it.
 */
export const removePlain = async (
  dir: string,
  openPlain: (dir: string) => PlainStore,
  step: (name: string) => void = () => undefined,
) => {
  const { index, blobs, incoming, quarantine, reserve } = plainPlaces(dir)
  if (hasPlain(dir)) {
    const plain = openPlain(dir)
    try {
      if (readFileSync(markPath(dir), "utf8") !== markOf(plain)) {
        throw new Error(
          `${index} was written to after its migration: move it or ${volumeFolder(dir)}`,
        )
      }
      step("quarantine")
      await moveQuarantine(dir, plain)
    } finally {
      plain.close()
    }
    step("blobs removed")
    for (const path of [blobs, incoming, quarantine, reserve]) {
      await rm(path, { recursive: true, force: true })
    }
    step("index removed")
    const names = (await readdir(dir)).filter((name) => name.startsWith("index.sqlite"))
    for (const name of names.sort().reverse()) rmSync(join(dir, name))
    await syncFolder(dir)
  }
  step("mark removed")
  rmSync(markPath(dir))
  await syncFolder(dir)
}
