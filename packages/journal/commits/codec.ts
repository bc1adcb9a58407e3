/** Encodes and decodes commits, and computes their hashes. */
import { isUtf8 } from "node:buffer"
import { createHash } from "node:crypto"
import {
  type Append,
  type Commit,
  commit_bytes_max,
  type Entry,
  type Judge,
  snapshot_bytes_max,
} from "#events/log.ts"

/** Maximum commits of one append, as the port promises. */
export const append_commits_max = 100

/** A commit ready to be stored. */
export interface Encoded {
  readonly stream: string
  /** The expected version of the stream. */
  readonly expected: number
  readonly bytes: Uint8Array
  /** For a copy: the position of the original commit. */
  readonly copy_of?: number
}

/** SHA-256 in hex. */
export const sha256 = (data: Uint8Array | string) => createHash("sha256").update(data).digest("hex")

/** SHA-256 as its 32 bytes. */
export const digest = (data: Uint8Array): Uint8Array => createHash("sha256").update(data).digest()

/** `<service>.<aggregate>.<id>`, each a token of a bus subject. */
const stream_pattern = /^[\w-]+\.[\w-]+\.[\w-]+$/

/**
 * Encodes the commits of one append as JSON. Throws if a limit of the port is exceeded, which is a
 * bug in the caller; nothing has been sent by then.
 */
export const encode = (appends: ReadonlyArray<Append>): ReadonlyArray<Encoded> => {
  if (appends.length === 0 || appends.length > append_commits_max) {
    throw new Error(`An append has 1 to ${append_commits_max} commits, not ${appends.length}.`)
  }
  if (new Set(appends.map(({ stream }) => stream)).size !== appends.length) {
    throw new Error("The commits of an append belong to different streams.")
  }
  return appends.map(({ stream, expected, commit }) => ({
    stream: checked(stream),
    expected,
    bytes: encodeCommit(stream, commit),
  }))
}

/** Whether this is a valid name of a stream. */
export const isStream = (name: string) => stream_pattern.test(name)

/** Validates a stream's name, which becomes a subject: a wildcard in it would take effect. */
export const checked = (stream: string) => {
  if (isStream(stream)) return stream
  throw new Error(`"${stream}" is not <service>.<aggregate>.<id>.`)
}

const encodeCommit = (stream: string, commit: Commit) => {
  const bytes = Buffer.from(JSON.stringify(commit))
  if (bytes.length > commit_bytes_max) {
    throw new Error(
      `A commit for ${stream} has ${bytes.length} bytes; the maximum is ${commit_bytes_max}.`,
    )
  }
  // A snapshot is part of its commit, so only a large commit can contain a large snapshot.
  if (bytes.length <= snapshot_bytes_max) return bytes
  const snapshot = Buffer.byteLength(JSON.stringify(commit.snapshot))
  if (snapshot <= snapshot_bytes_max) return bytes
  throw new Error(
    `A snapshot for ${stream} has ${snapshot} bytes; the maximum is ${snapshot_bytes_max}.`,
  )
}

/** The first bytes of every commit that a release wrote: the version never changes. */
const commit_prefix = Buffer.from('{"v":1,')

/** Line feed: our JSON contains none, and an export has one commit per line. */
const line_feed = 10

const no_judge: Judge = () => undefined

/**
 * Decodes the message at `position`: a commit, or an entry that no release wrote. The envelope is
 * validated here only; `judge` validates the events and the snapshot in it.
 */
export const decode = (
  position: number,
  stream: string,
  bytes: Uint8Array,
  judge = no_judge,
): Entry => {
  let hash: string | undefined
  const place = {
    position,
    stream,
    bytes,
    get hash() {
      hash ??= sha256(bytes)
      return hash
    },
  }
  const read = commitOf(stream, bytes, judge)
  return Object.assign(place, typeof read === "string" ? { unreadable: read } : { commit: read })
}

/** Applies the judge to an entry that was decoded without it, for example from an archive. */
export const applyJudge = (entry: Entry, judge: Judge): Entry => {
  if ("unreadable" in entry || entry.bytes === undefined) return entry
  const unreadable = judge(entry.stream, entry.commit)
  if (unreadable === undefined) return entry
  const { position, stream, hash, bytes } = entry
  return { position, stream, hash, bytes, unreadable }
}

/** The commit, or the reason why the bytes are not one. */
const commitOf = (stream: string, bytes: Uint8Array, judge: Judge): Commit | string => {
  if (!isStream(stream)) return "its subject has no <service>.<aggregate>.<id>"
  if (bytes.length === 0) return "it is empty"
  if (bytes.length > commit_bytes_max) {
    return `it has ${bytes.length} bytes; the maximum of a commit is ${commit_bytes_max}`
  }
  if (!isUtf8(bytes)) return "it is not UTF-8"
  const parsed = parsedOf(bytes)
  if (parsed === undefined) return "it is not JSON"
  const fault = faultOf(parsed)
  if (fault !== undefined) return fault
  // Every release writes the version first, and no white space.
  if (!commit_prefix.equals(bytes.subarray(0, commit_prefix.length)) || bytes.includes(line_feed)) {
    return "it is not in the JSON format of any release"
  }
  // The checks above ensure that the fields have the shapes of a commit's.
  const commit = parsed as Commit
  return judge(stream, commit) ?? commit
}

const parsedOf = (bytes: Uint8Array): unknown => {
  try {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

type Fields = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isText = (value: unknown) => typeof value === "string"
const isTextOrAbsent = (value: unknown) => value === undefined || isText(value)
const isMessage = (value: unknown) => isObject(value) && isText(value.type)
const isSnapshot = (value: unknown) =>
  isObject(value) && Number.isSafeInteger(value.machine) && "value" in value && "context" in value

/** The fields of a commit that readers rely on; unknown fields of newer releases are ignored. */
const fields = {
  events: (value: unknown) => Array.isArray(value) && value.every(isMessage),
  snapshot: isSnapshot,
  commands: (value: unknown) => Array.isArray(value) && value.every(isText),
  fingerprints: (value: unknown) =>
    value === undefined || (Array.isArray(value) && value.every(isText)),
  prev: isText,
  actor: isText,
  at: (value: unknown) => isText(value) && !Number.isNaN(Date.parse(String(value))),
  request_id: isTextOrAbsent,
  correlation_id: isTextOrAbsent,
  cause: isTextOrAbsent,
} satisfies Partial<Record<keyof Commit, (value: unknown) => boolean>>

const checks = Object.entries(fields)

/** Describes what is wrong with the shape of a commit; undefined if it is valid. */
const faultOf = (commit: unknown) => {
  if (!isObject(commit)) return "it is not a JSON object"
  if (commit.v !== 1) return "its version is not 1"
  const wrong = checks.find(([name, isValid]) => !isValid(commit[name]))
  return wrong === undefined ? undefined : `its field ${wrong[0]} is missing or has the wrong type`
}
