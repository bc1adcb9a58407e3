/** `almanac audit list` and `almanac audit follow`: events by actor, type and time. */
import { Console, Effect, Option, Schema, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { filtersOf, json, what, when } from "#cli/audit/flags.ts"
import { requireReached } from "#cli/audit/log-end.ts"
import { unknownNames } from "#cli/audit/names.ts"
import { eventTable, liveTable } from "#cli/audit/table.ts"
import { callInstance, instance } from "#cli/instance.ts"
import { settings } from "#cli/root.ts"
import { Log } from "#events/log.ts"
import { auditedEvents, matchesFilters } from "#projections/system/audit.ts"
import {
  type AuditEvent,
  type AuditFilters,
  AuditPage,
  AuditQuery,
  page_limit,
  page_limit_max,
} from "#schemas/system/audit.ts"
import { details } from "#server/audit-details.ts"
import { attachedLogReadOnly } from "#server/session.ts"

const Query = Schema.Struct(AuditQuery)
type Query = typeof Query.Type

const encodeQuery = Schema.encodeSync(Query)
const Page = Schema.fromJsonString(AuditPage)

/** The URL path of a page. */
const pathOf = (query: Query) =>
  `/v1/admin/audit?${new URLSearchParams(Object.entries(encodeQuery(query)))}`

/** The matching events in a range of the log. */
const matching = (filters: AuditFilters) => {
  const matches = (event: AuditEvent) => matchesFilters(filters, event)
  return Stream.flatMap((recorded: Parameters<typeof auditedEvents>[1]) =>
    Stream.fromIterable(auditedEvents(details, recorded).filter(matches)),
  )
}

const markerOf = ({ position, index }: AuditEvent) => `${position}.${index}`

const isBefore = (one: AuditEvent, marker: string) => {
  const [position = 0, index = 0] = marker.split(".").map(Number)
  return one.position < position || (one.position === position && one.index < index)
}

/** Reads a page from the start of the log itself, for use without a running instance. */
export const listFromLog = Effect.fnUntraced(function* ({
  order,
  limit,
  marker,
  ...filters
}: Query) {
  const log = yield* Log
  const count = limit ?? page_limit
  const position = yield* log.head("")
  const events = log.read("").pipe(matching(filters))
  const events_read: Array<AuditEvent> = []
  if (order === "asc") {
    const after = events.pipe(
      Stream.filter((one) => marker === undefined || !isBefore(one, marker)),
      Stream.filter((one) => markerOf(one) !== marker),
      Stream.take(count + 1),
    )
    events_read.push(...(yield* Stream.runCollect(after)))
  } else {
    yield* Stream.runForEach(
      Stream.takeWhile(events, (one) => marker === undefined || isBefore(one, marker)),
      (event) => Effect.sync(() => events_read.push(event) > count + 1 && events_read.shift()),
    )
    events_read.reverse()
  }
  const page_events = events_read.slice(0, count)
  const last = page_events.at(-1)
  const more = events_read.length > count && last ? { next_marker: markerOf(last) } : {}
  return { events: page_events, ...more, position } satisfies AuditPage
})

/** Warns of unknown names, because a misspelt filter matches nothing. */
const warnUnknownNames = (filters: AuditFilters) =>
  Effect.forEach(unknownNames(filters), (line) => Console.error(line), { discard: true })

/** Prints a page. */
const printPage = ({ events, next_marker }: AuditPage, as_json: boolean) =>
  Effect.gen(function* () {
    if (as_json) {
      for (const event of events) yield* Console.log(JSON.stringify(event))
    } else yield* Console.log(events.length === 0 ? "No such events." : eventTable(events))
    if (next_marker !== undefined) yield* Console.error(`More exist: --marker ${next_marker}`)
  })

export const list = Command.make(
  "list",
  {
    ...what,
    ...when,
    order: Flag.Literals("order", ["asc", "desc"]).pipe(
      Flag.withDescription("Oldest first (asc) or newest first (desc)"),
      Flag.withDefault("desc" as const),
    ),
    limit: Flag.Int("limit").pipe(
      Flag.withDescription(`Maximum number of events, 1 to ${page_limit_max}`),
      Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: page_limit_max }))),
      Flag.withDefault(page_limit),
    ),
    marker: Flag.String("marker").pipe(
      Flag.withDescription("Continue after this marker, which the previous page printed"),
      Flag.withSchema(AuditQuery.marker.schema),
      Flag.optional,
    ),
    json,
  },
  Effect.fn(function* ({ order, limit, marker, json, ...given }) {
    const configured = yield* settings
    const filters = filtersOf(given)
    yield* warnUnknownNames(filters)
    const query: Query = {
      ...filters,
      order,
      limit,
      ...(Option.isSome(marker) ? { marker: marker.value } : {}),
    }
    const running = yield* instance(configured)
    const page =
      running === undefined
        ? yield* Effect.provide(listFromLog(query), attachedLogReadOnly(configured))
        : yield* Schema.decodeEffect(Page)(
            yield* callInstance(running, configured, "GET", pathOf(query)),
          )
    // A marker beyond the end belongs to another log; this log's newest events would be misleading.
    yield* requireReached(Number(Option.getOrElse(marker, () => "0").split(".", 1)), page.position)
    yield* printPage(page, json)
  }),
).pipe(
  Command.withDescription("List the events of the log, newest first: who did what, and when"),
  Command.withExamples([
    {
      command: "almanac audit list --actor token:blob --from 2026-11-20T00:00:00Z",
      description: "Events of the development token blob since midnight",
    },
    {
      command: "almanac audit list --subject almanac --order asc --json",
      description: "All events of the cluster almanac, as JSON",
    },
  ]),
)

/** Prints new events, one per line, until interrupted. */
export const followLog = Effect.fnUntraced(function* (filters: AuditFilters, as_json: boolean) {
  const log = yield* Log
  const head = yield* log.head("")
  const live = liveTable()
  if (!as_json) yield* Console.log(live.head)
  yield* log
    .follow("", head)
    .pipe(matching(filters))
    .pipe(
      Stream.runForEach((event) => Console.log(as_json ? JSON.stringify(event) : live.row(event))),
    )
})

export const follow = Command.make(
  "follow",
  { ...what, json },
  Effect.fn(function* ({ json, ...given }) {
    const configured = yield* settings
    const filters = filtersOf(given)
    yield* warnUnknownNames(filters)
    yield* Effect.provide(followLog(filters, json), attachedLogReadOnly(configured))
  }),
).pipe(
  Command.withDescription("Print events as they happen, until interrupted"),
  Command.withExamples([
    {
      command: "almanac audit follow --service blob-storage",
      description: "Follow the blob service",
    },
  ]),
)
