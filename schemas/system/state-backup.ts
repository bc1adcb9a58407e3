/**
 * What a backup of the control plane's own data says of itself.
 *
 * Source: issue 10, deploy; docs/decisions/0143.
 */
import { Schema } from "effect"
import { SealedTree, Sha256 } from "#schemas/system/checkpoint.ts"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/**
 * A relative path of names that are none of `.` and `..`, so that nothing is ever written outside a
 * restored folder.
 */
const RelativePath = Schema.String.check(
  Schema.isPattern(/^(?!\.{1,2}(?:\/|$))[^/\0\\]+(?:\/(?!\.{1,2}(?:\/|$))[^/\0\\]+)*$/),
  Schema.isMaxLength(1024),
)

/** A file of the backup: what it is of, and the object that holds its bytes. */
export const StoredFile = Schema.Struct({
  path: RelativePath,
  /** Permission bits that a restored file gets. */
  mode: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0o777 })),
  bytes: Count,
  sha256: Sha256,
  /** The object's name, which is the SHA-256 of its bytes; other than the file's if sealed. */
  object: Sha256,
  stored_bytes: Count,
})
export type StoredFile = typeof StoredFile.Type

/** Messages of one stream of the bus up to a sequence, in files that follow one another. */
export const StoredStream = Schema.Struct({
  /** Sequence of the last message, or of the one that came before the first; 0: there is none. */
  last: Count,
  messages: Count,
  parts: Schema.Array(StoredFile),
})
export type StoredStream = typeof StoredStream.Type

export const StoredLog = Schema.Struct({
  ...StoredStream.fields,
  /** The generation whose stream this is; those before it are files. */
  generation: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  base: Count,
  copies: Count,
  /** SHA-256 of the last commit, by which the log is known again. */
  hash: Sha256,
  /** The Merkle tree over all commits up to `last`. */
  tree: SealedTree,
  /** Its head as a signed note, and the key that proves it (docs/decisions/0132). */
  head: Schema.String,
  key: Schema.String,
})
export type StoredLog = typeof StoredLog.Type

export const StateManifest = Schema.Struct({
  /** Names this state of the backup; an increment has another than what it was added to. */
  id: Schema.String,
  /** The program's version that made it. */
  almanac: Schema.String,
  /** RFC 3339, UTC. */
  created_at: Schema.String,
  log: StoredLog,
  events: StoredStream,
  webhooks: StoredStream,
  /** Of the data folder. */
  files: Schema.Array(StoredFile),
})
export type StateManifest = typeof StateManifest.Type

/** All files that a manifest names. */
export const storedFiles = ({ log, events, webhooks, files }: StateManifest) => [
  ...log.parts,
  ...events.parts,
  ...webhooks.parts,
  ...files,
]
