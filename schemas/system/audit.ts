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

/** A pattern cannot say which days and hours exist. */
export const documented_instant = { documentedAs: { type: "string", format: "date-time" } }

/** RFC 3339, decoded to epoch milliseconds. */
export const InstantMs = Schema.String.check(
  Schema.isPattern(instant, { expected: "a time such as 2026-11-20T12:00:00Z" }),
  Schema.makeFilter<string>(
    (text) => !Number.isNaN(Date.parse(text)) || "Expected an existing date and time",
  ),
)
  .pipe(
    Schema.decodeTo(Schema.Int, {
      decode: SchemaGetter.transform((text: string) => Date.parse(text)),
      encode: SchemaGetter.transform((ms: number) => DateTime.formatIso(DateTime.makeUnsafe(ms))),
    }),
  )
  .annotate(documented_instant)

const digits = (pattern: RegExp, expected: string) =>
  Schema.String.check(Schema.isPattern(pattern, { expected })).pipe(
    Schema.decodeTo(Schema.Int, {
      decode: SchemaGetter.transform((text: string) => Number(text)),
      encode: SchemaGetter.transform((number: number) => String(number)),
    }),
  )

/** A log position in a query; 0 is before the first commit. */
export const PositionText = digits(/^\d{1,15}$/u, "a position").annotate({
  documentedAs: { type: "integer", minimum: 0, maximum: 999_999_999_999_999 },
})

export const PageLimit = digits(/^\d{1,4}$/u, `1 to ${page_limit_max}`)
  .check(Schema.isBetween({ minimum: 1, maximum: page_limit_max }))
  .annotate({
    description: `Maximum number of items on the page: 1 to ${page_limit_max}.`,
    documentedAs: {
      type: "integer",
      minimum: 1,
      maximum: page_limit_max,
      default: page_limit,
    },
  })

export const Order = Schema.Literals(["asc", "desc"])

const Text = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(filter_chars_max))

/**
 * Filters of the audit log; without any, all events match. `from` is inclusive, `to` is exclusive.
 */
export const AuditFilters = {
  from: Schema.optionalKey(InstantMs).annotateKey({
    description: "Only events at this time or later, in RFC 3339.",
  }),
  to: Schema.optionalKey(InstantMs).annotateKey({
    description: "Only events before this time, in RFC 3339.",
  }),
  service: Schema.optionalKey(Token).annotateKey({
    description: "Only events of this service, such as `share-protection`.",
  }),
  aggregate: Schema.optionalKey(Token).annotateKey({
    description: "Only events of this kind of aggregate, such as `target`.",
  }),
  type: Schema.optionalKey(Token).annotateKey({
    description: "Only events of this type, such as `TargetCreated`.",
  }),
  actor: Schema.optionalKey(Text).annotateKey({
    description: "Only events that this principal or process caused, such as `user:<id>`.",
  }),
  subject: Schema.optionalKey(Text).annotateKey({
    description: "Only events about this resource, by its id.",
  }),
  request_id: Schema.optionalKey(Text).annotateKey({
    description: "Only events of the request with this `X-Request-Id`.",
  }),
  correlation_id: Schema.optionalKey(Text).annotateKey({
    description: "Only events of requests with this `X-Correlation-Id`.",
  }),
} as const
const Filters = Schema.Struct(AuditFilters)
export type AuditFilters = typeof Filters.Type

/** `<position>.<index>` of the previous page's last event. */
export const AuditMarker = Schema.String.check(
  Schema.isPattern(/^\d{1,11}\.\d{1,5}$/u, { expected: "the next_marker of a response" }),
)

export const AuditQuery = {
  ...AuditFilters,
  order: Schema.optionalKey(Order).annotateKey({
    description: "`desc`, the default: newest first. `asc`: oldest first.",
  }),
  limit: Schema.optionalKey(PageLimit).annotateKey({
    description: "Maximum number of events on the page.",
  }),
  marker: Schema.optionalKey(AuditMarker).annotateKey({
    description: "The `next_marker` of the previous page.",
  }),
} as const

