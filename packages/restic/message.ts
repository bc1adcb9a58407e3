/**
 * Schemas of restic's `--json` messages, one a line. Unknown messages are ignored, because other
 * versions may send more.
 */
import { Effect, Option, Schema } from "effect"

const Count = Schema.Number.check(Schema.isGreaterThanOrEqualTo(0))
/** Omitted if 0. */
const CountOrNone = Count.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0)))
const Id = Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/))

/** Parses a line; undefined if it is another message. */
const reader = <A, I>(schema: Schema.Codec<A, I>) => {
  const decode = Schema.decodeUnknownOption(Schema.fromJsonString(schema))
  return (line: string): A | undefined => Option.getOrUndefined(decode(line))
}

const Status = Schema.Struct({
  message_type: Schema.Literal("status"),
  /** 0 to 1, of the bytes found so far; it may decrease while more are found. */
  percent_done: CountOrNone,
  total_bytes: CountOrNone,
  bytes_done: CountOrNone,
  bytes_restored: CountOrNone,
})

const BackupSummary = Schema.Struct({
  message_type: Schema.Literal("summary"),
  snapshot_id: Id,
  backup_start: Schema.String,
  total_files_processed: Count,
  total_bytes_processed: Count,
  data_added_packed: CountOrNone,
})

/** One step of a restore with `-vv`. A deleted item has its absolute path. */
const Step = Schema.Struct({
  message_type: Schema.Literal("verbose_status"),
  action: Schema.Literals(["restored", "updated", "unchanged", "deleted"]),
  item: Schema.String,
})

const Node = Schema.Struct({
  message_type: Schema.Literal("node"),
  type: Schema.String,
  path: Schema.String,
  size: CountOrNone,
  mtime: Schema.String,
})
export type Node = typeof Node.Type

/** Omitted if empty. */
const TextsOrNone = Schema.Array(Schema.String).pipe(
  Schema.withDecodingDefaultKey(Effect.succeed([])),
)

const Snapshot = Schema.Struct({
  id: Id,
  time: Schema.String,
  /** The absolute paths that were backed up. */
  paths: TextsOrNone,
  excludes: TextsOrNone,
  hostname: Schema.String,
  tags: Schema.NullOr(Schema.Array(Schema.String)).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(null)),
  ),
  summary: Schema.optionalKey(
    Schema.Struct({
      total_files_processed: CountOrNone,
      total_bytes_processed: CountOrNone,
      data_added_packed: CountOrNone,
    }),
  ),
})

const ExitError = Schema.Struct({
  message_type: Schema.Literal("exit_error"),
  message: Schema.String,
})

const OneError = Schema.Struct({
  message_type: Schema.Literal("error"),
  error: Schema.Struct({ message: Schema.String }),
  /** The path of the error: absolute, or relative to the working directory. */
  item: Schema.optionalKey(Schema.String),
})

const Version = Schema.Struct({
  message_type: Schema.Literal("version"),
  version: Schema.String,
  go_version: Schema.String,
})

const Config = Schema.Struct({ version: Count })

export const readStatus = reader(Status)
export const readBackupSummary = reader(BackupSummary)
export const readStep = reader(Step)
export const readNode = reader(Node)
export const readSnapshot = reader(Snapshot)
export const readExitError = reader(ExitError)
export const readError = reader(OneError)
export const readVersion = reader(Version)
export const readConfig = reader(Config)
