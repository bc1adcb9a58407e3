/**
 * The manifest of a backup of the control plane's data.
 *
 * Source: issue 10, deploy; docs/decisions/0143.
 */
import { Schema } from "effect"
import { SealedTree, Sha256 } from "#schemas/system/checkpoint.ts"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** A relative path without `.` and `..`, so that a restore writes only inside its folder. */
const RelativePath = Schema.String.check(
  Schema.isPattern(/^(?!\.{1,2}(?:\/|$))[^/\0\\]+(?:\/(?!\.{1,2}(?:\/|$))[^/\0\\]+)*$/u),
  Schema.isMaxLength(1024),
)

/** A file of the backup, and the object with its bytes. */
export const StoredFile = Schema.Struct({
  path: RelativePath,
  /** Permission bits of the restored file. */
  mode: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0o777 })),
  bytes: Count,
  sha256: Sha256,
  /** The object's name: SHA-256 of its bytes, which differ from the file's if sealed. */
  object: Sha256,
  stored_bytes: Count,
})
export type StoredFile = typeof StoredFile.Type

/** A stream's messages up to a sequence, in consecutive files. */
export const StoredStream = Schema.Struct({
  /** Sequence of the last message, or of the one before the first; 0 for a new stream. */
  last: Count,
  messages: Count,
  parts: Schema.Array(StoredFile),
})
export type StoredStream = typeof StoredStream.Type

export const StoredLog = Schema.Struct({
  ...StoredStream.fields,
  /** The generation of this stream; earlier generations are files. */
  generation: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  base: Count,
  copies: Count,
  /** SHA-256 of the last commit, which identifies the log. */
  hash: Sha256,
  /** The Merkle tree over all commits up to `last`. */
  tree: SealedTree,
  /** Its head as a signed note, and the key to verify it (docs/decisions/0132). */
  head: Schema.String,
  key: Schema.String,
})
export type StoredLog = typeof StoredLog.Type

export const StateManifest = Schema.Struct({
  /** Identifies this state of the backup; each increment has a new one. */
  id: Schema.String,
  /** Version of the program that made it. */
  almanac: Schema.String,
  /** RFC 3339, UTC. */
  created_at: Schema.String,
  log: StoredLog,
  events: StoredStream,
  webhooks: StoredStream,
  /** Files of the data folder. */
  files: Schema.Array(StoredFile),
})
export type StateManifest = typeof StateManifest.Type

/** All files of a manifest. */
export const storedFiles = ({ log, events, webhooks, files }: StateManifest) => [
  ...log.parts,
  ...events.parts,
  ...webhooks.parts,
  ...files,
]
