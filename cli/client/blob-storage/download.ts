/**
 * Downloads a blob into a file. The bytes go to `FILE.<first digits of the id>.part` until they are
 * complete and verified, so that a second attempt resumes there and FILE is never partial.
 *
 * Source: document 1 §2, checksum; decisions of document 1, hash and framing (Range).
 */

import { once } from "node:events"
import { constants, createReadStream } from "node:fs"
import { type FileHandle, open, rename, rm, stat } from "node:fs/promises"
import { basename, dirname } from "node:path"
import { Blake3Hasher } from "@napi-rs/blake-hash"
import { exit_codes } from "#cli/client/exit-code.ts"
import { failure, isFailure } from "#cli/client/failure.ts"
import { printable } from "#cli/client/format.ts"
import { type Json, memberAt, textAt } from "#cli/client/json.ts"
import { progressOn, transfer_quiet_ms } from "#cli/client/progress.ts"
import type { Session } from "#cli/client/session.ts"

/** Digits of the id in the part's name, so that another blob's part is not resumed. */
const part_digits = 8

interface BlobStat {
  readonly size: number
  /** BLAKE3-256, base64. */
  readonly checksum: string
}

/** Metadata of a blob on this node or in the cluster. ClientFailed if it does not exist. */
export const statOf = async (
  { http, signal }: Session,
  id: string,
  scope: "node" | "cluster",
): Promise<Json> => {
  const path = `/v1/blobs/${id}/stat?scope=${scope}`
  const { body } = await http.json({ method: "GET", path, need: "blob", signal })
  if (memberAt(body, "exists") === true) return memberAt(body, "meta") ?? null
  throw failure("not_found", `Blob ${id} does not exist`, "list the blobs: almanac blobs ls")
}

const blobStat = async (session: Session, id: string): Promise<BlobStat> => {
  const meta = await statOf(session, id, "cluster")
  return { size: Number(memberAt(meta, "size")), checksum: textAt(meta, "checksum") ?? "" }
}

const damaged = (id: string) =>
  failure(
    "damaged",
    `The bytes of ${id} do not match its checksum; no file is kept`,
    "repeat the command; if it fails again, try another node, which may have an intact copy",
  )

/** Requests the raw bytes starting at `from`. */
const bytesOf = async ({ http, signal }: Session, id: string, from: number) => {
  const headers = {
    accept: "application/octet-stream",
    ...(from > 0 && { range: `bytes=${from}-` }),
  }
  const path = `/v1/blobs/${id}`
  const response = await http.open({ method: "GET", path, need: "blob", headers, signal })
  if (from > 0 && response.statusCode !== 206) {
    response.destroy()
    const what = "The server, or a proxy in front of it, ignores range requests"
    throw failure("failed", what, "remove the .part file and repeat the command")
  }
  return response
}

const transferFailure = (cause: unknown, session: Session, next: string) => {
  if (isFailure(cause)) return cause
  if (session.signal.aborted) return failure("interrupted", "Interrupted.", next)
  const reason = cause instanceof Error ? cause.message : String(cause)
  return failure("unreachable", `Connection lost: ${reason}`, next)
}

const transferProgress = (session: Session, label: string, total: number) => {
  const progress = progressOn(session.screen, transfer_quiet_ms)
  return { at: (done: number) => progress.at({ label, done, total }), end: progress.end }
}

/** Hashes the part of an earlier attempt; returns its size, 0 if it is unusable. */
const hashPart = async (part: string, size: number, hash: Blake3Hasher) => {
  const found = await stat(part).catch(() => undefined)
  if (found === undefined || !found.isFile() || found.size === 0 || found.size > size) return 0
  for await (const bytes of createReadStream(part, { end: found.size - 1 })) hash.update(bytes)
  return found.size
}

/** Writes at explicit offsets, because a concurrent download may write the same file. */
const writeAt = async (file: FileHandle, bytes: Uint8Array, at: number) => {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, at + done)
    done += bytesWritten
  }
}

const fill = async (
  session: Session,
  file: FileHandle,
  { id, part, from, size, hash, label }: FillFrom,
) => {
  const progress = transferProgress(session, label, size)
  let done = from
  try {
    progress.at(done)
    for await (const bytes of await bytesOf(session, id, from)) {
      hash.update(bytes)
      await writeAt(file, bytes, done).catch(throwUnwritable(part))
      done += bytes.length
      progress.at(done)
    }
    if (done !== size) throw new Error(`${size - done} bytes are missing`)
  } finally {
    progress.end()
  }
}

interface FillFrom {
  readonly id: string
  readonly part: string
  readonly from: number
  readonly size: number
  readonly hash: Blake3Hasher
  readonly label: string
}

const throwUnwritable = (path: string) => (cause: Error) => {
  throw failure("usage", `${path} cannot be written: ${cause.message}`)
}

const refuseExisting = async (path: string, force: boolean) => {
  const found = await stat(path).catch(() => undefined)
  if (found?.isDirectory() === true) throw failure("usage", `${path} is a folder; name a file`)
  if (found === undefined || force) return
  throw failure("usage", `${path} exists`, "repeat the command with --force, or name another file")
}

const syncFolder = async (path: string) => {
  await using folder = await open(path, "r")
  await folder.sync()
}

const { O_CREAT, O_RDWR } = constants

/** Writes the verified blob to `path`, all or nothing; overwrites a file only with `force`. */
export const download = async (session: Session, id: string, path: string, force: boolean) => {
  await refuseExisting(path, force)
  const { size, checksum } = await blobStat(session, id)
  const part = `${path}.${id.slice(0, part_digits)}.part`
  const hash = new Blake3Hasher()
  const from = await hashPart(part, size, hash)
  const next = `almanac blobs get ${id} ${path}, which resumes the download`
  const file = await open(part, O_RDWR | O_CREAT).catch(throwUnwritable(part))
  try {
    if (from < size) {
      const label = printable(basename(path))
      await fill(session, file, { id, part, from, size, hash, label }).catch((cause: unknown) => {
        throw transferFailure(cause, session, next)
      })
    }
    // Remove surplus bytes of an earlier attempt.
    await file.truncate(size).catch(throwUnwritable(part))
    await file.sync().catch(throwUnwritable(part))
  } finally {
    await file.close()
  }
  if (hash.digestBuffer().toString("base64") !== checksum) {
    await rm(part, { force: true })
    throw damaged(id)
  }
  // Another process may have created it meanwhile.
  await refuseExisting(path, force)
  await rename(part, path).catch(throwUnwritable(path))
  await syncFolder(dirname(path)).catch(throwUnwritable(path))
  return { id, file: path, size, resumed_at: from } satisfies Json
}

/** Writes the blob to standard output; the exit code reports a wrong checksum at the end. */
export const print = async (session: Session, id: string) => {
  const { size, checksum } = await blobStat(session, id)
  const { signal } = session
  const hash = new Blake3Hasher()
  const progress = transferProgress(session, id.slice(0, part_digits), size)
  let done = 0
  // The reader may close the pipe before verification.
  process.exitCode = exit_codes.interrupted[0]
  try {
    for await (const bytes of await bytesOf(session, id, 0)) {
      hash.update(bytes)
      done += bytes.length
      progress.at(done)
      if (!process.stdout.write(bytes)) await once(process.stdout, "drain", { signal })
    }
  } catch (cause) {
    throw transferFailure(cause, session, "repeat the command: the output is incomplete")
  } finally {
    progress.end()
  }
  if (hash.digestBuffer().toString("base64") !== checksum) throw damaged(id)
  process.exitCode = exit_codes.ok[0]
}
