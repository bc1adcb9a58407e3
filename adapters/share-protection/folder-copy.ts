/**
 * Copies, measures and removes folders without following symbolic links. Names are bytes: a name
 * that is not UTF-8 would not survive decoding, and the file would seem to be missing.
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

/** An error of the file system; the message contains no names of a tenant's files or folders. */
export class CopyFailure extends Schema.TaggedError<CopyFailure>()("CopyFailure", {
  message: Schema.String,
}) {}

/** Maximum entries of a folder: this adapter is not meant for larger shares. */
const entries_max = 10_000_000
/** Maximum entries that are measured, which takes a few seconds. */
const measured_entries_max = 100_000

/** Runs a file operation. An interrupt waits until all its writes have ended. */
const attempt = <A>(action: string, run: (signal: AbortSignal) => Promise<A>) =>
  Effect.callback<A, CopyFailure>((resume) => {
    const controller = new AbortController()
    const completed = run(controller.signal).then(
      (value) => resume(Effect.succeed(value)),
      (cause) => resume(new CopyFailure({ message: `cannot ${action}: ${codeOf(cause)}` })),
    )
    return Effect.promise(() => {
      controller.abort()
      return completed
    })
  })

const codeOf = (cause: unknown) =>
  cause instanceof Error && "code" in cause ? String(cause.code) : String(cause)

/** A file that disappears while the folder is in use counts as never having existed. */
const ifExists = async <A>(found: Promise<A>): Promise<A | undefined> => {
  try {
    return await found
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined
    throw error
  }
}

/**
 * Copies a folder's files, folders and links with their modes, times and, as root, owners. Clones
 * files if the file system supports it. Skips devices, pipes and sockets, and copies hard links as
 * separate files. `to` must not exist. An interrupt or failure leaves a partial copy.
 */
export const copyFolder = (from: string, to: string) =>
  attempt("copy the folder", async (signal) => {
    const state: CopyState = { signal, entries: 0, can_clone: true }
    await copyContents(state, Buffer.from(from), Buffer.from(to), await lstat(from))
  })

interface CopyState {
  readonly signal: AbortSignal
  entries: number
  can_clone: boolean
}

const copyContents = async (state: CopyState, from: Buffer, to: Buffer, stats: Stats) => {
  await mkdir(to, { mode: 0o700 })
  for await (const { name } of entriesOf(from)) {
    state.signal.throwIfAborted()
    if (++state.entries > entries_max) throw new Error(`more than ${entries_max} entries`)
    await copyEntry(state, inside(from, name), inside(to, name))
  }
  await copyAttributes(to, stats)
}

const copyEntry = async (state: CopyState, from: Buffer, to: Buffer) => {
  const stats = await ifExists(lstat(from))
  if (stats?.isDirectory()) return await copyContents(state, from, to, stats)
  if (stats?.isFile()) {
    const is_copied = await ifExists(copyBytes(state, from, to).then(() => true))
    if (is_copied) await copyAttributes(to, stats)
  } else if (stats?.isSymbolicLink()) {
    const target = await ifExists(readlink(from, { encoding: "buffer" }))
    if (target === undefined) return
    await symlink(target, to)
    await copyAttributes(to, stats)
  }
}

const copyBytes = async (state: CopyState, from: Buffer, to: Buffer) => {
  if (state.can_clone) {
    try {
      return await copyFile(from, to, constants.COPYFILE_FICLONE_FORCE)
    } catch (error) {
      if (codeOf(error) === "ENOENT") throw error
      state.can_clone = false
    }
  }
  // Streams, so that a large file can be interrupted. Does not follow a link that replaced the
  // file.
  const source = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW)
  const { signal } = state
  await pipeline(source.createReadStream(), createWriteStream(to, { mode: 0o600 }), { signal })
}

const is_root = process.getuid?.() === 0

const copyAttributes = async (path: Buffer, stats: Stats) => {
  if (is_root) await lchown(path, stats.uid, stats.gid)
  if (!stats.isSymbolicLink()) await chmod(path, stats.mode & 0o7777)
  // A Date would round to milliseconds.
  await lutimes(path, stats.atimeMs / 1000, stats.mtimeMs / 1000)
}

/** The total size of a folder's files; only of the first ones in a very large folder. */
export const folderBytes = (path: string) =>
  attempt("measure the folder", async (signal) => {
    const pending = [Buffer.from(path)]
    let entries = 0
    let bytes = 0
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      for await (const { name, is_folder, is_file } of entriesOf(next)) {
        signal.throwIfAborted()
        if (++entries > measured_entries_max) return bytes
        const inner = inside(next, name)
        if (is_folder) pending.push(inner)
        else if (is_file) bytes += (await ifExists(lstat(inner)))?.size ?? 0
      }
    }
    return bytes
  })

/**
 * Removes a folder and its contents, even if their modes forbid it; does nothing if it does not
 * exist.
 */
export const removeFolder = (path: string) =>
  attempt("remove the copy", async () => {
    const pending = [Buffer.from(path)]
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      if ((await ifExists(lstat(next)))?.isDirectory() !== true) continue
      await chmod(next, 0o700)
      for await (const { name, is_folder } of entriesOf(next)) {
        if (is_folder) pending.push(inside(next, name))
      }
    }
    await rm(path, { recursive: true, force: true })
  })