/** A kind of aggregate, optionally with its service before it and an id after it. */
export const PartName = Schema.String.check(
  Schema.isPattern(/^[\w-]+(\.[\w-]+){0,2}$/u, { expected: "aggregate, or service.aggregate.id" }),
  Schema.isMaxLength(filter_chars_max),
)

/** The exported part of the log. `since` is inclusive, `until` is exclusive. */
export const ExportQuery = {
  since: Schema.optionalKey(InstantMs).annotateKey({
    description: "Only commits at this time or later, in RFC 3339.",
  }),
  until: Schema.optionalKey(InstantMs).annotateKey({
    description: "Only commits before this time, in RFC 3339.",
  }),
  service: Schema.optionalKey(Token).annotateKey({
    description: "Only commits of this service.",
  }),
  aggregate: Schema.optionalKey(PartName).annotateKey({
    description:
      "With `service`, only commits of this kind of aggregate. Alone, only those of one " +
      "aggregate: `<service>.<aggregate>.<id>`.",
  }),
} as const

/** One event of the log with its origin. */
export const AuditEvent = Schema.Struct({
  position: Schema.Int.annotateKey({ description: "Position of the commit in the log." }),
  index: Schema.Int.annotateKey({ description: "Index of the event in the commit, from 0." }),
  at: Schema.String.annotateKey({ description: "Time of the commit, RFC 3339 in UTC." }),
  service: Schema.String.annotateKey({ description: "The service of the aggregate." }),
  aggregate: Schema.String.annotateKey({ description: "The kind of the aggregate." }),
  id: Schema.String.annotateKey({ description: "The id of the aggregate." }),
  subject: Schema.String.annotateKey({
    description:
      "The id of the affected resource: the aggregate, or a part of it that the event names.",
  }),
  type: Schema.String.annotateKey({ description: "The type of the event, in the past tense." }),
  actor: Schema.String.annotateKey({
    description:
      "The principal or process that caused it, such as `user:<id>` or `process:<name>`.",
  }),
  request_id: Schema.optionalKey(Schema.String).annotateKey({
    description: "The `X-Request-Id` of the request that caused it.",
  }),
  correlation_id: Schema.optionalKey(Schema.String).annotateKey({
    description: "The `X-Correlation-Id` of the request that caused it.",
  }),
  cause: Schema.optionalKey(Schema.String).annotateKey({
    description: "Position of the commit that made a process send this command.",
  }),
  data: Schema.Json.annotateKey({
    description: "The fields of the event. They contain no secrets.",
  }),
}).annotate({ identifier: "AuditEvent" })
export type AuditEvent = typeof AuditEvent.Type

export const AuditPage = Schema.Struct({
  events: Schema.Array(AuditEvent).annotateKey({ description: "The events of this page." }),
  next_marker: Schema.optionalKey(Schema.String).annotateKey({
    description: "The `marker` of the next page. Absent on the last page.",
  }),
  position: Schema.Int.annotateKey({
    description: "The log position up to which the page is complete.",
  }),
}).annotate({ identifier: "AuditPage" })
export type AuditPage = typeof AuditPage.Type

export const SnapshotThen = Schema.Struct({
  machine: Schema.Int.annotateKey({ description: "The version of the state chart." }),
  value: Schema.Json.annotateKey({
    description: "The state: a name, or an object of names for nested states.",
  }),
  context: Schema.Json.annotateKey({ description: "The data that the chart keeps." }),
}).annotate({ identifier: "AggregateState" })

/** A commit and its position in the log. */
export const AuditCommit = Schema.Struct({
  position: Schema.Int.annotateKey({ description: "Position of the commit in the log." }),
  at: Schema.String.annotateKey({ description: "Time of the commit, RFC 3339 in UTC." }),
  actor: Schema.String.annotateKey({
    description:
      "The principal or process that caused it, such as `user:<id>` or `process:<name>`.",
  }),
  request_id: Schema.optionalKey(Schema.String).annotateKey({
    description: "The `X-Request-Id` of the request that caused it.",
  }),
  correlation_id: Schema.optionalKey(Schema.String).annotateKey({
    description: "The `X-Correlation-Id` of the request that caused it.",
  }),
  cause: Schema.optionalKey(Schema.String).annotateKey({
    description: "Position of the commit that made a process send this command.",
  }),
  events: Schema.Array(Schema.Json).annotateKey({
    description: "The events of the commit, in order.",
  }),
  snapshot: SnapshotThen.annotateKey({
    description: "The state of the aggregate after these events.",
  }),
  command_id: Schema.String.annotateKey({
    description: "The id of the command, the same for each retry.",
  }),
  prev: Schema.String.annotateKey({
    description: "The hash of the aggregate's previous commit, in hex.",
  }),
  hash: Schema.String.annotateKey({ description: "The hash of this commit, in hex." }),
}).annotate({ identifier: "AuditCommit" })
export type AuditCommit = typeof AuditCommit.Type

