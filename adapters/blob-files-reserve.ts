/**
 * A little disk held back, so that a full disk still takes the index rows of a delete, which is
 * what makes room again.
 */
import { join } from "node:path"
import type { Disk } from "./blob-files-disk.ts"
import { isFull } from "#actors/blob-storage/blob-fault.ts"

/** As much as SQLite lets its write-ahead log grow between checkpoints: 1000 pages of 4 KiB. */
const reserve_bytes = 4 * 1024 * 1024

/**
 * `hold` answers whether the reserve is there, taking it where there is room; `release` frees it.
 */
export const makeReserve = (disk: Disk, folder: string) => {
  const path = join(folder, "reserve")
  let held = false
  let holding: Promise<boolean> | undefined

  const take = async () => {
    try {
      await disk.remove(path)
      const file = await disk.create(path)
      try {
        await disk.write(file, Buffer.alloc(reserve_bytes), 0)
        await disk.syncFile(file)
      } finally {
        await file.close()
      }
      held = true
    } catch (cause) {
      await disk.remove(path)
      if (!isFull(cause)) throw cause
    } finally {
      holding = undefined
    }
    return held
  }
  const hold = async () => {
    if (held) return true
    holding ??= take()
    return holding
  }
  const release = async () => {
    held = false
    await disk.remove(path)
  }
  return { hold, release }
}
export type Reserve = ReturnType<typeof makeReserve>
