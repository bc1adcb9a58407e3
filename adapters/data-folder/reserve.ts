/**
 * A file in the data folder whose only use is its space: a start on a full disk removes it, so that
 * the lock, the log, the read models and the tokens can be written, and somebody can delete blobs.
 *
 * The floor of free space keeps blobs from filling the disk; other programs may still do so.
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

/** A start writes half a MB; the rest is for the facts of deletes, and for whatever else grows. */
const reserve_bytes = 16 * 2 ** 20

/** The file is made where so much is free. */
const free_bytes_min = 4 * reserve_bytes
/** When that is looked at: not while a start has other things to write, and then so often. */
const first_look_s = 5
const look_every_s = 60

const piece_bytes = 2 ** 20
const file_mode = 0o600

const freeBytes = (folder: string) => {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

/** Removes the reserve where the disk is nearly full. A folder without one is left as it is. */
export const releaseReserve = (data_dir: string) =>
  Effect.suspend(() => {
    const folder = resolve(data_dir)
    const path = join(folder, reserve_file)
    if (!existsSync(path) || freeBytes(folder) >= reserve_bytes) return Effect.void
    rmSync(path, { force: true })
    return Effect.logWarning(
      `The disk of ${folder} is full: the space that is kept for a start is in use now. ` +
        "Free space on it, or delete blobs and run `almanac blobs compact`.",
    )
  })

const write = async (path: string) => {
  const unfinished = `${path}.tmp`
  try {
    const file = await open(unfinished, "w", file_mode)
    try {
      // Random bytes: zeros take no space on a file system that compresses.
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

/** Makes the reserve where it is missing and the disk has room for it. */
const make = (folder: string) =>
  Effect.tryPromise({
    try: async () => {
      const path = join(folder, reserve_file)
      if (!existsSync(path) && freeBytes(folder) >= free_bytes_min) await write(path)
    },
    catch: causeText,
  }).pipe(Effect.catch((reason) => Effect.logWarning(`No space is kept for a start: ${reason}`)))

/** Keeps a reserve in the folder until it is interrupted. */
export const keepReserve = (folder: string) =>
  Effect.repeat(make(folder), Schedule.spaced(`${look_every_s} seconds`)).pipe(
    Effect.delay(`${first_look_s} seconds`),
  )
