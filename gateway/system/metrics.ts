/**
 * Metrics of the log, the read models and webhooks, as Prometheus text. Source: issue 10 §7.
 */
import { Clock, Effect, Option } from "effect"
import { type WebhookCursor, WebhookCursors } from "#actors/system/webhooks/cursors.ts"
import { Log } from "#events/log.ts"
import { EventStreams } from "#gateway/budget.ts"
import { ReadModels } from "#gateway/system/read-models.ts"
import { lagSeconds } from "#projections/health/follower.ts"
import { PublishedEvents, sequenceBefore } from "#projections/published-events.ts"
import { countLetters, listWebhooks, type WebhookDetails } from "#projections/system/webhook.ts"
import { WebhookModel } from "#projections/system/webhook-model.ts"
import { familyText, plainText, type Sample } from "#schemas/metric.ts"

const ms_per_s = 1000

/** Maximum number of webhooks whose cursors are read for a response, and of concurrent reads. */
const cursors_max = 200
const cursors_at_once = 16

/** The log's last position, and the lag of each read model of this process. */
export const readModelMetrics = Effect.gen(function* () {
  const log = yield* Log
  const models = yield* ReadModels
  const head = yield* log.head("")
  const rows = yield* Effect.forEach(
    [...models],
    Effect.fnUntraced(function* ([read_model, { part, position }]) {
      const own = yield* position
      const behind = Math.max(0, (yield* log.head(part)) - own)
      const lag_s = behind === 0 ? 0 : yield* lagSeconds(part, own)
      return { labels: { read_model }, own, behind, lag_s }
    }),
    { concurrency: "unbounded" },
  )
  const family = (name: string, help: string, value: (row: (typeof rows)[number]) => number) => {
    const samples = rows.map((row): Sample => [value(row), row.labels])
    return familyText({ name: `almanac_read_model_${name}`, type: "gauge", help }, samples)
  }
  return [
    plainText("almanac_log_", [["gauge", "position", "Position of the last commit.", head]]),
    family("position", "Position of the last commit in the read model.", ({ own }) => own),
    family(
      "lag_positions",
      "Number of log positions missing in the read model.",
      ({ behind }) => behind,
    ),
    family("lag_seconds", lag_help, ({ lag_s }) => lag_s),
  ].join("")
})

const lag_help =
  "Age of the oldest commit missing in the read model, in seconds; 0: none is missing."

/**
 * The sequence up to which every event was delivered or abandoned, or does not match the webhook.
 */
const handledBy = ({ read, open }: WebhookCursor) =>
  Math.min(read, ...open.map(({ sequence }) => sequence - 1))

/** Age of the oldest event that a webhook has not handled, in seconds; 0 if there is none. */
const webhookLag = Effect.fnUntraced(function* (
  { services, types, created_at }: WebhookDetails,
  cursor: WebhookCursor | undefined,
  end: number,
) {
  // Without a cursor, delivery has not begun.
  const after =
    cursor === undefined ? yield* sequenceBefore(Date.parse(created_at)) : handledBy(cursor)
  if (after >= end) return 0
  const found = yield* (yield* PublishedEvents).next(after, { services, types })
  if (found === undefined) return 0
  const waited_ms = (yield* Clock.currentTimeMillis) - found.published_ms
  return Math.max(0, waited_ms / ms_per_s)
})

/** The lag of each webhook, and the number of failing ones. */
const deliveryOf = Effect.fnUntraced(function* (active: ReadonlyArray<WebhookDetails>) {
  const { load } = yield* WebhookCursors
  const end = (yield* (yield* PublishedEvents).bounds)?.last ?? 0
  const all = yield* Effect.forEach(
    active,
    Effect.fnUntraced(function* (webhook) {
      const cursor = (yield* load(webhook.id))?.cursor
      const lag_s = yield* webhookLag(webhook, cursor, end)
      return { lag: [lag_s, { webhook: webhook.id }] as const, cursor }
    }),
    { concurrency: cursors_at_once },
  )
  const failing = all.filter(({ cursor }) => (cursor?.failing_since_ms ?? null) !== null).length
  return { end, lags: all.map(({ lag }): Sample => lag), failing }
})

const states = ["active", "paused", "disabled"]

/** Webhooks by state, their lag, and their dead letters. */
export const webhookMetrics = Effect.gen(function* () {
  const { db, reader } = yield* WebhookModel
  const all = yield* listWebhooks(db, null, { limit: cursors_max })
  const active = all.filter(({ state }) => state === "active")
  const { end, lags, failing } = yield* deliveryOf(active)
  const counts = new Map(states.map((state) => [state, 0]))
  for (const { state } of all) counts.set(state, (counts.get(state) ?? 0) + 1)
  const samples = [...counts].map(([state, count]): Sample => [count, { state }])
  const by_state = "Webhooks, by state; at most 200 are counted."
  // Their number is unlimited, so they are counted in the read-only thread.
  const letters = yield* countLetters(reader)
  const streams = yield* EventStreams
  return [
    familyText({ name: "almanac_webhooks", type: "gauge", help: by_state }, samples),
    familyText(webhook_lag, lags),
    plainText("almanac_", [
      [
        "gauge",
        "webhooks_failing",
        "Active webhooks without a successful delivery since a failure.",
        failing,
      ],
      [
        "gauge",
        "webhook_dead_letters",
        "Undelivered events in the dead letters of webhooks.",
        letters,
      ],
      ["gauge", "published_events_sequence", "Sequence of the last published event.", end],
      ["gauge", "event_streams", "Open server-sent event streams.", streams.held()],
      [
        "gauge",
        "event_streams_limit",
        "Maximum number of open server-sent event streams.",
        streams.limits.all_max,
      ],
    ]),
  ].join("")
})

const webhook_lag = {
  name: "almanac_webhook_lag_seconds",
  type: "gauge",
  help: "Age of the oldest event pending for an active webhook, in seconds; 0: none is pending.",
} as const

/** A source of metrics text. */
export interface Collector {
  readonly name: string
  readonly text: Effect.Effect<string, unknown>
}

/** Scrapers usually wait ten seconds, so slow collectors are omitted. */
const collector_timeout = "3 seconds"

/**
 * Concatenates the texts of all collectors. One that fails is omitted without affecting the others,
 * which operators need most when the log is offline; `almanac_collector_up` reports the outcomes.
 */
export const collectMetrics = Effect.fnUntraced(function* (collectors: ReadonlyArray<Collector>) {
  const texts = yield* Effect.forEach(
    collectors,
    ({ text }) =>
      text.pipe(
        Effect.timeoutOption(collector_timeout),
        Effect.catchCause((cause) =>
          Effect.as(Effect.logDebug("A metrics collector failed.", cause), Option.none<string>()),
        ),
      ),
    { concurrency: "unbounded" },
  )
  const up = collectors.map(
    ({ name: collector }, i): Sample => [
      texts[i] !== undefined && Option.isSome(texts[i]) ? 1 : 0,
      { collector },
    ],
  )
  const help = "1 if this collector succeeded, otherwise 0."
  return [
    ...texts.map(Option.getOrElse(() => "")),
    familyText({ name: "almanac_collector_up", type: "gauge", help }, up),
  ].join("")
})
