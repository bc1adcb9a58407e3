/**
 * Delivers one webhook's events: reads published events, attempts deliveries and saves the cursor.
 *
 * It may be killed between any two steps. The cursor is saved after the deliveries that it covers,
 * and an event leaves the backlog only when it is delivered or is a dead letter in the log. So
 * delivery is at least once, and in order within a subject.
 *
 * Source: issue 10 §3; decision 0131.
 */
import { Clock, DateTime, Duration, Effect, FiberSet, Latch, Metric, Random, Stream } from "effect"
import { address, Commands, type Unavailable } from "#actors/commands.ts"
import { inTerm, Term } from "#actors/leases.ts"
import { signingAt, Webhook, type WebhookNow } from "#actors/system/webhook.ts"
import { type Backlog, type Item, makeBacklog } from "#actors/system/webhooks/backlog.ts"
import { type WebhookCursor, WebhookCursors } from "#actors/system/webhooks/cursors.ts"
import { EventsUnavailable, type Placed, WebhookEvents } from "#actors/system/webhooks/events.ts"
import { type Outcome, WebhookSender } from "#actors/system/webhooks/sender.ts"
import { type CloudEvent, isRestoration } from "#schemas/cloud-event.ts"
import { counter } from "#schemas/metric.ts"
import {
  DisableWebhook,
  detail_chars_max,
  EndRedelivery,
  GiveUpDeliveries,
  type Letter,
  letters_max,
  type WebhookCommand,
} from "#schemas/system/webhook.ts"

/** The actor in the log. */
const actor = "process:system-webhooks"
/** Pause before a failed record is retried, in milliseconds. */
const record_ms = 5_000
/** Longest sleep between two checks for due items, in milliseconds: the clock may be changed. */
const sleep_ms_max = 60_000
/** Interval between saves if only the stream position changed, in milliseconds. */
const idle_save_ms = 5_000
/** Maximum number of concurrent event reads. */
const reads_max = 16
/** The status by which a receiver unsubscribes. */
const gone = 410

/** True if a webhook subscribes to the event. Every webhook receives restores. */
export const isFor = (
  { project_id, types, services }: Pick<WebhookNow, "project_id" | "types" | "services">,
  event: CloudEvent,
) =>
  isRestoration(event) ||
  ((project_id === null || event.projectid === project_id) &&
    (types.length === 0 || types.includes(event.type)) &&
    (services.length === 0 || services.includes(event.source.split("/")[2] ?? "")))

/** The ordering key: the event's subject, the finest unit that subscribers see. */
const keyOf = ({ source, subject }: CloudEvent) => `${source} ${subject}`

/**
 * The cursor to continue from. A new replay moves it back without dropping events. A new revision
 * restarts the period of failures after which the webhook is disabled.
 */
export const resumed = (
  { replay, after, revision }: Pick<WebhookNow, "replay" | "after" | "revision">,
  kept: WebhookCursor | undefined,
): WebhookCursor => {
  const begin = { failing_since_ms: null, last_success_ms: null, last_failure: null }
  if (kept === undefined) return { ...begin, replay, revision, read: after, open: [] }
  const same = kept.revision === revision ? kept : { ...kept, revision, failing_since_ms: null }
  if (kept.replay === replay) return same
  const open = kept.open.filter(({ sequence }) => sequence <= after)
  return { ...same, replay, read: Math.min(kept.read, after), open }
}

export interface DeliveryOptions {
  /** The webhook is disabled after all deliveries failed for this long, in milliseconds. */
  readonly disable_after_ms: number
}

/** The shared state of one webhook's delivery. */
interface Delivery extends DeliveryOptions {
  readonly id: string
  readonly webhook: WebhookNow
  readonly backlog: Backlog
  /** Open if attempts may start (`wake`), or events may be read (`room`). */
  readonly wake: Latch.Latch
  readonly room: Latch.Latch
  /** Open if the cursor must be saved: now (`changed`), or at the next interval (`moved`). */
  readonly changed: Latch.Latch
  readonly moved: Latch.Latch
}

const iso = (ms: number) => DateTime.formatIso(DateTime.makeUnsafe(ms))

const send = Effect.fnUntraced(function* (
  { id }: Delivery,
  command_id: string,
  command: WebhookCommand,
) {
  const at = iso(yield* Clock.currentTimeMillis)
  const commands = yield* Commands
  yield* inTerm(commands.send({ command_id, actor, at }, address(Webhook, id, command)))
})

/**
 * True if the log has recorded it. A rejection means that the webhook has changed and this delivery
 * is about to end, so its events must stay in the backlog.
 */
const recorded = <E, R>(sending: Effect.Effect<void, E | Unavailable, R>) =>
  sending.pipe(
    Effect.as(true),
    Effect.catch((refusal) =>
      Effect.as(Effect.logDebug(`The webhook's change was rejected: ${String(refusal)}`), false),
    ),
  )