const aggregate = {
  service: Schema.String.annotate({ description: "The service of the aggregate." }),
  aggregate: Schema.String.annotate({ description: "The kind of the aggregate." }),
  id: Schema.String.annotate({ description: "The id of the aggregate." }),
} as const

/** The commits of an aggregate, oldest first. */
export const AuditHistory = Schema.Struct({
  ...aggregate,
  commits: Schema.Array(AuditCommit).annotateKey({
    description: "The commits of the aggregate, oldest first.",
  }),
  next_marker: Schema.optionalKey(Schema.String).annotateKey({
    description: "The `marker` of the next page. Absent on the last page.",
  }),
}).annotate({ identifier: "AuditHistory" })
export type AuditHistory = typeof AuditHistory.Type

/** A past state of an aggregate, and the commit that produced it. */
export const AuditState = Schema.Struct({
  ...aggregate,
  position: Schema.Int.annotateKey({
    description: "Position of the commit that led to this state.",
  }),
  at: Schema.String.annotateKey({ description: "Time of the commit, RFC 3339 in UTC." }),
  actor: Schema.String.annotateKey({
    description:
      "The principal or process that caused it, such as `user:<id>` or `process:<name>`.",
  }),
  state: SnapshotThen.annotateKey({ description: "The state of the aggregate after that commit." }),
}).annotate({ identifier: "AuditState" })
export type AuditState = typeof AuditState.Type

/** The key that signs heads of this log. */
export const AuditKey = Schema.Struct({
  name: Schema.String.annotateKey({
    description: "The name of the log, with which each head begins.",
  }),
  verifier: Schema.String.annotateKey({
    description: "The public key in the format of signed note verifiers: name, id and key.",
  }),
  public_key: Schema.String.annotateKey({ description: "The same key in PEM." }),
}).annotate({ identifier: "AuditKey" })
export type AuditKey = typeof AuditKey.Type

/** The newest sealed head of the log. */
export const AuditHead = Schema.Struct({
  size: Schema.Int.annotateKey({
    description: "Number of commits that the head covers, from the first.",
  }),
  head: Schema.String.annotateKey({ description: "The signed note." }),
  key: Schema.String.annotateKey({ description: "The verifier of the key that signed it." }),
}).annotate({ identifier: "AuditHead" })

/** Size of the log. */
export const LogFigures = Schema.Struct({
  generation: Schema.Int.annotateKey({
    description: "The generation of the log: 1 for the first.",
  }),
  position: Schema.Int.annotateKey({ description: "Position of the last commit." }),
  aggregates: Schema.Int.annotateKey({ description: "Number of aggregates in the log." }),
  bytes: Schema.Int.annotateKey({ description: "Bytes that the newest generation stores." }),
  limit_bytes: Schema.NullOr(Schema.Int).annotateKey({
    description: "The limit of the log in bytes. Null if it has none.",
  }),
  used_share: Schema.NullOr(Schema.Number).annotateKey({
    description: "The share of the limit that is used, 0 to 1. Null without a limit.",
  }),
}).annotate({ identifier: "LogSize" })
export type LogFigures = typeof LogFigures.Type

/** Why a position is rejected that the log, which ends at `last`, has not reached. */
export const unreachedText = (position: number, last: number) =>
  `Position ${position} does not exist yet: the log ends at position ${last}.`

/** Why a future time is rejected; both in epoch milliseconds. */
export const futureText = (at: number, now: number) => {
  const [time, present] = [at, now].map((ms) => DateTime.formatIso(DateTime.makeUnsafe(ms)))
  return `${time} is in the future: it is ${present} now.`
}

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
