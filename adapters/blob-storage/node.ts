/** What this node says of itself where `[cluster]` leaves it open: its id and its capacity. */
import { mkdir, statfs } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option } from "effect"
import { v7 } from "uuid"
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

/**
 * The configured capacity in bytes, or 90% of what is free on the disk of `blob_dir`, to which the
 * `used_bytes` of our own blobs count, so that it does not shrink as they come.
 */
export const capacityBytes = (configured: number, blob_dir: string, used_bytes: number) =>
  Effect.tryPromise({
    try: async () => {
      if (configured > 0) return configured
      await mkdir(blob_dir, { recursive: true, mode: 0o700 })
      const { bavail, bsize } = await statfs(blob_dir)
      return Math.floor((bavail * bsize + used_bytes) * capacity_share)
    },
    catch: () => new FileFailure({ message: `cannot measure the disk of ${blob_dir}`, code: "IO" }),
  })
