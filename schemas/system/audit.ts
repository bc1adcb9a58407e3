/**
 * The audit API: operators' queries of the log, and their responses.
 *
 * Source: DECISIONS "audit log for operators".
 */
import { DateTime, Schema, SchemaGetter } from "effect"
import { Token } from "#schemas/message.ts"

/** Default and maximum number of events on a page. */
export const page_limit = 100
export const page_limit_max = 1000

/** Maximum length of a filter's text: that of an actor's name. */
const filter_chars_max = 256

const instant = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:[Zz]|[+-]\d{2}:\d{2})$/u

/** RFC 3339, decoded to epoch milliseconds. */
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

/** A log position in a query; 0 is before the first commit. */
export const PositionText = digits(/^\d{1,15}$/u, "a position")

export const PageLimit = digits(/^\d{1,4}$/u, `1 to ${page_limit_max}`).check(
  Schema.isBetween({ minimum: 1, maximum: page_limit_max }),
)

export const Order = Schema.Literals(["asc", "desc"])

const Text = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(filter_chars_max))

/**
 * Filters of the audit log; without any, all events match. `from` is inclusive, `to` is exclusive.
 */
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

/** `<position>.<index>` of the previous page's last event. */
export const AuditMarker = Schema.String.check(
  Schema.isPattern(/^\d{1,11}\.\d{1,5}$/u, { expected: "the next_marker of an answer" }),
)

export const AuditQuery = {
  ...AuditFilters,
  order: Schema.optionalKey(Order),
  limit: Schema.optionalKey(PageLimit),
  marker: Schema.optionalKey(AuditMarker),
} as const

/** A kind of aggregate, optionally with its service before it and an id after it. */
export const PartName = Schema.String.check(
  Schema.isPattern(/^[\w-]+(\.[\w-]+){0,2}$/u, { expected: "aggregate, or service.aggregate.id" }),
  Schema.isMaxLength(filter_chars_max),
)

/** The exported part of the log. `since` is inclusive, `until` is exclusive. */
export const ExportQuery = {
  since: Schema.optionalKey(InstantMs),
  until: Schema.optionalKey(InstantMs),
  service: Schema.optionalKey(Token),
  aggregate: Schema.optionalKey(PartName),
} as const

/** One event of the log with its origin. */
export const AuditEvent = Schema.Struct({
  /** The commit's position in the log, and the event's index in the commit, from 0. */
  position: Schema.Int,
  index: Schema.Int,
  /** RFC 3339 in UTC. */
  at: Schema.String,
  service: Schema.String,
  aggregate: Schema.String,
  /** The aggregate's id. */
  id: Schema.String,
  /** The affected resource: the aggregate's id, or a finer unit that the event names. */
  subject: Schema.String,
  type: Schema.String,
  actor: Schema.String,
  request_id: Schema.optionalKey(Schema.String),
  correlation_id: Schema.optionalKey(Schema.String),
  /** Position of the commit that caused a process to send this command. */
  cause: Schema.optionalKey(Schema.String),
  data: Schema.Json,
})
export type AuditEvent = typeof AuditEvent.Type

export const AuditPage = Schema.Struct({
  events: Schema.Array(AuditEvent),
  /** Absent on the last page. */
  next_marker: Schema.optionalKey(Schema.String),
  /** The response includes every event up to here. */
  position: Schema.Int,
})
export type AuditPage = typeof AuditPage.Type

export const SnapshotThen = Schema.Struct({
  machine: Schema.Int,
  value: Schema.Json,
  context: Schema.Json,
})

/** A commit and its position in the log. */
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

/** The commits of an aggregate, oldest first. */
export const AuditHistory = Schema.Struct({
  ...aggregate,
  commits: Schema.Array(AuditCommit),
  /** Position of the page's last commit; absent on the last page. */
  next_marker: Schema.optionalKey(Schema.String),
})
export type AuditHistory = typeof AuditHistory.Type

/** A past state of an aggregate, and the commit that produced it. */
export const AuditState = Schema.Struct({
  ...aggregate,
  position: Schema.Int,
  at: Schema.String,
  actor: Schema.String,
  state: SnapshotThen,
})
export type AuditState = typeof AuditState.Type

/** The key that signs heads of this log. */
export const AuditKey = Schema.Struct({
  /** The log's name, with which heads begin. */
  name: Schema.String,
  /** The key in the format of signed note verifiers: name, id and key. */
  verifier: Schema.String,
  /** The same key in PEM. */
  public_key: Schema.String,
})
export type AuditKey = typeof AuditKey.Type

/** The newest sealed head of the log. */
export const AuditHead = Schema.Struct({
  /** Number of commits that it covers, from the first. */
  size: Schema.Int,
  /** The signed note. */
  head: Schema.String,
  key: Schema.String,
})

/** Size of the log. */
export const LogFigures = Schema.Struct({
  /** 1 for the first. */
  generation: Schema.Int,
  /** The last position. */
  position: Schema.Int,
  aggregates: Schema.Int,
  /** Stored bytes of the newest generation. */
  bytes: Schema.Int,
  /** Null if no limit is known. */
  limit_bytes: Schema.NullOr(Schema.Int),
  /** From 0 to 1. */
  used_share: Schema.NullOr(Schema.Number),
})
export type LogFigures = typeof LogFigures.Type

/** The last line of an export. */
export interface ExportManifest {
  readonly manifest: 1
  readonly part: string
  /** The log's last position when the export began. */
  readonly position: number
  /** Number of exported commits, and the first and last of their positions. */
  readonly count: number
  readonly first: number | null
  readonly last: number | null
  /** The last commit of each aggregate, or of the 1000 most recently changed ones. */
  readonly heads: ReadonlyArray<{
    readonly stream: string
    readonly position: number
    readonly hash: string
  }>
  readonly heads_complete: boolean
  /** The trees of the last 1000 checkpoints since the first exported commit. */
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

/** Proof that an aggregate's commits are in the log. Hashes are hex. */
export interface AuditProof {
  readonly format: "almanac-audit-proof-1"
  readonly aggregate: string
  /** All commits from the first; `path` leads to the checkpoint's root. */
  readonly commits: ReadonlyArray<{
    readonly position: number
    /** The stored text; empty for an unreadable commit. */
    readonly commit: string
    /** The stored bytes of an unreadable commit, in base64. */
    readonly unreadable?: string
    readonly path: ReadonlyArray<string>
  }>
  /** The tree of the first checkpoint that covers the commits. */
  readonly checkpoint: { readonly size: number; readonly root: string }
  /** From the checkpoint's tree to the head's. */
  readonly consistency: ReadonlyArray<string>
  /** From the head that the caller kept to this one. */
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

/** An inconsistency in the log. */
export interface Fault {
  readonly kind: (typeof fault_kinds)[number]
  readonly position: number
  readonly stream: string
  readonly expected: string
  readonly found: string
}
