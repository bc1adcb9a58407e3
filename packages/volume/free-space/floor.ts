/**
 * The floor of free space: how much of its disk a volume leaves to the event log, the read models
 * and the tokens on it.
 *
 * The default must not change as the disk fills, so the free space of the first startup is recorded
 * once, in the volume's folder. A volume of an earlier version is recorded at its first startup
 * with this one, and its own files count as free.
 *
 * Source: DECISIONS of document 1, limits not shown; decision 0177.
 */
import { readdir, stat } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option, Schema } from "effect"
import { FileFailure, findBounded, writePrivate } from "#files"
import { volumeDisk } from "../disk.ts"

/** Name of the record, in the volume's folder. */
const first_start_name = "first-start.json"

const file_bytes_max = 1024
const block_bytes = 512
const gibibyte = 2 ** 30
/** The default floor: 1 GiB or this share of the disk, the larger of the two ... */
const disk_share = 0.05
/** ... but at most this share of the space that was free at the first startup. */
const first_share = 0.5

const FirstStart = Schema.fromJsonString(Schema.Struct({ free_bytes: Schema.Number }))
const decode = Schema.decodeUnknownOption(FirstStart)

/** The default floor in bytes. */
export const defaultFloor = (total_bytes: number, first_free_bytes: number) =>
  Math.floor(Math.min(Math.max(gibibyte, total_bytes * disk_share), first_free_bytes * first_share))

/** Disk space of the files in a volume's folder, in use or not. */
const bytesOfFiles = async (folder: string) => {
  const names = await readdir(folder).catch(() => [])
  const files = await Promise.all(names.map((name) => stat(join(folder, name))))
  return files.reduce((sum, { blocks }) => sum + blocks * block_bytes, 0)
}

/** Free bytes at the first startup, from its record. A missing or damaged record is rewritten. */
const firstFree = Effect.fnUntraced(function* (folder: string, free_bytes: number) {
  const path = join(folder, first_start_name)
  const kept = Option.flatMap(yield* findBounded(path, file_bytes_max), decode)
  if (Option.isSome(kept)) return kept.value.free_bytes
  const own_bytes = yield* Effect.promise(() => bytesOfFiles(folder))
  const first = { free_bytes: free_bytes + own_bytes }
  yield* writePrivate(path, `${JSON.stringify(first)}\n`).pipe(
    Effect.catch(({ message }) =>
      Effect.logWarning(`${message}; the next start records the disk's free space`),
    ),
  )
  return first.free_bytes
})

/** The floor of the volume in a folder: the configured one, or the default if that is 0. */
export const floorOf = Effect.fnUntraced(function* (folder: string, configured: number) {
  const { free_bytes, total_bytes } = yield* Effect.tryPromise({
    try: async () => {
      await volumeDisk.makeFolder(folder)
      return volumeDisk.space(folder)
    },
    catch: () => new FileFailure({ message: `cannot measure the disk of ${folder}`, code: "IO" }),
  })
  const first_free_bytes = yield* firstFree(folder, free_bytes)
  return configured > 0 ? configured : defaultFloor(total_bytes, first_free_bytes)
})
