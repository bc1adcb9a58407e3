/** Small files that only we may read: written whole or not at all, read up to a bound. */
import { randomUUID } from "node:crypto"
import { type FileHandle, open, rename, rm, stat } from "node:fs/promises"
import { dirname } from "node:path"
import { Effect, Option, Schema } from "effect"
import { makeFolder } from "./folder.ts"

/** The file system's answer; the message names file and code, never contents. */
export class FileFailure extends Schema.TaggedError<FileFailure>()("FileFailure", {
  message: Schema.String,
  code: Schema.String,
}) {}

/** The owner may read and write, or enter the folder; nobody else anything. */
const file_mode = 0o600
const folder_mode = 0o700

/**
 * Writes `text` to `path` with mode 0600 in one step: a reader, also after a crash, sees the old
 * file or the new one. Missing folders are made with mode 0700.
 */
export const writePrivate = (path: string, text: string) => written(path, text)

/**
 * As writePrivate; what root writes so beside a server of another user is that user's, who has to
 * read it. For no secret of root's: whose the folder is may be anybody.
 */
export const writeForOwner = (path: string, text: string) => written(path, text, giveToOwner)

type Give = (file: FileHandle, folder: string) => Promise<void>

/** To its end, once begun: whoever is told to stop leaves nothing half written. */
const written = (path: string, text: string, give?: Give) =>
  Effect.uninterruptible(attempt("write", path, () => putInPlace(path, text, give)))

const putInPlace = async (path: string, text: string, give?: Give) => {
  makeFolder(dirname(path), folder_mode)
  const partial = `${path}.${randomUUID()}.tmp`
  try {
    const file = await open(partial, "wx", file_mode)
    try {
      await file.writeFile(text)
      await give?.(file, dirname(path))
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

const giveToOwner: Give = async (file, folder) => {
  const [{ uid, gid }, ours] = await Promise.all([stat(folder), file.stat()])
  if (uid === ours.uid || process.getuid?.() !== 0) return
  // Where owners are not root's to change either, as in some containers, it stays root's.
  await file.chown(uid, gid).catch(() => undefined)
}

/** A renamed file is only there for good once its folder is. */
export const syncFolder = async (path: string) => {
  const folder = await open(path, "r")
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** Read at one go: small files are read often, and their bound may be large. */
const chunk_bytes = 64 * 1024

/** Reads a text of at most `bytes_max` bytes; a longer one fails with code TOO_LARGE. */
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

/** As readBounded, and none where there is no such file. */
export const findBounded = (path: string, bytes_max: number) =>
  readBounded(path, bytes_max).pipe(
    Effect.map(Option.some),
    Effect.catchIf(
      ({ code }) => code === "ENOENT",
      () => Effect.succeed(Option.none<string>()),
    ),
  )

/** Removes the file if it is there. */
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
