/** Handlers of webhooks, for their owners and for operators. Source: issue 10 §3; decision 0131. */
import { Clock, Context, DateTime, Effect, Option, Redacted, Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { address, Commands, Unavailable } from "#actors/commands.ts"
import { signingAt, Webhook, webhookAfter } from "#actors/system/webhook.ts"
import { type WebhookCursor, WebhookCursors } from "#actors/system/webhooks/cursors.ts"
import { WebhookSecrets, WebhookSender } from "#actors/system/webhooks/sender.ts"
import { Log } from "#events/log.ts"
import { commandFailure, origin, RequestContext } from "#gateway/request-context.ts"
import { checkPublished } from "#gateway/system/published-names.ts"
import { Transport } from "#gateway/transport.ts"
import { PublishedEvents } from "#projections/published-events.ts"
import {
  countWebhooks,
  findWebhook,
  listLetters,
  listWebhooks,
  type WebhookDetails,
} from "#projections/system/webhook.ts"
import { WebhookModel } from "#projections/system/webhook-model.ts"
import type { CloudEvent } from "#schemas/cloud-event.ts"
import { page_limit } from "#schemas/system/audit.ts"
import {
  BackendUnavailable,
  Conflict,
  Forbidden,
  Invalid,
  NotFound,
  QuotaExceeded,
} from "#schemas/system/rejection.ts"
import {
  ChangeWebhook,
  CreateWebhook,
  DeleteWebhook,
  RedeliverLetters,
  ReplayWebhook,
  RotateWebhookSecret,
  redeliveries_max,
  type WebhookCommand,
  WebhookId,
} from "#schemas/system/webhook.ts"
import type {
  NewReplay,
  NewSecret,
  NewWebhook,
  WebhookDelivery,
  WebhookPatch,
} from "#schemas/system/webhook-view.ts"

/** Default number of hours in which the previous secret also signs. */
const overlap_hours_default = 24
const hour_ms = 3_600_000

/** Maximum number of webhooks per project. */
export const WebhookLimit = Context.Reference<number>("gateway/WebhookLimit", {
  defaultValue: () => 0,
})

const unavailable = ({ detail }: { readonly detail: string }) => new BackendUnavailable({ detail })
const absent = new NotFound({ detail: "No such webhook." })
const iso = (ms: number) => DateTime.formatIso(DateTime.makeUnsafe(ms))

const isNotFound = (error: unknown): error is NotFound => error instanceof NotFound
const isConflict = (error: unknown): error is Conflict => error instanceof Conflict

/**
 * The project whose webhooks the caller may see; null for all. A member without a project may see
 * none.
 */
const visibleProject = Effect.gen(function* () {
  const { caller } = yield* RequestContext
  if (caller.roles.has("admin")) return null
  if (caller.project_id !== undefined) return caller.project_id
  return yield* new Forbidden({ detail: "The token is not scoped to a project." })
})

/** The webhook of this id, if the caller may see it. */
const findOwned = Effect.fnUntraced(function* (text: string) {
  const { db, catchUp } = yield* WebhookModel
  const own = yield* visibleProject
  const id = Schema.decodeUnknownOption(WebhookId)(text.toLowerCase())
  if (Option.isNone(id)) return yield* absent
  const find = findWebhook(db, id.value)
  const caughtUp = Effect.mapError(catchUp, unavailable)
  const found = (yield* find) ?? (yield* Effect.andThen(caughtUp, find))
  const is_own = found !== undefined && (own === null || found.project_id === own)
  return is_own ? found : yield* absent
})

/** Sends a command and waits until the read model shows its effect. */
const send = Effect.fnUntraced(function* (id: string, command: WebhookCommand) {
  const { waitFor } = yield* WebhookModel
  const commands = yield* Commands
  const position = yield* commands.send(yield* origin, address(Webhook, id, command)).pipe(
    Effect.catchIf(
      (refusal) => refusal instanceof Unavailable,
      (failure) => commandFailure(unavailable)(failure),
    ),
  )
  yield* Effect.mapError(waitFor(position), unavailable)
  return position
})

const answer = (
  body: object,
  { status = 200, position }: { readonly status?: number; readonly position?: number } = {},
) => {
  const headers = position === undefined ? {} : { "x-almanac-position": String(position) }
  return HttpServerResponse.jsonUnsafe(body, { status, headers })
}

const deliveryOf = ({ read, open, ...cursor }: WebhookCursor): WebhookDelivery => {
  const { failing_since_ms, last_success_ms, last_failure } = cursor
  const at = (ms: number | null) => (ms === null ? null : iso(ms))
  return {
    sequence: read,
    open: open.length,
    failing_since: at(failing_since_ms),
    last_success_at: at(last_success_ms),
    last_failure: last_failure && { at: iso(last_failure.at_ms), detail: last_failure.detail },
  }
}

const withDelivery = Effect.fnUntraced(function* (found: WebhookDetails) {
  const stored = yield* Effect.mapError((yield* WebhookCursors).load(found.id), unavailable)
  return { ...found, delivery: stored === undefined ? null : deliveryOf(stored.cursor) }
})

interface PageQuery {
  readonly limit?: number
  readonly marker?: string
}

/** A page of rows; the query reads one row more, to detect a next page. */
const pageOf = <Row>(rows: ReadonlyArray<Row>, limit: number, marker: (row: Row) => string) => {
  const items = rows.slice(0, limit)
  const lastSequence = items.at(-1)
  const next_marker =
    rows.length > limit && lastSequence !== undefined ? marker(lastSequence) : null
  return { items, pagination: { limit, count: items.length, next_marker } }
}

const listAll = Effect.fnUntraced(function* ({ limit = page_limit, marker }: PageQuery) {
  const { db } = yield* WebhookModel
  const rows = yield* listWebhooks(db, yield* visibleProject, { limit: limit + 1, marker })
  const { items, pagination } = pageOf(rows, limit, ({ id }) => id)
  return answer({ webhooks: items, pagination })
})

/** The project whose events a new webhook gets. */
const projectOf = Effect.fnUntraced(function* ({ project_id: requested }: NewWebhook) {
  const own = yield* visibleProject
  const { caller } = yield* RequestContext
  if (own === null) return requested === undefined ? (caller.project_id ?? null) : requested
  if (requested === undefined || requested === own) return own
  return yield* new Forbidden({ detail: "Only operators can create webhooks for other projects." })
})

const checkUrl = Effect.fnUntraced(function* (url: string | undefined) {
  const refused = url === undefined ? undefined : (yield* WebhookSender).refusal(url)
  if (refused !== undefined) return yield* new Invalid({ detail: `body.url: ${refused}` })
})

const checkNames = ({ services = [], types = [] }: Pick<NewWebhook, "services" | "types">) =>
  checkPublished({ field: "body.services", names: services }, { field: "body.types", names: types })

/** The sequence of the last published event. */
const last = Effect.gen(function* () {
  const published = yield* PublishedEvents
  return (yield* Effect.mapError(published.last, unavailable))?.sequence ?? 0
})

/** Rejects a sequence that no event has reached. */
const checkSequence = Effect.fnUntraced(function* (after: number) {
  const end = yield* last
  if (after <= end) return
  return yield* new Invalid({ detail: `body.after: the last event is ${end}` })
})

const secretOf = Effect.fnUntraced(function* ({ id, secret_version }: WebhookDetails) {
  const { reveal } = yield* WebhookSecrets
  return Redacted.value(reveal(id, secret_version))
})

const respondWithSecret = Effect.fnUntraced(function* (
  id: string,
  status: number,
  position: number,
) {
  const found = yield* findOwned(id)
  const response = answer({ ...found, secret: yield* secretOf(found) }, { status, position })
  return HttpServerResponse.setHeader(response, "cache-control", "no-store")
})

/** Creates a webhook. A retry with the same key gets the same id. */
const create = Effect.fnUntraced(
  function* (request: NewWebhook) {
    const project_id = yield* projectOf(request)
    yield* checkUrl(request.url)
    yield* checkNames(request)
    const { db, catchUp } = yield* WebhookModel
    const { command_id, request_id } = yield* RequestContext
    const transport = yield* Transport
    const is_keyed = command_id !== request_id
    const id = is_keyed ? transport.idOf(`webhook ${command_id}`) : transport.newId()
    yield* Effect.mapError(catchUp, unavailable)
    const limit = yield* WebhookLimit
    const is_new = !is_keyed || (yield* findWebhook(db, id)) === undefined
    if (is_new && (yield* countWebhooks(db, project_id)) >= limit) {
      return yield* new QuotaExceeded({
        detail: `The limit of ${limit} webhooks is reached: delete one first.`,
      })
    }
    const { url, description = "", types = [], services = [], enabled = true } = request
    if (request.after !== undefined) yield* checkSequence(request.after)
    const after = request.after ?? (yield* last)
    const { key_id } = yield* WebhookSecrets
    const fields = { url, description, types, services, project_id, enabled, after, key_id }
    return yield* respondWithSecret(id, 201, yield* send(id, CreateWebhook.make(fields)))
  },
  // The webhook was created, now or by an earlier request with the key, and then deleted.
  Effect.catchIf(
    isNotFound,
    () => new Conflict({ detail: "The webhook that this request created has been deleted." }),
  ),
)

const read = (text: string) =>
  Effect.map(Effect.flatMap(findOwned(text), withDelivery), (body) => answer(body))

const update = Effect.fnUntraced(function* (text: string, patch: WebhookPatch) {
  const { id } = yield* findOwned(text)
  yield* checkUrl(patch.url)
  yield* checkNames(patch)
  const position = yield* send(id, ChangeWebhook.make(patch))
  return answer(yield* withDelivery(yield* findOwned(id)), { position })
})

const remove = Effect.fnUntraced(function* (text: string) {
  const { id } = yield* findOwned(text)
  const position = yield* Effect.catchIf(send(id, DeleteWebhook.make({})), isConflict, Effect.die)
  return HttpServerResponse.empty({ headers: { "x-almanac-position": String(position) } })
})

const rotate = Effect.fnUntraced(function* (
  text: string,
  { overlap_hours = overlap_hours_default }: { readonly overlap_hours?: number },
) {
  const { id } = yield* findOwned(text)
  const { key_id } = yield* WebhookSecrets
  const until = (yield* Clock.currentTimeMillis) + overlap_hours * hour_ms
  const command = RotateWebhookSecret.make({ key_id, previous_until: iso(until) })
  return yield* respondWithSecret(id, 200, yield* send(id, command))
})

/** Not published: only this webhook gets it. */
const pingOf = (id: string, ping_id: string, time: string, actor: string): CloudEvent => ({
  specversion: "1.0",
  id: ping_id,
  source: "/almanac/system/webhook",
  type: "webhook_pinged",
  subject: id,
  time,
  datacontenttype: "application/json",
  position: 0,
  actor,
  data: { webhook_id: id },
})

/** The secrets that sign for a webhook now, from the log. */
const signing = Effect.fnUntraced(function* (id: string, now_ms: number) {
  const log = yield* Log
  const recorded = yield* log.load(`${Webhook.name}.${id}`)
  return recorded === undefined ? [] : signingAt(yield* webhookAfter(log, recorded), now_ms)
}, Effect.mapError(unavailable))

/** Sends a ping now, regardless of the webhook's state, and returns the outcome. */
const test = Effect.fnUntraced(function* (text: string) {
  const { id, url } = yield* findOwned(text)
  const { caller } = yield* RequestContext
  const began_ms = yield* Clock.currentTimeMillis
  const event = pingOf(id, (yield* Transport).newId(), iso(began_ms), caller.actor)
  const parcel = { webhook_id: id, url, event, secrets: yield* signing(id, began_ms) }
  const { is_delivered, status = null, detail } = yield* (yield* WebhookSender).send(parcel)
  const took_ms = (yield* Clock.currentTimeMillis) - began_ms
  return answer({ is_delivered, status, detail, took_ms })
})

const replay = Effect.fnUntraced(function* (text: string, after: number) {
  const { id } = yield* findOwned(text)
  yield* checkSequence(after)
  const position = yield* send(id, ReplayWebhook.make({ after }))
  return answer(yield* withDelivery(yield* findOwned(id)), { status: 202, position })
})

const letters = Effect.fnUntraced(function* (
  text: string,
  { limit = page_limit, marker }: PageQuery,
) {
  const { db } = yield* WebhookModel
  const { id } = yield* findOwned(text)
  const after = marker === undefined ? undefined : Number(marker)
  const rows = yield* listLetters(db, id, { limit: limit + 1, marker: after })
  const { items, pagination } = pageOf(rows, limit, ({ sequence }) => String(sequence))
  return answer({ dead_letters: items, pagination })
})

const redelivering = Effect.fnUntraced(function* (id: string, sequences: ReadonlyArray<number>) {
  const body = { redelivering: sequences.length }
  if (sequences.length === 0) return answer(body, { status: 202 })
  const position = yield* send(id, RedeliverLetters.make({ sequences }))
  return answer(body, { status: 202, position })
})

const redeliverAll = Effect.fnUntraced(function* (text: string) {
  const { db } = yield* WebhookModel
  const { id } = yield* findOwned(text)
  const rows = yield* listLetters(db, id, { limit: redeliveries_max }, { is_waiting: true })
  return yield* redelivering(
    id,
    rows.map(({ sequence }) => sequence),
  )
})

const redeliver = Effect.fnUntraced(function* (text: string, place: string) {
  const { db } = yield* WebhookModel
  const { id } = yield* findOwned(text)
  const sequence = /^\d{1,15}$/.test(place) ? Number(place) : 0
  const [found] = yield* listLetters(db, id, { limit: 1, marker: sequence - 1 })
  if (found?.sequence !== sequence) {
    return yield* new NotFound({ detail: "The webhook has no such dead letter." })
  }
  return yield* redelivering(id, [sequence])
})

interface One {
  readonly params: { readonly id: string }
}
interface OneLetter {
  readonly params: { readonly id: string; readonly sequence: string }
}
interface Body<Payload> {
  readonly payload: Payload
}
interface Query {
  readonly query: PageQuery
}

/** The handlers by operation. */
export const webhookHandlers = {
  list: ({ query }: Query) => listAll(query),
  create: ({ payload }: Body<NewWebhook>) => create(payload),
  get: ({ params }: One) => read(params.id),
  update: ({ params, payload }: One & Body<WebhookPatch>) => update(params.id, payload),
  delete: ({ params }: One) => remove(params.id),
  rotate: ({ params, payload }: One & Body<typeof NewSecret.Type>) => rotate(params.id, payload),
  test: ({ params }: One) => test(params.id),
  replay: ({ params, payload }: One & Body<typeof NewReplay.Type>) =>
    replay(params.id, payload.after),
  letters: ({ params, query }: One & Query) => letters(params.id, query),
  redeliver_all: ({ params }: One) => redeliverAll(params.id),
  redeliver: ({ params }: OneLetter) => redeliver(params.id, params.sequence),
}
