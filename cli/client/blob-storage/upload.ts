/** Bytes of files or of standard input into the blob store, as they are. */
import { createReadStream } from "node:fs"
import { stat } from "node:fs/promises"
import { basename } from "node:path"
import { type Readable, Transform } from "node:stream"
import { Blake3Hasher } from "@napi-rs/blake-hash"
import { hexOf } from "#cli/client/blob-storage/id.ts"
import { failure } from "#cli/client/failure.ts"
import { isObject, type Json, memberAt, textAt } from "#cli/client/json.ts"
import { progressOn, transfer_quiet_ms } from "#cli/client/progress.ts"
import { addressOf, type Pairs } from "#cli/client/request.ts"
import type { Session } from "#cli/client/session.ts"
import { printable } from "#cli/client/shown.ts"

export interface Upload {
  /** A path; `-` is standard input. */
  readonly file: string
  readonly policy: string | undefined
  readonly labels: Pairs
}

const sizeOf = async (file: string) => {
  const found = await stat(file).catch((cause: Error) => {
    throw unreadable(file, cause.message)
  })
  if (found.isDirectory()) throw failure("usage", `${file} is a folder: name files`)
  // A pipe or a device has bytes, but no size; nor has a file of /proc, which says 0.
  return found.isFile() && found.size > 0 ? found.size : undefined
}

/** Not more than was measured, should the file grow meanwhile: that many bytes are announced. */
const sourceOf = (file: string, total: number | undefined): Readable => {
  if (file === "-") return process.stdin
  return createReadStream(file, total === undefined ? {} : { end: total - 1 })
}

const unreadable = (file: string, reason: string) =>
  failure("usage", `${file} cannot be read: ${reason}`)

/** Header names have no case, and not all that a label may have: the rest is percent-encoded. */
const encoded = (text: string) =>
  Array.from(Buffer.from(text), (byte) => {
    const one = String.fromCharCode(byte)
    return /[a-z0-9._-]/.test(one) ? one : `%${byte.toString(16).padStart(2, "0")}`
  }).join("")

interface Measured {
  readonly file: string
  readonly label: string
  readonly total: number | undefined
}

/** Passes the file's bytes on, and shows and hashes them. */
const measured = ({ file, label, total }: Measured, session: Session) => {
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
      next(is_whole ? null : unreadable(file, "it became shorter meanwhile"))
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

/** Bytes that are stored already keep the labels that they have, whatever a later put says. */
const hasLabels = (meta: Json, asked: Pairs) => {
  const labels = memberAt(meta, "labels")
  const kept = isObject(labels) ? labels : {}
  return Object.entries(asked).every(([name, value]) => kept[name] === value)
}

/** Stores one blob; answers its id in hex with what the server says of it. */
export const upload = async (session: Session, asked: Upload): Promise<Json> => {
  const { file, policy, labels } = asked
  const { http, signal } = session
  const total = file === "-" ? undefined : await sizeOf(file)
  const label = file === "-" ? "stdin" : printable(basename(file))
  const query = policy === undefined ? [] : [["policy", `REPLICATION_POLICY_${policy}`] as const]
  // Of the last try, which is the one that was answered.
  let checksum = () => ""
  const body = () => {
    const sent = measured({ file, label, total }, session)
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
    // What was read of standard input cannot be sent again.
    is_repeatable: file !== "-",
  })
  const id = hexOf(memberAt(stored, "id"))
  if (textAt(stored, "meta.checksum") !== checksum()) {
    const what = `${label}: the server stored other bytes than were sent`
    throw failure("damaged", what, `almanac blobs rm ${id}, and send it again`)
  }
  const meta = memberAt(stored, "meta") ?? null
  if (!hasLabels(meta, labels)) {
    session.screen.err(`${label} was stored before, and its labels stay as they were.\n`)
  }
  return { id, size: memberAt(stored, "size") ?? null, meta, file }
}
