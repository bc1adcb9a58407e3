/**
 * What is measured of what all services stand on, as Prometheus text: the log, the read models,
 * webhooks. Source: issue 10 §7.
 */
import { Clock, Effect, Option, Stream } from "effect"
import { WebhookCursors } from "#actors/system/webhook-cursors.ts"
import { Log } from "#events/log.ts"
import { EventStreams } from "#gateway/budget.ts"
import { ReadModels } from "#gateway/system/read-models.ts"
import { PublishedEvents } from "#projections/published-events.ts"
import { countLetters, listWebhooks } from "#projections/system/webhook.ts"
import { WebhookModel } from "#projections/system/webhook-model.ts"
import { familyText, plainText, type Sample } from "#schemas/metric.ts"

const ms_per_s = 1000

/** Webhooks whose cursors are read for one answer, and how many of them at the same time. */
const cursors_max = 200
const cursors_at_once = 16

/** Since when a commit waits that a read model does not show, in seconds; 0: it shows all. */
const lagOf = Effect.fnUntraced(function* (part: string, position: number) {
  const log = yield* Log
  const [first] = yield* Stream.runCollect(Stream.take(log.read(part, position), 1))
  if (first === undefined) return 0
  const waited_ms = (yield* Clock.currentTimeMillis) - Date.parse(first.commit.at)
  return Math.max(0, waited_ms / ms_per_s)
})

/** The log's head, and how far behind it each read model of this process is. */
export const readModelMetrics = Effect.gen(function* () {
  const log = yield* Log
  const models = yield* ReadModels
  const head = yield* log.head("")
  const rows = yield* Effect.forEach(
    [...models],
    Effect.fnUntraced(function* ([read_model, { part, position }]) {
      const shown = yield* position
      const behind = Math.max(0, (yield* log.head(part)) - shown)
      const lag_s = behind === 0 ? 0 : yield* lagOf(part, shown)
      return { labels: { read_model }, shown, behind, lag_s }
    }),
    { concurrency: "unbounded" },
  )
  const family = (name: string, help: string, value: (row: (typeof rows)[number]) => number) => {
    const samples = rows.map((row): Sample => [value(row), row.labels])
    return familyText({ name: `almanac_read_model_${name}`, type: "gauge", help }, samples)
  }
  return [
    plainText("almanac_log_", [["gauge", "position", "Position of the last commit.", head]]),
    family("position", "Position that the read model shows.", ({ shown }) => shown),
    family("lag_positions", "Positions of the log that it does not show.", ({ behind }) => behind),
    family("lag_seconds", "Since when the first of them is there.", ({ lag_s }) => lag_s),
  ].join("")
})

/** How far the deliverer is behind, and for how many webhooks nothing succeeds. */
const deliveryOf = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
  const { load } = yield* WebhookCursors
  const end = (yield* (yield* PublishedEvents).bounds)?.last ?? 0
  const kept = yield* Effect.forEach(ids, load, { concurrency: cursors_at_once })
  const cursors = kept.flatMap((one) => (one === undefined ? [] : [one.cursor]))
  const behind = cursors.map(({ read, open }) => Math.max(0, end - read) + open.length)
  const failing = cursors.filter(({ failing_since_ms }) => failing_since_ms !== null).length
  return { end, backlog: Math.max(0, ...behind), failing }
})

const states = ["active", "paused", "disabled"]

/** Webhooks by state, what waits for them, and what was given up. */
export const webhookMetrics = Effect.gen(function* () {
  const { db, reader } = yield* WebhookModel
  const all = yield* listWebhooks(db, null, { limit: cursors_max })
  const active = all.filter(({ state }) => state === "active").map(({ id }) => id)
  const { end, backlog, failing } = yield* deliveryOf(active)
  const counts = new Map(states.map((state) => [state, 0]))
  for (const { state } of all) counts.set(state, (counts.get(state) ?? 0) + 1)
  const samples = [...counts].map(([state, count]): Sample => [count, { state }])
  const by_state = "Webhooks, by state; at most 200 are looked at."
  // Nothing bounds how many there are: they are counted by the thread that only reads.
  const letters = yield* countLetters(reader)
  const streams = yield* EventStreams
  return [
    familyText({ name: "almanac_webhooks", type: "gauge", help: by_state }, samples),
    plainText("almanac_", [
      ["gauge", "webhook_backlog_events", backlog_help, backlog],
      ["gauge", "webhooks_failing", "Active webhooks that take nothing since a failure.", failing],
      ["gauge", "webhook_dead_letters", "Events that were given up and not asked for.", letters],
      ["gauge", "published_events_sequence", "Sequence of the last published event.", end],
      ["gauge", "event_streams", "Server-sent event streams that are open.", streams.held()],
      ["gauge", "event_streams_limit", "Most that may be open.", streams.limits.all_max],
    ]),
  ].join("")
})

const backlog_help = "Events that the webhook which is furthest behind has not delivered."

/** A text as it is told with the others, and whether it could be told. */
export interface Collector {
  readonly name: string
  readonly text: Effect.Effect<string, unknown>
}

/** Whoever asks for metrics waits ten seconds as a rule: what is slow is left out. */
const collector_timeout = "3 seconds"

/**
 * All texts in their order, each alone in failing: an operator needs the others most when the log
 * is away. Which could not be told is told.
 */
export const collected = Effect.fnUntraced(function* (collectors: ReadonlyArray<Collector>) {
  const texts = yield* Effect.forEach(
    collectors,
    ({ text }) =>
      text.pipe(
        Effect.timeoutOption(collector_timeout),
        Effect.catchCause((cause) =>
          Effect.as(Effect.logDebug("Metrics cannot be told.", cause), Option.none<string>()),
        ),
      ),
    { concurrency: "unbounded" },
  )
  const told = collectors.map(
    ({ name: collector }, i): Sample => [
      texts[i] !== undefined && Option.isSome(texts[i]) ? 1 : 0,
      { collector },
    ],
  )
  const help = "1 where this part of the metrics could be told."
  return [
    ...texts.map(Option.getOrElse(() => "")),
    familyText({ name: "almanac_collector_up", type: "gauge", help }, told),
  ].join("")
})
