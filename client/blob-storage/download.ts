/**
 * A blob into a file: what came is kept in `FILE.<id>.part` until it is whole and proven, so that a
 * second try goes on where the first ended, and FILE is never half of anything.
 *
 * Source: document 1 §2, checksum; decisions of document 1, hash and framing (Range).
 */

import { once } from "node:events"
import { createReadStream } from "node:fs"
import { type FileHandle, open, rename, rm, stat } from "node:fs/promises"
import { basename, dirname } from "node:path"
import { Blake3Hasher } from "@napi-rs/blake-hash"
import { failure, isFailure } from "#client/failure.ts"
import { type Json, memberAt, textAt } from "#client/json.ts"
import { progressOn, transfer_quiet_ms } from "#client/progress.ts"
import type { Session } from "#client/session.ts"
import { printable } from "#client/shown.ts"

/** Of the id in the part's name: another blob's part is not gone on with. */
const part_digits = 8

interface Known {
  readonly size: number
  /** BLAKE3-256, base64. */
  readonly checksum: string
}

/** What the cluster says of a blob. ClientFailed where nobody has it. */
export const statOf = async ({ http, signal }: Session, id: string): Promise<Json> => {
  const path = `/v1/blobs/${id}/stat?scope=cluster`
  const { body } = await http.json({ method: "GET", path, need: "blob", signal })
  if (memberAt(body, "exists") === true) return memberAt(body, "meta") ?? null
  throw failure("not_found", `There is no blob ${id}`, "see what is there: almanac blobs ls")
}

const known = async (session: Session, id: string): Promise<Known> => {
  const meta = await statOf(session, id)
  return { size: Number(memberAt(meta, "size")), checksum: textAt(meta, "checksum") ?? "" }
}

const damaged = (id: string) =>
  failure(
    "damaged",
    `The bytes of ${id} are not those of its checksum; nothing of them is kept`,
    "try again; if it stays so, another node may have a good copy",
  )

/** The raw bytes from `from` on. */
const bytesOf = async ({ http, signal }: Session, id: string, from: number) => {
  const headers = {
    accept: "application/octet-stream",
    ...(from > 0 && { range: `bytes=${from}-` }),
  }
  const path = `/v1/blobs/${id}`
  const answer = await http.open({ method: "GET", path, need: "blob", headers, signal })
  if (from > 0 && answer.statusCode !== 206) {
    answer.destroy()
    throw failure("failed", "The server sends the whole blob where a part was asked for")
  }
  return answer
}

const broken = (cause: unknown, session: Session, next: string) => {
  if (session.signal.aborted) return failure("interrupted", "Interrupted.", next)
  const reason = cause instanceof Error ? cause.message : String(cause)
  return failure("unreachable", `The connection broke: ${reason}`, next)
}

const progressed = (session: Session, label: string, total: number) => {
  const progress = progressOn(session.screen, transfer_quiet_ms)
  return { at: (done: number) => progress.at({ label, done, total }), end: progress.end }
}

/** What an earlier try has left, hashed; nothing where it is longer than the blob. */
const resumed = async (part: string, size: number, hash: Blake3Hasher) => {
  const found = await stat(part).catch(() => undefined)
  if (found === undefined || !found.isFile() || found.size > size) return 0
  for await (const bytes of createReadStream(part, { end: found.size - 1 })) {
    if (found.size > 0) hash.update(bytes)
  }
  return found.size
}

const fill = async (
  session: Session,
  file: FileHandle,
  { id, from, size, hash, label }: FillFrom,
) => {
  const progress = progressed(session, label, size)
  let done = from
  try {
    progress.at(done)
    for await (const bytes of await bytesOf(session, id, from)) {
      hash.update(bytes)
      await file.appendFile(bytes)
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
  readonly from: number
  readonly size: number
  readonly hash: Blake3Hasher
  readonly label: string
}

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  )

const syncFolder = async (path: string) => {
  await using folder = await open(path, "r")
  await folder.sync()
}

/** Writes the blob to `path`, whole and proven, or not at all; an existing file only on `force`. */
export const download = async (session: Session, id: string, path: string, force: boolean) => {
  if (!force && (await exists(path))) {
    throw failure("usage", `${path} exists`, "repeat it with --force, or name another file")
  }
  const { size, checksum } = await known(session, id)
  const part = `${path}.${id.slice(0, part_digits)}.part`
  const hash = new Blake3Hasher()
  const from = await resumed(part, size, hash)
  const again = `almanac blobs get ${id} ${path}: it goes on where it ended`
  const file = await open(part, from > 0 ? "a" : "w").catch((cause: Error) => {
    throw failure("usage", `${part} cannot be written: ${cause.message}`)
  })
  try {
    if (from < size) {
      const label = printable(basename(path))
      await fill(session, file, { id, from, size, hash, label }).catch((cause: unknown) => {
        if (isFailure(cause)) throw cause
        throw broken(cause, session, again)
      })
    }
    await file.sync()
  } finally {
    await file.close()
  }
  if (hash.digestBuffer().toString("base64") !== checksum) {
    await rm(part, { force: true })
    throw damaged(id)
  }
  await rename(part, path)
  await syncFolder(dirname(path))
  return { id, file: path, size, resumed_at: from } satisfies Json
}

/** Writes the blob to standard output; what is wrong shows at the end, in the exit code. */
export const print = async (session: Session, id: string) => {
  const { size, checksum } = await known(session, id)
  const hash = new Blake3Hasher()
  const progress = progressed(session, id.slice(0, part_digits), size)
  let done = 0
  try {
    for await (const bytes of await bytesOf(session, id, 0)) {
      hash.update(bytes)
      done += bytes.length
      progress.at(done)
      if (!process.stdout.write(bytes)) await once(process.stdout, "drain")
    }
  } catch (cause) {
    if (isFailure(cause)) throw cause
    throw broken(cause, session, "repeat it: what came is not whole")
  } finally {
    progress.end()
  }
  if (hash.digestBuffer().toString("base64") !== checksum) throw damaged(id)
}
