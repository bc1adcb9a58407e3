/**
 * Every event of the log as a row, so that operators can search for actors, actions and times.
 *
 * Source: DECISIONS "audit log for operators".
 */
import { DateTime, Effect, Schema } from "effect"
import type { Kysely } from "kysely"
import { isPartOf, type Part, parseStream, type Recorded } from "#events/log.ts"
import type { Place, Projection } from "#projections/projection.ts"
import { statement } from "#projections/statement.ts"
import { type Message, typesOf } from "#schemas/message.ts"
import type { AuditEvent, AuditFilters, AuditPage } from "#schemas/system/audit.ts"

interface EventRow {
  /** `position * events_max + index`: the log's order as one number. */
  readonly place: number
  readonly at: string
  readonly at_ms: number
  readonly service: string
  readonly aggregate: string
  readonly id: string
  readonly subject: string
  readonly type: string
  readonly actor: string
  readonly request_id: string | null
  readonly correlation_id: string | null
  readonly cause: string | null
  /** JSON without the type. */
  readonly data: string
}

/** Range of places in an hour: narrows a search by time, because rows are in the log's order. */
interface HourRow {
  readonly hour: number
  readonly first: number
  readonly last: number
}

export interface AuditTables {
  readonly system_audit_event: EventRow
  readonly system_audit_hour: HourRow
}

/** More events than fit in a commit: commit_bytes_max divided by `{"type":"A"},`, the shortest. */
const events_max = 2 ** 16

const hour_ms = 3_600_000

/** Details in an event that its commit lacks. */
export interface Known {
  /** RFC 3339 in UTC. */
  readonly at?: string
  readonly subject?: string
  readonly actor?: string
  readonly request_id?: string
  readonly correlation_id?: string
}

/** For aggregates that record the actions of others, such as a journal. */
export interface Detail {
  readonly part: Part
  readonly know: (event: Message) => Known
}

/** Declares a detail over decoded events. */
export const detail = <Event>({
  part,
  event,
  know,
}: {
  readonly part: Part
  readonly event: Schema.ConstraintCodec<Event, unknown>
  readonly know: (event: Event) => Known
}): Detail => {
  const decode = Schema.decodeUnknownSync(event)
  const types = typesOf(event)
  // Of a newer release's events only the commit's metadata is known.
  return { part, know: (message) => (types.has(message.type) ? know(decode(message)) : {}) }
}

type Audited = Pick<Recorded, "position" | "stream" | "commit">

/** Audit view of each event; metadata of the commit is looked up once for all of them. */
const auditOf = (details: ReadonlyArray<Detail>, { position, stream, commit }: Audited) => {
  const { name, id } = parseStream(stream)
  const [service = "", aggregate = ""] = name.split(".")
  const { at, actor, request_id, correlation_id, cause } = commit
  const know = details.find(({ part }) => isPartOf(part, stream))?.know
  const metadata = {
    ...(request_id === undefined ? {} : { request_id }),
    ...(correlation_id === undefined ? {} : { correlation_id }),
    ...(cause === undefined ? {} : { cause }),
  }
  return (event: Message, index: number): AuditEvent => {
    const { type, ...data } = event
    return {
      position,
      index,
      at,
      service,
      aggregate,
      id,
      subject: id,
      type,
      actor,
      ...metadata,
      ...know?.(event),
      // The log's own JSON.
      data: data as Schema.Json,
    }
  }
}

/** A commit's events as the audit log shows them. */
export const auditedEvents = (
  details: ReadonlyArray<Detail>,
  recorded: Recorded,
): ReadonlyArray<AuditEvent> => recorded.commit.events.map(auditOf(details, recorded))

/** Nearly all times are explicit UTC; DateTime parses or rejects any other. */
const msOf = (at: string) => {
  const at_ms = at.endsWith("Z") ? Date.parse(at) : Number.NaN
  return Number.isNaN(at_ms) ? DateTime.toEpochMillis(DateTime.makeUnsafe(at)) : at_ms
}

/** Whether an event matches a filter. */
export const matchesFilters = ({ from, to, ...equals }: AuditFilters, event: AuditEvent) => {
  if (from !== undefined && msOf(event.at) < from) return false
  if (to !== undefined && msOf(event.at) >= to) return false
  const fields = new Map<string, unknown>(Object.entries(event))
  return Object.entries(equals).every(([name, value]) => fields.get(name) === value)
}

const write = statement<AuditTables>()
const insert = write<EventRow>((db, row) =>
  db.insertInto("system_audit_event").values({
    place: row.place,
    at: row.at,
    at_ms: row.at_ms,
    service: row.service,
    id: row.id,
    aggregate: row.aggregate,
    subject: row.subject,
    type: row.type,
    actor: row.actor,
    request_id: row.request_id,
    correlation_id: row.correlation_id,
    cause: row.cause,
    data: row.data,
  }),
)
const extend = write<HourRow>((db, { hour, first, last }) =>
  db
    .insertInto("system_audit_hour")
    .values({ hour, first, last })
    .onConflict((same) => same.column("hour").doUpdateSet({ last })),
)

