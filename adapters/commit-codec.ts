/** Commits as bytes, and the chain of hashes over them. */
import { createHash } from "node:crypto"
import {
  type Append,
  type Commit,
  commit_bytes_max,
  type Recorded,
  snapshot_bytes_max,
} from "#events/log.ts"

/** Most commits of one append, as the port promises. */
export const append_commits_max = 100

/** A commit ready to be stored. */
export interface Encoded {
  readonly stream: string
  /** The version that the stream must still have. */
  readonly expected: number
  readonly bytes: Uint8Array
  /** Of a copy: the position of the commit that it is a copy of. */
  readonly copy_of?: number
}

/** SHA-256 in hex. */
export const sha256 = (data: Uint8Array | string) => createHash("sha256").update(data).digest("hex")

/** SHA-256 as its 32 bytes. */
export const digest = (data: Uint8Array): Uint8Array => createHash("sha256").update(data).digest()

/** `<service>.<aggregate>.<id>`, each a token of a bus subject. */
const stream_pattern = /^[\w-]+\.[\w-]+\.[\w-]+$/

/**
 * Reads what one append was asked as bytes of JSON. Throws, since it is a defect of the caller,
 * when a limit of the port is broken; nothing has been sent by then.
 */
export const encode = (appends: ReadonlyArray<Append>): ReadonlyArray<Encoded> => {
  if (appends.length === 0 || appends.length > append_commits_max) {
    throw new Error(`An append has 1 to ${append_commits_max} commits, not ${appends.length}.`)
  }
  if (new Set(appends.map(({ stream }) => stream)).size !== appends.length) {
    throw new Error("The commits of an append go to different streams.")
  }
  return appends.map(({ stream, expected, commit }) => ({
    stream: checked(stream),
    expected,
    bytes: encodeCommit(stream, commit),
  }))
}

/** The stream's name, which becomes a subject: a wildcard in it would be read as one. */
export const checked = (stream: string) => {
  if (stream_pattern.test(stream)) return stream
  throw new Error(`"${stream}" is not <service>.<aggregate>.<id>.`)
}

const encodeCommit = (stream: string, commit: Commit) => {
  const bytes = Buffer.from(JSON.stringify(commit))
  if (bytes.length > commit_bytes_max) {
    throw new Error(`A commit of ${bytes.length} bytes for ${stream}: ${commit_bytes_max} at most.`)
  }
  // A snapshot is part of its commit: only a large commit can hold a large one.
  if (bytes.length <= snapshot_bytes_max) return bytes
  const snapshot = Buffer.byteLength(JSON.stringify(commit.snapshot))
  if (snapshot <= snapshot_bytes_max) return bytes
  throw new Error(`A snapshot of ${snapshot} bytes for ${stream}: ${snapshot_bytes_max} at most.`)
}

const parsed = (position: number, bytes: Uint8Array) => {
  try {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
    // The log holds what `encode` wrote; its version says so.
    return JSON.parse(text) as Commit
  } catch {
    throw new Error(`The commit at ${position} is no JSON: something else wrote or changed it.`)
  }
}

/** How every commit of this version begins that this program wrote. */
const beginning = Buffer.from('{"v":1,')

const readable = (position: number, bytes: Uint8Array) => {
  const commit = parsed(position, bytes)
  if (commit.v !== 1) throw new Error(`The commit at ${position} has an unknown version.`)
  return commit
}

/**
 * The commit that is stored at `position`; throws when the bytes are no commit that we know. What
 * begins as one is parsed when it is looked at, and throws then: who follows a service sees commits
 * of hundreds of kilobytes that say nothing to it but their stream.
 */
export const decode = (position: number, stream: string, bytes: Uint8Array): Recorded => {
  const begins = beginning.equals(bytes.subarray(0, beginning.length))
  let commit = begins ? undefined : readable(position, bytes)
  let hash: string | undefined
  return {
    position,
    stream,
    get commit() {
      commit ??= readable(position, bytes)
      return commit
    },
    get hash() {
      hash ??= sha256(bytes)
      return hash
    },
  }
}