/** Records events as dead letters; they leave the backlog once the log has them. */
const giveUp = Effect.fnUntraced(function* (delivery: Delivery, items: ReadonlyArray<Item>) {
  const { backlog, webhook } = delivery
  const events = yield* WebhookEvents
  const detail = backlog.cursor().last_failure?.detail ?? ""
  const now_ms = yield* Clock.currentTimeMillis
  // Later events of the subject were not tried: they share the first one's failure.
  const since_ms = items[0]?.first_failed_ms ?? now_ms
  for (let from = 0; from < items.length; from += letters_max) {
    const some = items.slice(from, from + letters_max)
    const letters = yield* Effect.forEach(
      some,
      ({ sequence, attempts, first_failed_ms = since_ms }) =>
        Effect.map(events.at(sequence), (event) =>
          letterOf(sequence, event, { attempts, first_failed_ms, detail }),
        ),
      { concurrency: reads_max },
    )
    const first = some[0]?.sequence ?? 0
    const command_id = `letters-${webhook.replay}-${first}-${some.length}`
    const command = GiveUpDeliveries.make({ letters })
    if (yield* recorded(send(delivery, command_id, command))) some.forEach(backlog.settle)
    else {
      for (const item of items.slice(from)) backlog.postpone(item, now_ms + record_ms)
      return
    }
  }
})

const letterOf = (
  sequence: number,
  event: CloudEvent | undefined,
  failed: {
    readonly attempts: number
    readonly first_failed_ms: number
    readonly detail: string
  },
): Letter => ({
  sequence,
  event_id: event?.id ?? "",
  event_type: event?.type ?? "",
  event_subject: event?.subject ?? "",
  attempts: failed.attempts,
  first_failed_at: iso(failed.first_failed_ms),
  detail: failed.attempts === 0 ? "An earlier event of its subject failed." : failed.detail,
})

/** Records the end of a redelivery. */
const endRedelivery = Effect.fnUntraced(function* (
  delivery: Delivery,
  item: Item,
  outcome: Outcome,
) {
  const { backlog } = delivery
  const { is_delivered, detail } = outcome
  const { sequence } = item
  const command = EndRedelivery.make({ sequence, is_delivered, detail })
  const command_id = `redelivery-${delivery.webhook.revision}-${sequence}`
  if (yield* recorded(send(delivery, command_id, command))) return backlog.settle(item)
  backlog.postpone(item, (yield* Clock.currentTimeMillis) + record_ms)
})

const disable = (delivery: Delivery, reason: "gone" | "failing", detail: string) =>
  recorded(
    send(
      delivery,
      `disable-${delivery.webhook.revision}`,
      DisableWebhook.make({ reason, detail: detail.slice(0, detail_chars_max) }),
    ),
  )

const deliveries = counter(
  "almanac_webhook_deliveries_total",
  "Attempts to deliver an event to a webhook, by result.",
  { outcome: "delivered" },
  { outcome: "failed" },
)
const delivered_counter = Metric.withAttributes(deliveries, { outcome: "delivered" })
const failed_counter = Metric.withAttributes(deliveries, { outcome: "failed" })

/** Makes one attempt and handles its outcome. */
const attempt = Effect.fnUntraced(function* (delivery: Delivery, item: Item) {
  const { backlog, webhook, id } = delivery
  const event = yield* (yield* WebhookEvents).at(item.sequence)
  const began_ms = yield* Clock.currentTimeMillis
  // The bus lost the event and will receive it again; the receiver is not at fault.
  if (event === undefined) return backlog.postpone(item, began_ms + record_ms)
  // Another process delivers now: sending this event would break the order.
  if (yield* (yield* Term).isOver) return backlog.postpone(item, began_ms + record_ms)
  const { sequence } = item
  const secrets = signingAt(webhook, began_ms)
  const sender = yield* WebhookSender
  const parcel = { webhook_id: id, url: webhook.url, sequence, event, secrets }
  const outcome = yield* sender.send(parcel)
  yield* Metric.update(outcome.is_delivered ? delivered_counter : failed_counter, 1)
  const now = yield* Clock.currentTimeMillis
  const random = yield* Random.next
  if (outcome.is_delivered) {
    backlog.succeeded(item, now)
    return item.is_redelivery ? yield* endRedelivery(delivery, item, outcome) : undefined
  }
  const verdict = backlog.failed(item, outcome, now, random)
  if (outcome.status === gone) yield* disable(delivery, "gone", outcome.detail)
  const since = backlog.failingSince()
  if (since !== null && now - since >= delivery.disable_after_ms) {
    yield* disable(delivery, "failing", outcome.detail)
  }
  if (verdict === "again") return
  if (item.is_redelivery) yield* endRedelivery(delivery, item, outcome)
  else yield* giveUp(delivery, [item])
})

