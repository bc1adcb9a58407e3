/** Copies of folders as they are, and how large they are; no symbolic link is ever followed. */
import { constants, createWriteStream, type Stats } from "node:fs"
import {
  chmod,
  copyFile,
  lchown,
  lstat,
  lutimes,
  mkdir,
  open,
  opendir,
  readlink,
  rm,
  symlink,
} from "node:fs/promises"
import { join } from "node:path"
import { pipeline } from "node:stream/promises"
import { Effect, Schema } from "effect"

/** The file system's answer; the message names neither a tenant's file nor its folder. */
export class CopyFailure extends Schema.TaggedError<CopyFailure>()("CopyFailure", {
  message: Schema.String,
}) {}

/** Files, folders and links in one folder: a share of more is not one for this adapter. */
const entries_max = 10_000_000
/** Entries that are looked at for a size: some seconds. */
const sized_entries_max = 100_000

/** Interrupted, it waits until nothing is written any more. */
const attempt = <A>(what: string, run: (signal: AbortSignal) => Promise<A>) =>
  Effect.callback<A, CopyFailure>((resume) => {
    const controller = new AbortController()
    const ended = run(controller.signal).then(
      (value) => resume(Effect.succeed(value)),
      (cause) => resume(new CopyFailure({ message: `cannot ${what}: ${codeOf(cause)}` })),
    )
    return Effect.promise(() => {
      controller.abort()
      return ended
    })
  })

const codeOf = (cause: unknown) =>
  cause instanceof Error && "code" in cause ? String(cause.code) : String(cause)

/** What is gone since it was listed counts as never having been there: the folder is in use. */
const ifThere = async <A>(found: Promise<A>): Promise<A | undefined> => {
  try {
    return await found
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined
    throw error
  }
}

/**
 * Copies a folder's files, folders and links with their modes, times and, for root, owners; by
 * reference where the file system can. Devices, pipes and sockets are left out, hard links become
 * files of their own. `to` must not be there. Interrupted, or failed, it leaves a part behind.
 */
export const copyFolder = (from: string, to: string) =>
  attempt("copy the folder", async (signal) => {
    const copying: Copying = { signal, entries: 0, can_clone: true }
    await copyInside(copying, from, to, await lstat(from))
  })

interface Copying {
  readonly signal: AbortSignal
  entries: number
  can_clone: boolean
}

const copyInside = async (copying: Copying, from: string, to: string, stats: Stats) => {
  await mkdir(to, { mode: 0o700 })
  const folder = await ifThere(opendir(from))
  for await (const { name } of folder ?? []) {
    copying.signal.throwIfAborted()
    if (++copying.entries > entries_max) throw new Error(`more than ${entries_max} entries`)
    await copyEntry(copying, join(from, name), join(to, name))
  }
  await likeBefore(to, stats)
}

const copyEntry = async (copying: Copying, from: string, to: string) => {
  const stats = await ifThere(lstat(from))
  if (stats?.isDirectory()) return await copyInside(copying, from, to, stats)
  if (stats?.isFile()) {
    const is_copied = await ifThere(copyBytes(copying, from, to).then(() => true))
    if (is_copied) await likeBefore(to, stats)
  } else if (stats?.isSymbolicLink()) {
    const target = await ifThere(readlink(from))
    if (target === undefined) return
    await symlink(target, to)
    await likeBefore(to, stats)
  }
}

const copyBytes = async (copying: Copying, from: string, to: string) => {
  if (copying.can_clone) {
    try {
      return await copyFile(from, to, constants.COPYFILE_FICLONE_FORCE)
    } catch (error) {
      if (codeOf(error) === "ENOENT") throw error
      copying.can_clone = false
    }
  }
  // By hand, so that a large file can be interrupted, and that a link in its place is not followed.
  const source = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW)
  const { signal } = copying
  await pipeline(source.createReadStream(), createWriteStream(to, { mode: 0o600 }), { signal })
}

const is_root = process.getuid?.() === 0

const likeBefore = async (path: string, stats: Stats) => {
  if (is_root) await lchown(path, stats.uid, stats.gid)
  if (!stats.isSymbolicLink()) await chmod(path, stats.mode & 0o7777)
  // A Date would round to milliseconds.
  await lutimes(path, stats.atimeMs / 1000, stats.mtimeMs / 1000)
}

/** Bytes of the files in a folder, or of the first ones where there are very many. */
export const folderBytes = (path: string) =>
  attempt("measure the folder", async (signal) => {
    const waiting = [path]
    let entries = 0
    let bytes = 0
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const folder = await ifThere(opendir(next))
      for await (const entry of folder ?? []) {
        signal.throwIfAborted()
        if (++entries > sized_entries_max) return bytes
        const inner = join(next, entry.name)
        if (entry.isDirectory()) waiting.push(inner)
        else if (entry.isFile()) bytes += (await ifThere(lstat(inner)))?.size ?? 0
      }
    }
    return bytes
  })

/** Removes a folder with all in it, also where its modes forbid that; nothing where it is not. */
export const removeFolder = (path: string) =>
  attempt("remove the copy", async () => {
    const waiting = [path]
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      if ((await ifThere(lstat(next)))?.isDirectory() !== true) continue
      await chmod(next, 0o700)
      for await (const entry of await opendir(next)) {
        if (entry.isDirectory()) waiting.push(join(next, entry.name))
      }
    }
    await rm(path, { recursive: true, force: true })
  })