/** Columns used by filters; SQLite keeps each index in the log's order. */
const indexed = [
  "service",
  "aggregate",
  "type",
  "actor",
  "subject",
  "request_id",
  "correlation_id",
] as const

/** The rows of all events. Events are stored as they are in the log, without schemas. */
export const audit = (details: ReadonlyArray<Detail>): Projection<AuditTables> => ({
  part: "",
  create: ({ schema }) => [
    schema
      .createTable("system_audit_event")
      .addColumn("place", "integer", (column) => column.primaryKey())
      .addColumn("at", "text", (column) => column.notNull())
      .addColumn("at_ms", "integer", (column) => column.notNull())
      .addColumn("service", "text", (column) => column.notNull())
      .addColumn("aggregate", "text", (column) => column.notNull())
      .addColumn("id", "text", (column) => column.notNull())
      .addColumn("subject", "text", (column) => column.notNull())
      .addColumn("type", "text", (column) => column.notNull())
      .addColumn("actor", "text", (column) => column.notNull())
      .addColumn("request_id", "text")
      .addColumn("correlation_id", "text")
      .addColumn("cause", "text")
      .addColumn("data", "text", (column) => column.notNull()),
    schema
      .createTable("system_audit_hour")
      .addColumn("hour", "integer", (column) => column.primaryKey())
      .addColumn("first", "integer", (column) => column.notNull())
      .addColumn("last", "integer", (column) => column.notNull()),
    ...indexed.map((column) =>
      schema.createIndex(`system_audit_${column}`).on("system_audit_event").column(column),
    ),
  ],
  project: (event, place) => rowsOf(details, [event], place),
  projectSome: (events, place) => rowsOf(details, events, place),
})

/** A row for each event, and one for each hour with events. */
const rowsOf = (details: ReadonlyArray<Detail>, events: ReadonlyArray<Message>, from: Place) => {
  const audited = auditOf(details, from)
  const hours = new Map<number, HourRow>()
  const rows = events.map((event, i) => {
    const { position, index, data, ...row } = audited(event, from.index + i)
    const { request_id = null, correlation_id = null, cause = null } = row
    const place = position * events_max + index
    const at_ms = msOf(row.at)
    const hour = Math.floor(at_ms / hour_ms)
    hours.set(hour, { hour, first: hours.get(hour)?.first ?? place, last: place })
    const known = { request_id, correlation_id, cause, data: JSON.stringify(data) }
    return insert({ ...row, place, at_ms, ...known })
  })
  return [...rows, ...[...hours.values()].map(extend)]
}

const placeOf = (marker: string) => {
  const [position = 0, index = 0] = marker.split(".").map(Number)
  return position * events_max + index
}

const toAuditEvent = ({ place, at_ms: _, data, ...row }: EventRow): AuditEvent => {
  const present = Object.entries(row).filter(([, value]) => value !== null)
  return {
    position: Math.floor(place / events_max),
    index: place % events_max,
    // A non-null value has the row's own name and type.
    ...(Object.fromEntries(present) as Omit<AuditEvent, "position" | "index" | "data">),
    data: JSON.parse(data),
  }
}

export interface Page {
  readonly order: "asc" | "desc"
  readonly limit: number
  readonly marker?: string | undefined
}

/** The matching events, in the log's order or in reverse. */
const select = (
  db: Kysely<AuditTables>,
  { from, to, ...equals }: AuditFilters,
  { order, limit, marker }: Page,
) => {
  const hours = db.selectFrom("system_audit_hour")
  let query = db.selectFrom("system_audit_event").selectAll().orderBy("place", order).limit(limit)
  if (marker !== undefined) {
    query = query.where("place", order === "asc" ? ">" : "<", placeOf(marker))
  }
  if (from !== undefined) {
    const first = hours
      .where("hour", ">=", Math.floor(from / hour_ms))
      .select(({ fn }) => fn.min("first").as("place"))
    query = query.where("at_ms", ">=", from).where("place", ">=", first)
  }
  if (to !== undefined) {
    const last = hours
      .where("hour", "<=", Math.floor(to / hour_ms))
      .select(({ fn }) => fn.max("last").as("place"))
    query = query.where("at_ms", "<", to).where("place", "<=", last)
  }
  for (const name of indexed) {
    const value = equals[name]
    if (value !== undefined) query = query.where(name, "=", value)
  }
  return query
}

/**
 * A page of the matching events. `db` should have a thread of its own: filters may match many rows.
 */
export const listEvents = (
  db: Kysely<AuditTables>,
  filters: AuditFilters,
  page: Page,
): Effect.Effect<Omit<AuditPage, "position">> =>
  Effect.promise(async () => {
    const { limit } = page
    const rows = await select(db, filters, { ...page, limit: limit + 1 }).execute()
    const events = rows.slice(0, limit).map(toAuditEvent)
    const last = events.at(-1)
    if (rows.length <= limit || last === undefined) return { events }
    return { events, next_marker: `${last.position}.${last.index}` }
  })
