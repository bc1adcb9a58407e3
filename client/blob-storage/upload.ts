/** Bytes of files or of standard input into the blob store, as they are. */
import { createReadStream } from "node:fs"
import { stat } from "node:fs/promises"
import { basename } from "node:path"
import { type Readable, Transform } from "node:stream"
import { Blake3Hasher } from "@napi-rs/blake-hash"
import { hexOf } from "#client/blob-storage/id.ts"
import { failure } from "#client/failure.ts"
import { textOf } from "#client/http.ts"
import { fromJson, type Json, memberAt, textAt } from "#client/json.ts"
import { progressOn, transfer_quiet_ms } from "#client/progress.ts"
import { addressOf, type Pairs } from "#client/request.ts"
import type { Session } from "#client/session.ts"
import { printable } from "#client/shown.ts"

export interface Upload {
  /** A path; `-` is standard input. */
  readonly file: string
  readonly policy: string | undefined
  readonly labels: Pairs
}

const sizeOf = async (file: string) => {
  const found = await stat(file).catch((cause: Error) => {
    throw failure("usage", `${file} cannot be read: ${cause.message}`)
  })
  if (found.isDirectory()) throw failure("usage", `${file} is a folder: name files`)
  // A pipe or a device has bytes, but no size.
  return found.isFile() ? found.size : undefined
}

/** Passes bytes on, and shows and hashes them. */
const measured = (source: Readable, label: string, total: number | undefined, session: Session) => {
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
    destroy: (cause, next) => {
      source.destroy()
      progress.end()
      next(cause)
    },
  })
  source.on("error", (cause) => through.destroy(cause))
  source.pipe(through)
  return { through, checksum: () => hash.digestBuffer().toString("base64") }
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
    const source = file === "-" ? process.stdin : createReadStream(file)
    const sent = measured(source, label, total, session)
    checksum = sent.checksum
    return sent.through
  }
  const answer = await http.open({
    ...{ method: "POST", path: addressOf("/v1/blobs/stream", query), need: "blob", signal, body },
    headers: {
      "content-type": "application/octet-stream",
      ...(total !== undefined && { "content-length": String(total) }),
      ...Object.fromEntries(
        Object.entries(labels).map(([name, value]) => [`x-label-${name}`, value]),
      ),
    },
    // What was read of standard input cannot be sent again.
    is_repeatable: file !== "-",
  })
  const stored = fromJson(await textOf(answer))
  const id = hexOf(memberAt(stored, "id"))
  if (textAt(stored, "meta.checksum") !== checksum()) {
    const what = `${label}: the server stored other bytes than were sent`
    throw failure("damaged", what, `almanac blobs rm ${id}, and send it again`)
  }
  const meta = memberAt(stored, "meta") ?? null
  return { id, size: memberAt(stored, "size") ?? null, meta, file }
}
