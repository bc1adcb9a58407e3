/**
 * A file in the data folder that reserves disk space: a start on a full disk removes it, so that
 * the lock, the log, the read models and the tokens can be written, and blobs can be deleted.
 *
 * The minimum of free space prevents blobs from filling the disk, but other programs may fill it.
 *
 * Source: DECISIONS of document 1, limits not shown ("a server starts on a full disk"); decision
 * 0178.
 */
import { randomBytes } from "node:crypto"
import { existsSync, rmSync, statfsSync } from "node:fs"
import { open, rename, rm } from "node:fs/promises"
import { join, resolve } from "node:path"
import { Effect, Schedule } from "effect"
import { causeText } from "#schemas/cause-text.ts"

export const reserve_file = "disk-reserve"

/** A start writes half a MB; the rest is for events of deletes and other growth. */
const reserve_bytes = 16 * 2 ** 20

/** Free space required to create the file. */
const free_bytes_min = 4 * reserve_bytes
/** Delay of the first check, after the start's own writes, and interval of later ones. */
const first_check_s = 5
const check_every_s = 60

const piece_bytes = 2 ** 20
const file_mode = 0o600

const freeBytes = (folder: string) => {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

/** Removes the reserve if the disk is nearly full. No effect without a reserve. */
export const releaseReserve = (data_dir: string) =>
  Effect.suspend(() => {
    const folder = resolve(data_dir)
    const path = join(folder, reserve_file)
    if (!existsSync(path) || freeBytes(folder) >= reserve_bytes) return Effect.void
    rmSync(path, { force: true })
    return Effect.logWarning(
      `The disk of ${folder} is full: the space reserved for startup has been released. ` +
        "Free space on it, or delete blobs and run `almanac blobs compact`.",
    )
  })

const writeReserve = async (path: string) => {
  const unfinished = `${path}.tmp`
  try {
    const file = await open(unfinished, "w", file_mode)
    try {
      // Random bytes, because a compressing file system would store zeros without space.
      const piece = randomBytes(piece_bytes)
      for (let at = 0; at < reserve_bytes; at += piece_bytes) await file.write(piece)
      await file.datasync()
    } finally {
      await file.close()
    }
    await rename(unfinished, path)
  } catch (cause) {
    await rm(unfinished, { force: true })
    throw cause
  }
}

/** Creates the reserve if it is missing and the disk has enough free space. */
const ensureReserve = (folder: string) =>
  Effect.tryPromise({
    try: async () => {
      const path = join(folder, reserve_file)
      if (!existsSync(path) && freeBytes(folder) >= free_bytes_min) await writeReserve(path)
    },
    catch: causeText,
  }).pipe(
    Effect.catch((reason) =>
      Effect.logWarning(`No space could be reserved for startup: ${reason}`),
    ),
  )

/** Maintains the reserve until interrupted. */
export const keepReserve = (folder: string) =>
  Effect.repeat(ensureReserve(folder), Schedule.spaced(`${check_every_s} seconds`)).pipe(
    Effect.delay(`${first_check_s} seconds`),
  )
