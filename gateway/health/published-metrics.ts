/**
 * Metrics of the publisher, the stored published events and their NATS subscribers, as Prometheus
 * text.
 */
import { Effect } from "effect"
import { lagSeconds } from "#projections/health/follower.ts"
import { PublisherStatus } from "#projections/health/publisher-status.ts"
import { type StoredEvents, Subscribers } from "#projections/health/subscribers.ts"
import { familyText, plainText, type Sample } from "#schemas/metric.ts"

const publisher_lag = {
  name: "almanac_publisher_lag_seconds",
  type: "gauge",
  help: "Age of the oldest unpublished commit in seconds; 0: none. Only on the publishing process.",
} as const

/** The lag of this process's publisher behind the log. */
export const publisherMetrics = Effect.gen(function* () {
  const { position } = yield* PublisherStatus
  const lag = position === undefined ? [] : [[yield* lagSeconds("", position)] as const]
  return familyText(publisher_lag, lag)
})

const ofSubscribers = (name: string, help: string) =>
  ({ name: `almanac_subscriber_${name}`, type: "gauge", help }) as const

const subscriber_lag = ofSubscribers(
  "lag_seconds",
  "Age of the oldest event a durable consumer has not acknowledged, in seconds; 0: none.",
)
const subscriber_missed = ofSubscribers(
  "missed_events",
  "Events discarded before a durable consumer acknowledged them.",
)

const ofStored = (name: string, help: string) =>
  ({ name: `almanac_published_stream_${name}`, type: "gauge", help }) as const

/** The stored published events, and the progress of each durable consumer. */
export const subscriberMetrics = Effect.gen(function* () {
  const { stored, mirror_lag_s, count, behind } = yield* (yield* Subscribers).now
  const streams = (name: string, help: string, value: (one: StoredEvents) => number) =>
    familyText(
      ofStored(name, help),
      stored.map((one): Sample => [value(one), { stream: one.name }]),
    )
  const lags = behind.map(({ name, lag_s }): Sample => [lag_s, { consumer: name }])
  const missed = behind.map(({ name, missed }): Sample => [missed, { consumer: name }])
  return [
    streams("bytes", "Stored size of the published events in bytes.", ({ bytes }) => bytes),
    streams(
      "limit_bytes",
      "Stored size above which the oldest published events are discarded; 0: no limit.",
      ({ limit_bytes }) => limit_bytes,
    ),
    streams("messages", "Number of stored published events.", ({ messages }) => messages),
    streams(
      "oldest_seconds",
      "Age of the oldest stored published event in seconds; 0: none is stored.",
      ({ oldest_s }) => oldest_s,
    ),
    familyText(subscriber_lag, lags),
    familyText(subscriber_missed, missed),
    plainText("almanac_", [
      ["gauge", "subscribers", "Durable consumers of NATS subscribers.", count],
      [
        "gauge",
        "mirror_lag_seconds",
        "Age of the oldest event missing in the mirror for subscribers, in seconds; 0: none.",
        mirror_lag_s,
      ],
    ]),
  ].join("")
})
