/**
 * What operators ask of the log, and what they are told.
 *
 * Source: DECISIONS "audit log for operators".
 */
import { DateTime, Schema, SchemaGetter } from "effect"
import { Token } from "#schemas/message.ts"

/** Events on a page: as many as a person asks for, and as many as one answer carries. */
export const page_limit = 100
export const page_limit_max = 1000

/** Longest text of a filter: an actor's name at its longest. */
const filter_chars_max = 256

const instant = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:[Zz]|[+-]\d{2}:\d{2})$/

/** RFC 3339 as epoch milliseconds. */
export const InstantMs = Schema.String.check(
  Schema.isPattern(instant, { expected: "a time as 2026-11-20T12:00:00Z" }),
  Schema.makeFilter<string>((text) => !Number.isNaN(Date.parse(text)) || "no such time"),
).pipe(
  Schema.decodeTo(Schema.Int, {
    decode: SchemaGetter.transform((text: string) => Date.parse(text)),
    encode: SchemaGetter.transform((ms: number) => DateTime.formatIso(DateTime.makeUnsafe(ms))),
  }),
)

const digits = (pattern: RegExp, expected: string) =>
  Schema.String.check(Schema.isPattern(pattern, { expected })).pipe(
    Schema.decodeTo(Schema.Int, {
      decode: SchemaGetter.transform((text: string) => Number(text)),
      encode: SchemaGetter.transform((number: number) => String(number)),
    }),
  )

/** A place in the log as a query has it; 0 is before the first commit. */
export const PositionText = digits(/^\d{1,15}$/, "a position")

export const PageLimit = digits(/^\d{1,4}$/, `1 to ${page_limit_max}`).check(
  Schema.isBetween({ minimum: 1, maximum: page_limit_max }),
)

export const Order = Schema.Literals(["asc", "desc"])

const Text = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(filter_chars_max))

/** Each narrows the answer; none is all events. `from` counts in, `to` does not. */
export const AuditFilters = {
  from: Schema.optionalKey(InstantMs),
  to: Schema.optionalKey(InstantMs),
  service: Schema.optionalKey(Token),
  aggregate: Schema.optionalKey(Token),
  type: Schema.optionalKey(Token),
  actor: Schema.optionalKey(Text),
  subject: Schema.optionalKey(Text),
  request_id: Schema.optionalKey(Text),
  correlation_id: Schema.optionalKey(Text),
} as const
const Filters = Schema.Struct(AuditFilters)
export type AuditFilters = typeof Filters.Type

/** `<position>.<index>` of the last event of the page before. */
export const AuditMarker = Schema.String.check(
  Schema.isPattern(/^\d{1,11}\.\d{1,5}$/, { expected: "the next_marker of an answer" }),
)

export const AuditQuery = {
  ...AuditFilters,
  order: Schema.optionalKey(Order),
  limit: Schema.optionalKey(PageLimit),
  marker: Schema.optionalKey(AuditMarker),
} as const

/** A kind of aggregate, also with its service before it, also with an id after it. */
export const PartName = Schema.String.check(
  Schema.isPattern(/^[\w-]+(\.[\w-]+){0,2}$/, { expected: "aggregate, or service.aggregate.id" }),
  Schema.isMaxLength(filter_chars_max),
)

/** What of the log is exported. `since` counts in, `until` does not. */
export const ExportQuery = {
  since: Schema.optionalKey(InstantMs),
  until: Schema.optionalKey(InstantMs),
  service: Schema.optionalKey(Token),
  aggregate: Schema.optionalKey(PartName),
} as const

/** One event of the log, with all that is known of how it came about. */
export const AuditEvent = Schema.Struct({
  /** The commit's place in the log, and the event's in the commit, from 0. */
  position: Schema.Int,
  index: Schema.Int,
  /** RFC 3339 in UTC. */
  at: Schema.String,
  service: Schema.String,
  aggregate: Schema.String,
  /** The aggregate's id. */
  id: Schema.String,
  /** What it happened to: the aggregate's id, or something finer that the event names. */
  subject: Schema.String,
  type: Schema.String,
  actor: Schema.String,
  request_id: Schema.optionalKey(Schema.String),
  correlation_id: Schema.optionalKey(Schema.String),
  /** Position of the commit that made a process ask for this one. */
  cause: Schema.optionalKey(Schema.String),
  data: Schema.Json,
})
export type AuditEvent = typeof AuditEvent.Type

export const AuditPage = Schema.Struct({
  events: Schema.Array(AuditEvent),
  /** Absent on the last page. */
  next_marker: Schema.optionalKey(Schema.String),
  /** The answer holds every event up to here. */
  position: Schema.Int,
})
export type AuditPage = typeof AuditPage.Type

