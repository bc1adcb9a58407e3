/** Answers what operators ask of the log. */
import { Effect, Struct } from "effect"
import type { LogUnavailable } from "#events/log.ts"
import { listEvents } from "#projections/system/audit.ts"
import { SystemModel } from "#projections/system/blueprint.ts"
import { type AggregateName, history, stateAt } from "#projections/system/history.ts"
import { type AuditFilters, page_limit } from "#schemas/system/audit.ts"
import { BackendUnavailable, Invalid, NotFound } from "#schemas/system/rejection.ts"

const unindexed = "This node keeps no index of the audit (audit.index): ask one that does."

interface ListAsked {
  readonly query: AuditFilters & {
    readonly order?: "asc" | "desc"
    readonly limit?: number
    readonly marker?: string
  }
}

/** A page of events, the newest first unless asked otherwise. */
export const listAudit = Effect.fnUntraced(function* ({ query }: ListAsked) {
  const { order = "desc", limit = page_limit, marker } = query
  const model = yield* SystemModel
  if (model.is_kept === false) return yield* new BackendUnavailable({ detail: unindexed })
  // Read first: what comes meanwhile may be on the page all the same.
  const position = yield* model.position
  const filters = Struct.omit(query, ["order", "limit", "marker"])
  const page = yield* listEvents(model.reader, filters, { order, limit, marker })
  return { ...page, position }
})

interface AggregateAsked {
  readonly params: AggregateName
  readonly query: {
    readonly at?: number
    readonly position?: number
    readonly limit?: number
    readonly marker?: number
  }
}

const unavailable = ({ detail }: LogUnavailable) => Effect.fail(new BackendUnavailable({ detail }))

/** The aggregate's state as of a time or a position, or a page of its history. */
export const auditAggregate = Effect.fnUntraced(
  function* ({ params, query }: AggregateAsked) {
    const { at, position, limit = page_limit, marker: after = 0 } = query
    const { service, aggregate, id } = params
    const name = `${service}.${aggregate}.${id}`
    if (at !== undefined && position !== undefined) {
      return yield* new Invalid({ detail: "Ask for a time or for a position, not for both." })
    }
    if (at === undefined && position === undefined) {
      const found = yield* history(params, { limit, after })
      return found ?? (yield* new NotFound({ detail: `The log holds nothing of ${name}.` }))
    }
    const moment = at === undefined ? { position: position ?? 0 } : { at }
    const state = yield* stateAt(params, moment)
    return state ?? (yield* new NotFound({ detail: `The log held nothing of ${name} then.` }))
  },
  Effect.catchTag("LogUnavailable", unavailable),
)
