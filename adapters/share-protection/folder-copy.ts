/**
 * Copies of folders as they are, and how large they are; no symbolic link is ever followed. Names
 * are bytes: decoded, one that is no UTF-8 would name nothing, and pass for gone.
 */
import { constants, createWriteStream, type Stats } from "node:fs"
import {
  chmod,
  copyFile,
  lchown,
  lstat,
  lutimes,
  mkdir,
  open,
  readlink,
  rm,
  symlink,
} from "node:fs/promises"
import { pipeline } from "node:stream/promises"
import { Effect, Schema } from "effect"
import { entriesOf, inside } from "#files"

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
    await copyInside(copying, Buffer.from(from), Buffer.from(to), await lstat(from))
  })

interface Copying {
  readonly signal: AbortSignal
  entries: number
  can_clone: boolean
}

const copyInside = async (copying: Copying, from: Buffer, to: Buffer, stats: Stats) => {
  await mkdir(to, { mode: 0o700 })
  for await (const { name } of entriesOf(from)) {
    copying.signal.throwIfAborted()
    if (++copying.entries > entries_max) throw new Error(`more than ${entries_max} entries`)
    await copyEntry(copying, inside(from, name), inside(to, name))
  }
  await likeBefore(to, stats)
}

const copyEntry = async (copying: Copying, from: Buffer, to: Buffer) => {
  const stats = await ifThere(lstat(from))
  if (stats?.isDirectory()) return await copyInside(copying, from, to, stats)
  if (stats?.isFile()) {
    const is_copied = await ifThere(copyBytes(copying, from, to).then(() => true))
    if (is_copied) await likeBefore(to, stats)
  } else if (stats?.isSymbolicLink()) {
    const target = await ifThere(readlink(from, { encoding: "buffer" }))
    if (target === undefined) return
    await symlink(target, to)
    await likeBefore(to, stats)
  }
}

const copyBytes = async (copying: Copying, from: Buffer, to: Buffer) => {
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

const likeBefore = async (path: Buffer, stats: Stats) => {
  if (is_root) await lchown(path, stats.uid, stats.gid)
  if (!stats.isSymbolicLink()) await chmod(path, stats.mode & 0o7777)
  // A Date would round to milliseconds.
  await lutimes(path, stats.atimeMs / 1000, stats.mtimeMs / 1000)
}

/** Bytes of the files in a folder, or of the first ones where there are very many. */
export const folderBytes = (path: string) =>
  attempt("measure the folder", async (signal) => {
    const waiting = [Buffer.from(path)]
    let entries = 0
    let bytes = 0
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      for await (const { name, is_folder, is_file } of entriesOf(next)) {
        signal.throwIfAborted()
        if (++entries > sized_entries_max) return bytes
        const inner = inside(next, name)
        if (is_folder) waiting.push(inner)
        else if (is_file) bytes += (await ifThere(lstat(inner)))?.size ?? 0
      }
    }
    return bytes
  })

/** Removes a folder with all in it, also where its modes forbid that; nothing where it is not. */
export const removeFolder = (path: string) =>
  attempt("remove the copy", async () => {
    const waiting = [Buffer.from(path)]
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      if ((await ifThere(lstat(next)))?.isDirectory() !== true) continue
      await chmod(next, 0o700)
      for await (const { name, is_folder } of entriesOf(next)) {
        if (is_folder) waiting.push(inside(next, name))
      }
    }
    await rm(path, { recursive: true, force: true })
  })
