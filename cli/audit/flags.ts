/** The filters of the audit as flags. */
import { Option, type Schema } from "effect"
import { Flag } from "effect/cli"
import { type AuditFilters, AuditQuery } from "#schemas/system/audit.ts"

const text = (name: string, what: string, schema: Schema.ConstraintCodec<string, string>) =>
  Flag.String(name).pipe(Flag.withDescription(what), Flag.withSchema(schema), Flag.optional)

/** A time flag: RFC 3339, 2026-11-20T12:00:00Z for example; parsed to epoch milliseconds. */
export const time = (name: string, what: string) =>
  Flag.String(name).pipe(
    Flag.withDescription(`${what} (2026-11-20T12:00:00Z)`),
    Flag.withSchema(AuditQuery.from.schema),
    Flag.optional,
  )

/** Filters on events, as in GET /v1/admin/audit. */
export const what = {
  service: text("service", "Only events of this service", AuditQuery.service.schema),
  aggregate: text(
    "aggregate",
    "Only events of this kind of aggregate",
    AuditQuery.aggregate.schema,
  ),
  type: text("type", "Only events of this type (NodeJoined)", AuditQuery.type.schema),
  actor: text(
    "actor",
    "Only events that this principal or process caused",
    AuditQuery.actor.schema,
  ),
  subject: text("subject", "Only events of this subject", AuditQuery.subject.schema),
  request_id: text("request-id", "Only events of this request", AuditQuery.request_id.schema),
  correlation_id: text(
    "correlation-id",
    "Only events with this correlation ID",
    AuditQuery.correlation_id.schema,
  ),
}

export const when = {
  from: time("from", "Start time"),
  to: time("to", "End time, exclusive"),
}

export const json = Flag.Boolean("json").pipe(
  Flag.withDescription("Print one JSON object per line"),
  Flag.withDefault(false),
)

type Given = { readonly [Name in keyof AuditFilters]-?: Option.Option<unknown> }

/** The filters that were given. */
export const filtersOf = (given: Partial<Given>): AuditFilters =>
  Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) =>
      Option.isSome(value) ? [[name, value.value]] : [],
    ),
  )
