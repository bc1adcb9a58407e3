/** What this node says of itself where `[cluster]` leaves it open: its id and its capacity. */
import { mkdir, readdir, stat, statfs } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option } from "effect"
import { v7 } from "uuid"
import { volumeFolder } from "#adapters/blob-storage/volume-lock.ts"
import { FileFailure, findBounded, writePrivate } from "#adapters/private-file.ts"

/** An id has at most 64 characters. */
const id_bytes_max = 128

/** The configured id, or the one in `node-id` of the data folder, made at the first start. */
export const nodeId = Effect.fnUntraced(function* (configured: string, data_dir: string) {
  if (configured !== "") return configured
  const path = join(data_dir, "node-id")
  const kept = yield* findBounded(path, id_bytes_max)
  if (Option.isNone(kept)) {
    const made = v7()
    yield* writePrivate(path, `${made}\n`)
    return made
  }
  const id = kept.value.trim()
  if (/^[\w-]{1,64}$/.test(id)) return id
  return yield* new FileFailure({ message: `${path} holds no node id`, code: "DAMAGED" })
})

/** The rest is for the log, the read models and the file system itself. */
const capacity_share = 0.9

const block_bytes = 512

/** Bytes that the files of a volume take on the disk, whatever of them is in use. */
const volumeBytes = async (folder: string) => {
  const names = await readdir(folder).catch(() => [])
  const files = await Promise.all(names.map((name) => stat(join(folder, name))))
  return files.reduce((sum, { blocks }) => sum + blocks * block_bytes, 0)
}

/**
 * The configured capacity in bytes, or 90% of what is free on the disk of `blob_dir`, to which the
 * `used_bytes` of our own blobs count, and all that their volume has taken of the disk: so it does
 * not shrink as they come, and a disk that they once filled is room for others when they are gone.
 */
export const capacityBytes = (configured: number, blob_dir: string, used_bytes: number) =>
  Effect.tryPromise({
    try: async () => {
      if (configured > 0) return configured
      await mkdir(blob_dir, { recursive: true, mode: 0o700 })
      const { bavail, bsize } = await statfs(blob_dir)
      const own_bytes = Math.max(used_bytes, await volumeBytes(volumeFolder(blob_dir)))
      return Math.floor((bavail * bsize + own_bytes) * capacity_share)
    },
    catch: () => new FileFailure({ message: `cannot measure the disk of ${blob_dir}`, code: "IO" }),
  })