/** Starts due attempts, then sleeps until the next one is due or `wake` opens. */
const delivering = Effect.fnUntraced(function* (delivery: Delivery) {
  const { backlog, wake, room, changed } = delivery
  const fibers = yield* FiberSet.make<unknown, unknown>()
  const looking = Effect.gen(function* () {
    yield* wake.close
    const surplus = backlog.surplus()
    if (surplus.length > 0) {
      yield* giveUp(delivery, surplus)
      // If recording failed, the backlog is still full, and the next pass retries.
      if (backlog.hasRoom()) yield* Effect.all([changed.open, room.open])
    }
    const now = yield* Clock.currentTimeMillis
    const { items, next } = backlog.begin(now)
    for (const item of items) {
      const done = Effect.all([changed.open, room.open, wake.open])
      yield* FiberSet.run(fibers, Effect.andThen(attempt(delivery, item), done))
    }
    const pause = Math.max(1, Math.min(next - now, sleep_ms_max))
    yield* Effect.raceFirst(wake.await, Effect.sleep(Duration.millis(pause)))
  })
  return yield* Effect.raceFirst(Effect.forever(looking), FiberSet.join(fibers))
})

/** Adds published events to the backlog while it has room. */
const reading = Effect.fnUntraced(function* (delivery: Delivery) {
  const { webhook, backlog, wake, room, moved } = delivery
  const events = yield* WebhookEvents
  const take = ({ sequence, event }: Placed) =>
    Effect.gen(function* () {
      const is_wanted = isFor(webhook, event)
      while (is_wanted && !backlog.hasRoom()) {
        yield* room.close
        yield* wake.open
        yield* room.await
      }
      if (is_wanted) backlog.take({ sequence, key: keyOf(event) })
      backlog.readTo(sequence)
    })
  return yield* Stream.runForEachArray(events.follow(backlog.read(), webhook), (stretch) =>
    Effect.andThen(
      Effect.forEach(stretch, take, { discard: true }),
      Effect.all([wake.open, moved.open]),
    ),
  )
})

/** Saves the cursor after every change, and periodically if only its position moved. */
const saving = Effect.fnUntraced(function* (delivery: Delivery, change: number) {
  const { id, backlog, changed, moved } = delivery
  const cursors = yield* WebhookCursors
  const idle = Effect.andThen(moved.await, Effect.sleep(Duration.millis(idle_save_ms)))
  let last = change
  let saved = ""
  const save = Effect.gen(function* () {
    yield* Effect.raceFirst(changed.await, idle)
    yield* Effect.all([changed.close, moved.close])
    const cursor = backlog.cursor()
    const text = JSON.stringify(cursor)
    if (text === saved) return
    last = yield* cursors.save(id, cursor, last)
    saved = text
  })
  return yield* Effect.forever(save)
})

/** Maps the cursor to the current history: after a restore, back to the last common event. */
const inHistory = Effect.fnUntraced(function* (cursor: WebhookCursor) {
  const { resume } = yield* WebhookEvents
  const { epoch, after } = yield* resume({ epoch: cursor.epoch, sequence: cursor.read })
  const open = cursor.open.filter(({ sequence }) => sequence <= after)
  return { ...cursor, epoch, read: after, open } satisfies WebhookCursor
})

/** Restores the backlog from the cursor's open events and the requested redeliveries. */
const restoreBacklog = Effect.fnUntraced(function* (webhook: WebhookNow, cursor: WebhookCursor) {
  const events = yield* WebhookEvents
  const backlog = makeBacklog(cursor)
  yield* Effect.forEach(
    cursor.open,
    Effect.fnUntraced(function* (open) {
      const event = yield* events.at(open.sequence)
      if (event !== undefined) return backlog.take({ ...open, key: keyOf(event) })
      // The bus lost the event and will receive it again; its subject is unknown until then.
      return yield* new EventsUnavailable({ detail: `Event ${open.sequence} does not exist yet.` })
    }),
    { concurrency: reads_max, discard: true },
  )
  for (const sequence of webhook.redeliveries) {
    backlog.take({ sequence, key: `letter ${sequence}`, is_redelivery: true })
  }
  return backlog
})

/**
 * Delivers until it is interrupted. Fails if events or cursors are unavailable, or another
 * deliverer has changed the cursor.
 */
export const deliver = Effect.fnUntraced(function* (
  id: string,
  webhook: WebhookNow,
  options: DeliveryOptions,
) {
  const cursors = yield* WebhookCursors
  const kept = yield* cursors.load(id)
  const cursor = yield* inHistory(resumed(webhook, kept?.cursor))
  const backlog = yield* restoreBacklog(webhook, cursor)
  const delivery: Delivery = {
    id,
    webhook,
    backlog,
    ...options,
    wake: yield* Latch.make(true),
    room: yield* Latch.make(true),
    changed: yield* Latch.make(false),
    moved: yield* Latch.make(false),
  }
  return yield* Effect.raceAllFirst([
    Effect.scoped(delivering(delivery)),
    reading(delivery),
    saving(delivery, kept?.change ?? 0),
  ])
})
