/** Small private files: written atomically, read up to a limit. */
import { randomUUID } from "node:crypto"
import { type FileHandle, open, rename, rm, stat } from "node:fs/promises"
import { dirname } from "node:path"
import { Effect, Option, Schema } from "effect"
import { makeFolder } from "./folder.ts"

/** An error of the file system. Its message has the path and the code, never contents. */
export class FileFailure extends Schema.TaggedError<FileFailure>()("FileFailure", {
  message: Schema.String,
  code: Schema.String,
}) {}

/** Accessible to the owner only. */
const file_mode = 0o600
const folder_mode = 0o700

/**
 * Writes `text` to `path` with mode 0600, atomically: even after a crash a reader gets the old file
 * or the new one. Creates missing folders with mode 0700.
 */
export const writePrivate = (path: string, text: string) => written(path, text)

/**
 * Like `writePrivate`, but if root writes the file, the folder's owner becomes its owner, because a
 * server of that user must read it. Not for root's own secrets, because anyone may own the folder.
 */
export const writeForOwner = (path: string, text: string) => written(path, text, giveToOwner)

type ChangeOwner = (file: FileHandle, folder: string) => Promise<void>

/** Uninterruptible: a write that has started is completed. */
const written = (path: string, text: string, changeOwner?: ChangeOwner) =>
  Effect.uninterruptible(attempt("write", path, () => putInPlace(path, text, changeOwner)))

const putInPlace = async (path: string, text: string, changeOwner?: ChangeOwner) => {
  makeFolder(dirname(path), folder_mode)
  const partial = `${path}.${randomUUID()}.tmp`
  try {
    const file = await open(partial, "wx", file_mode)
    try {
      await file.writeFile(text)
      await changeOwner?.(file, dirname(path))
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(partial, path)
  } catch (error) {
    await rm(partial, { force: true })
    throw error
  }
  await syncFolder(dirname(path))
}

const giveToOwner: ChangeOwner = async (file, folder) => {
  const [{ uid, gid }, own] = await Promise.all([stat(folder), file.stat()])
  if (uid === own.uid || process.getuid?.() !== 0) return
  // In some containers root may not change owners; the file then stays root's.
  await file.chown(uid, gid).catch(() => undefined)
}

/** A rename is durable only once its folder is synced. */
export const syncFolder = async (path: string) => {
  const folder = await open(path, "r")
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** Read size: small files are read often, and their limit may be large. */
const chunk_bytes = 64 * 1024

/** Reads a text of at most `bytes_max` bytes. A longer one fails with the code TOO_LARGE. */
export const readBounded = (path: string, bytes_max: number) =>
  attempt("read", path, async () => {
    const file = await open(path, "r")
    try {
      const chunks: Array<Buffer> = []
      for (let length = 0; length <= bytes_max; ) {
        const chunk = Buffer.alloc(Math.min(chunk_bytes, bytes_max + 1 - length))
        const { bytesRead } = await file.read(chunk, 0, chunk.length, null)
        if (bytesRead === 0) return Buffer.concat(chunks).toString("utf8")
        chunks.push(chunk.subarray(0, bytesRead))
        length += bytesRead
      }
    } finally {
      await file.close()
    }
    throw Object.assign(new Error("too large"), { code: "TOO_LARGE" })
  })

/** Like `readBounded`, but returns none for a missing file. */
export const findBounded = (path: string, bytes_max: number) =>
  readBounded(path, bytes_max).pipe(
    Effect.map(Option.some),
    Effect.catchIf(
      ({ code }) => code === "ENOENT",
      () => Effect.succeed(Option.none<string>()),
    ),
  )

/** Removes a file, if it exists. */
export const removeFile = (path: string) => attempt("remove", path, () => rm(path, { force: true }))

const attempt = <A>(what: string, path: string, run: () => Promise<A>) =>
  Effect.tryPromise({
    try: run,
    catch: (cause) => {
      const code = codeOf(cause)
      return new FileFailure({ message: `cannot ${what} ${path}: ${code}`, code })
    },
  })

const codeOf = (cause: unknown) =>
  cause instanceof Error && "code" in cause && typeof cause.code === "string"
    ? cause.code
    : "UNKNOWN"
