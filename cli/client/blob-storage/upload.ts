/** Uploads files or standard input as raw bytes. */
import { createReadStream } from "node:fs"
import { stat } from "node:fs/promises"
import { basename } from "node:path"
import { type Readable, Transform } from "node:stream"
import { Blake3Hasher } from "@napi-rs/blake-hash"
import { hexOf } from "#cli/client/blob-storage/id.ts"
import { failure } from "#cli/client/failure.ts"
import { printable } from "#cli/client/format.ts"
import { isObject, type Json, memberAt, textAt } from "#cli/client/json.ts"
import { isMissing } from "#cli/client/private-file.ts"
import { progressOn, transfer_quiet_ms } from "#cli/client/progress.ts"
import { addressOf, type Pairs } from "#cli/client/request.ts"
import type { Session } from "#cli/client/session.ts"

export interface Upload {
  /** A path; `-` is standard input. */
  readonly file: string
  readonly policy: string | undefined
  readonly labels: Pairs
}

const sizeOf = async (file: string) => {
  const found = await stat(file).catch((cause: Error) => {
    if (isMissing(cause)) throw failure("usage", `${file} does not exist`)
    throw unreadable(file, cause.message)
  })
  if (found.isDirectory()) throw failure("usage", `${file} is a folder; only files can be stored`)
  // Pipes and devices have no size, and files in /proc report 0.
  return found.isFile() && found.size > 0 ? found.size : undefined
}

/** Reads no more than the announced size, in case the file grows meanwhile. */
const sourceOf = (file: string, total: number | undefined): Readable => {
  if (file === "-") return process.stdin
  return createReadStream(file, total === undefined ? {} : { end: total - 1 })
}

const unreadable = (file: string, reason: string) =>
  failure("usage", `${file} cannot be read: ${reason}`)

/** Percent-encodes a label, because header names ignore case and allow few characters. */
const encoded = (text: string) =>
  Array.from(Buffer.from(text), (byte) => {
    const one = String.fromCharCode(byte)
    return /[a-z0-9._-]/.test(one) ? one : `%${byte.toString(16).padStart(2, "0")}`
  }).join("")

interface UploadSource {
  readonly file: string
  readonly label: string
  readonly total: number | undefined
}

/** Streams the file while hashing it and reporting progress. */
const hashedSource = ({ file, label, total }: UploadSource, session: Session) => {
  const source = sourceOf(file, total)
  const hash = new Blake3Hasher()
  const progress = progressOn(session.screen, transfer_quiet_ms)
  let done = 0
  const through = new Transform({
    transform: (part: Buffer, _encoding, next) => {
      hash.update(part)
      done += part.length
      progress.at({ label, done, total })
      next(null, part)
    },
    flush: (next) => {
      const is_whole = total === undefined || done === total
      next(is_whole ? null : unreadable(file, "it shrank during the upload"))
    },
    destroy: (cause, next) => {
      source.destroy()
      progress.end()
      next(cause)
    },
  })
  source.on("error", (cause) => through.destroy(unreadable(file, cause.message)))
  source.pipe(through)
  return { through, checksum: () => hash.digestBuffer().toString("base64") }
}

/** Whether the blob has these labels: a repeated put does not change those of the first. */
const hasLabels = (meta: Json, requested: Pairs) => {
  const labels = memberAt(meta, "labels")
  const stored_labels = isObject(labels) ? labels : {}
  return Object.entries(requested).every(([name, value]) => stored_labels[name] === value)
}

/** Uploads one blob; returns its id in hex and its metadata. */
export const upload = async (session: Session, options: Upload): Promise<Json> => {
  const { file, policy, labels } = options
  const { http, signal } = session
  const total = file === "-" ? undefined : await sizeOf(file)
  const label = file === "-" ? "stdin" : printable(basename(file))
  const query = policy === undefined ? [] : [["policy", `REPLICATION_POLICY_${policy}`] as const]
  // Checksum of the last attempt, which is the one that succeeded.
  let checksum = () => ""
  const body = () => {
    const sent = hashedSource({ file, label, total }, session)
    checksum = sent.checksum
    return sent.through
  }
  const { body: stored } = await http.json({
    method: "POST",
    path: addressOf("/v1/blobs/stream", query),
    need: "blob",
    signal,
    body,
    headers: {
      "content-type": "application/octet-stream",
      ...(total !== undefined && { "content-length": String(total) }),
      ...Object.fromEntries(
        Object.entries(labels).map(([name, value]) => [`x-label-${encoded(name)}`, encoded(value)]),
      ),
    },
    // Standard input cannot be read twice.
    is_repeatable: file !== "-",
  })
  const id = hexOf(memberAt(stored, "id"))
  if (textAt(stored, "meta.checksum") !== checksum()) {
    const what = `${label}: the checksum of the stored blob differs from that of the sent bytes`
    throw failure("damaged", what, `almanac blobs rm ${id}, then upload it again`)
  }
  const meta = memberAt(stored, "meta") ?? null
  if (!hasLabels(meta, labels)) {
    session.screen.err(`${label}: the blob already exists; its labels are unchanged.\n`)
  }
  return { id, size: memberAt(stored, "size") ?? null, meta, file }
}
