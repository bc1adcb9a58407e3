/** Handlers of the audit: pages, histories, and the export with a signed head and key. */
import { Clock, Effect, Schema, Stream, Struct } from "effect"
import { HttpServerResponse } from "effect/http"
import { exportChunks, partOf } from "#actors/system/export.ts"
import { LogStanding } from "#actors/system/log-standing.ts"
import { Notary, newestTree, signedHead } from "#actors/system/notary.ts"
import { Log, type LogUnavailable } from "#events/log.ts"
import { listEvents } from "#projections/system/audit.ts"
import { SystemModel } from "#projections/system/blueprint.ts"
import { type AggregateName, history, stateAt } from "#projections/system/history.ts"
import { type AuditFilters, futureText, page_limit, unreachedText } from "#schemas/system/audit.ts"
import { BackendUnavailable, Invalid, NotFound } from "#schemas/system/rejection.ts"

const unindexed =
  "This node has no audit index (audit.index is false): send the request to a node that has one."

interface ListRequest {
  readonly query: AuditFilters & {
    readonly order?: "asc" | "desc"
    readonly limit?: number
    readonly marker?: string
  }
}

/** A page of events, by default the newest first. */
export const listAudit = Effect.fnUntraced(function* ({ query }: ListRequest) {
  const { order = "desc", limit = page_limit, marker } = query
  const model = yield* SystemModel
  if (model.is_maintained === false) return yield* new BackendUnavailable({ detail: unindexed })
  // Read before the page, which may therefore show later events as well.
  const position = yield* model.position
  const filters = Struct.omit(query, ["order", "limit", "marker"])
  const page = yield* listEvents(model.reader, filters, { order, limit, marker })
  return { ...page, position }
})

interface AggregateRequest {
  readonly params: AggregateName
  readonly query: {
    readonly at?: number
    readonly position?: number
    readonly limit?: number
    readonly marker?: number
  }
}

const unavailable = ({ detail }: LogUnavailable) => new BackendUnavailable({ detail })

/** Fails if the log has not reached this position or time yet. */
const requireReached = Effect.fnUntraced(function* ({ at, position }: AggregateRequest["query"]) {
  const log = yield* Log
  const last = yield* log.head("")
  if (position !== undefined && position > last) {
    return yield* new NotFound({ detail: unreachedText(position, last) })
  }
  const now = yield* Clock.currentTimeMillis
  if (at !== undefined && at > now) return yield* new NotFound({ detail: futureText(at, now) })
})

/** The aggregate's state as of a time or a position, or a page of its history. */
export const auditAggregate = Effect.fnUntraced(
  function* ({ params, query }: AggregateRequest) {
    const { at, position, limit = page_limit, marker: after = 0 } = query
    const { service, aggregate, id } = params
    const name = `${service}.${aggregate}.${id}`
    if (at !== undefined && position !== undefined) {
      return yield* new Invalid({ detail: "Send `at` or `position`, not both." })
    }
    if (at === undefined && position === undefined) {
      const found = yield* history(params, { limit, after })
      return found ?? (yield* new NotFound({ detail: `The log has no commits of ${name}.` }))
    }
    yield* requireReached(query)
    const moment = at === undefined ? { position: position ?? 0 } : { at }
    const state = yield* stateAt(params, moment)
    if (state !== undefined) return state
    return yield* new NotFound({ detail: `The log had no commits of ${name} at that time.` })
  },
  Effect.catchTag("LogUnavailable", (failure) => Effect.fail(unavailable(failure))),
)

interface ExportRequest {
  readonly query: {
    readonly since?: number
    readonly until?: number
    readonly service?: string
    readonly aggregate?: string
  }
}

const encodeUnavailable = Schema.encodeSync(BackendUnavailable)

/** The log as lines, no faster than the client reads them. */
export const exportAudit = Effect.fnUntraced(function* ({ query }: ExportRequest) {
  const { since, until, service, aggregate } = query
  const part = partOf(service, aggregate)
  if (part === undefined) {
    const detail =
      "Send `service` and a kind as `aggregate`, or service.aggregate.id alone as `aggregate`."
    return yield* new Invalid({ detail })
  }
  const context = yield* Effect.context<Log | Notary>()
  const lines = exportChunks({ part, since, until }).pipe(
    // The status was already sent.
    Stream.catchTag("LogUnavailable", (failure) =>
      Stream.make(`${JSON.stringify({ error: encodeUnavailable(unavailable(failure)) })}\n`),
    ),
    Stream.encodeText,
    Stream.provideContext(context),
  )
  return HttpServerResponse.stream(lines, { contentType: "application/x-ndjson" })
})

export const auditHead = Effect.gen(function* () {
  const { key } = yield* Notary
  const tree = yield* newestTree
  const head = yield* signedHead
  if (tree !== undefined && head !== undefined) return { size: tree.size, head, key: key.verifier }
  return yield* new NotFound({
    detail: "No part of the log is sealed yet: see audit.checkpoint_seconds.",
  })
}).pipe(Effect.catchTag("LogUnavailable", (failure) => Effect.fail(unavailable(failure))))

export const auditKey = Effect.map(Notary, ({ key }) => key)

export const logFigures = Effect.flatMap(LogStanding, ({ figures }) =>
  Effect.mapError(figures, unavailable),
)
