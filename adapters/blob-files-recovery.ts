/**
 * What a plain blob store does before it opens: make its folders, take the index's lock, and bring
 * files and rows together again after a crash.
 */
import { existsSync } from "node:fs"
import { mkdir } from "node:fs/promises"
import { dirname, join } from "node:path"
import { store_origin } from "#actors/blob-storage/blob-admission.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import type { Disk } from "./blob-files-disk.ts"
import { type BlobIndex, openIndex } from "./blob-files-index.ts"

/** Files are spread over a folder for each first byte of the identifier. */
const shards = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"))

export const placesOf = (dir: string) => {
  const blobs = join(dir, "blobs")
  return {
    dir,
    blobs,
    incoming: join(dir, "incoming"),
    quarantine: join(dir, "quarantine"),
    index: join(dir, "index.sqlite"),
    blob: (id: BlobId) => join(blobs, id.slice(0, 2), id),
  }
}
export type Places = ReturnType<typeof placesOf>

const makeFolders = async (disk: Disk, places: Places) => {
  for (const folder of [places.dir, places.blobs, places.incoming, places.quarantine]) {
    await mkdir(folder, { recursive: true, mode: 0o700 })
  }
  const present = new Set(await disk.names(places.blobs))
  const missing = shards.filter((name) => !present.has(name))
  await Promise.all(missing.map((name) => mkdir(join(places.blobs, name), { mode: 0o700 })))
  for (const folder of [places.blobs, places.dir, dirname(places.dir)]) {
    await disk.syncFolder(folder)
  }
}

/** Every file under `blobs/`, by shard. */
const filesOf = async (disk: Disk, places: Places) => {
  const names = await Promise.all(shards.map((shard) => disk.names(join(places.blobs, shard))))
  return new Set(names.flat())
}

/**
 * Removes files without a row: puts never acknowledged, and deletes whose file was still there.
 * Rows without a file become facts of kind `lost`.
 */
const reconcile = async (disk: Disk, places: Places, index: BlobIndex, at: bigint) => {
  for (const name of await disk.names(places.incoming)) {
    await disk.remove(join(places.incoming, name))
  }
  const files = await filesOf(disk, places)
  const lost = index.ids().filter((id) => !files.delete(id))
  for (const name of files) {
    await disk.remove(join(places.blobs, name.slice(0, 2), name))
  }
  if (lost.length === 0) return
  index.transaction(() => {
    for (const blob of lost.map(index.find)) {
      const detail = "The file was gone when the store was opened."
      if (blob) index.setAside("lost", blob, { at: index.stamp(at), detail, origin: store_origin })
    }
  })
}

/**
 * Opens the index under its lock with files and rows in agreement. Throws where the index is gone
 * while blobs are there: reconciling would then remove every one of them.
 */
export const recover = async (disk: Disk, places: Places, at: bigint) => {
  const has_index = existsSync(places.index)
  await makeFolders(disk, places)
  if (!has_index && (await filesOf(disk, places)).size > 0) {
    throw new Error(`${places.index} is missing, but there are blobs under ${places.blobs}`)
  }
  const index = openIndex(places.index)
  try {
    await disk.syncFolder(places.dir)
    await reconcile(disk, places, index, at)
  } catch (cause) {
    index.close()
    throw cause
  }
  return index
}