export const SnapshotThen = Schema.Struct({
  machine: Schema.Int,
  value: Schema.Json,
  context: Schema.Json,
})

/** A commit as the log holds it, at its place. */
export const AuditCommit = Schema.Struct({
  position: Schema.Int,
  at: Schema.String,
  actor: Schema.String,
  request_id: Schema.optionalKey(Schema.String),
  correlation_id: Schema.optionalKey(Schema.String),
  cause: Schema.optionalKey(Schema.String),
  events: Schema.Array(Schema.Json),
  /** The aggregate's state after these events. */
  snapshot: SnapshotThen,
  command_id: Schema.String,
  prev: Schema.String,
  hash: Schema.String,
})
export type AuditCommit = typeof AuditCommit.Type

const aggregate = { service: Schema.String, aggregate: Schema.String, id: Schema.String } as const

/** An aggregate's commits, oldest first. */
export const AuditHistory = Schema.Struct({
  ...aggregate,
  commits: Schema.Array(AuditCommit),
  /** Position of the page's last commit; absent on the last page. */
  next_marker: Schema.optionalKey(Schema.String),
})
export type AuditHistory = typeof AuditHistory.Type

/** An aggregate as it was, and the commit that made it so. */
export const AuditState = Schema.Struct({
  ...aggregate,
  position: Schema.Int,
  at: Schema.String,
  actor: Schema.String,
  state: SnapshotThen,
})
export type AuditState = typeof AuditState.Type

/** The key by which heads of this log are signed. */
export const AuditKey = Schema.Struct({
  /** The log's name, which heads begin with. */
  name: Schema.String,
  /** The key as verifiers of signed notes take it: name, id and key. */
  verifier: Schema.String,
  /** The same key in PEM. */
  public_key: Schema.String,
})
export type AuditKey = typeof AuditKey.Type

/** The newest sealed head of the log. */
export const AuditHead = Schema.Struct({
  /** Commits in it, from the first on. */
  size: Schema.Int,
  /** The signed note. */
  head: Schema.String,
  key: Schema.String,
})

/** How large the log is. */
export const LogFigures = Schema.Struct({
  /** 1 for the first. */
  generation: Schema.Int,
  /** The last position. */
  position: Schema.Int,
  aggregates: Schema.Int,
  /** Of the newest generation, as it is stored. */
  bytes: Schema.Int,
  /** Null where no limit is known. */
  limit_bytes: Schema.NullOr(Schema.Int),
  /** From 0 to 1. */
  used_share: Schema.NullOr(Schema.Number),
})
export type LogFigures = typeof LogFigures.Type

/** The last line of an export. */
export interface ExportManifest {
  readonly manifest: 1
  readonly part: string
  /** Where the log ended when the export began. */
  readonly position: number
  /** Commits that are told, and the first and last of their positions. */
  readonly count: number
  readonly first: number | null
  readonly last: number | null
  /** The last commit of each aggregate; of the last 1000 that changed, where there are more. */
  readonly heads: ReadonlyArray<{
    readonly stream: string
    readonly position: number
    readonly hash: string
  }>
  readonly heads_complete: boolean
  /** The last 1000 checkpoints since the first commit that is told: their trees. */
  readonly checkpoints: ReadonlyArray<{
    readonly position: number
    readonly size: number
    readonly root: string
  }>
  /** The newest signed head and its key; absent while nothing is sealed. */
  readonly head?: string
  readonly key?: string
  /** SHA-256 (hex) of all bytes before this line. */
  readonly sha256: string
}

/** That an aggregate's commits are in the log. Hashes are hex. */
export interface AuditProof {
  readonly format: "almanac-audit-proof-1"
  readonly aggregate: string
  /** From its first on; `path` leads to the checkpoint's root. */
  readonly commits: ReadonlyArray<{
    readonly position: number
    /** The stored text; empty where it cannot be read as a commit. */
    readonly commit: string
    /** The stored bytes in base64, where they are no commit. */
    readonly unreadable?: string
    readonly path: ReadonlyArray<string>
  }>
  /** The tree of the first checkpoint that covers them. */
  readonly checkpoint: { readonly size: number; readonly root: string }
  /** From the checkpoint's tree to the head's. */
  readonly consistency: ReadonlyArray<string>
  /** From the head that the asker had kept to this one. */
  readonly kept?: { readonly size: number; readonly path: ReadonlyArray<string> }
  readonly head: string
  readonly key: string
}

const fault_kinds = [
  "gap",
  "order",
  "chain",
  "snapshot",
  "commands",
  "checkpoint",
  "copy",
  "loss",
  "unreadable",
] as const

/** Something in the log that is not as it must be. */
export interface Fault {
  readonly kind: (typeof fault_kinds)[number]
  readonly position: number
  readonly stream: string
  readonly expected: string
  readonly found: string
}
