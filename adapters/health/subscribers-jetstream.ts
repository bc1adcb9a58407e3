/** Reads the size of the published events and the lag of subscribers from JetStream. */
import {
  type ConsumerInfo,
  type JetStreamManager,
  jetstreamManager,
  type StreamInfo,
} from "@nats-io/jetstream"
import { Clock, Effect, Layer } from "effect"
import { mirror_api, mirror_consumer } from "#adapters/bus/config.ts"
import { nextOf } from "#adapters/published/jetstream.ts"
import { events_stream, events_subject } from "#adapters/published/stream-name.ts"
import { EventsConnection, undefinedIfMissing } from "#bus"
import { type StoredEvents, type Subscriber, Subscribers } from "#projections/health/subscribers.ts"
import { PublishFailed } from "#projections/published-events.ts"
import { causeText } from "#schemas/cause-text.ts"

const ms_per_s = 1000

/** Maximum subscribers whose lag in seconds is read: those with the most pending events. */
const subscribers_max = 100
/** Maximum concurrent reads of messages. */
const reads_at_once = 16

/** Seconds since a time of the server; clocks may differ. */
const ageOf = (time_ms: number, now_ms: number) => Math.max(0, now_ms - time_ms) / ms_per_s

const storedOf = (
  name: StoredEvents["name"],
  { config, state }: StreamInfo,
  now_ms: number,
): StoredEvents => ({
  name,
  bytes: state.bytes,
  limit_bytes: Math.max(0, config.max_bytes),
  messages: state.messages,
  oldest_s: state.messages === 0 ? 0 : ageOf(Date.parse(state.first_ts), now_ms),
})

const filtersOf = ({ config }: ConsumerInfo) => {
  const { filter_subject, filter_subjects = [] } = config
  return filter_subject === undefined ? filter_subjects : [filter_subject]
}

/**
 * Number of events discarded before a consumer acknowledged them. A filtered consumer without
 * pending events has reached the end, regardless of its acknowledged
 * sequence.
 */
const missedBy = (consumer: ConsumerInfo, { state }: StreamInfo) => {
  const { ack_floor, num_pending, num_ack_pending } = consumer
  const is_idle = num_pending + num_ack_pending === 0
  if (is_idle && filtersOf(consumer).length > 0) return 0
  return Math.max(0, state.first_seq - 1 - ack_floor.stream_seq)
}

const pendingOf = ({ num_pending, num_ack_pending }: ConsumerInfo) => num_pending + num_ack_pending

/** The durable consumers of subscribers. Ordered consumers have no stored position. */
const durables = async (jsm: JetStreamManager) => {
  const found: Array<ConsumerInfo> = []
  for await (const consumer of jsm.consumers.list(events_stream)) {
    const { durable_name } = consumer.config
    if (durable_name !== undefined && durable_name !== mirror_consumer) found.push(consumer)
  }
  return found
}

const lagOf = async (source: JetStreamManager, consumer: ConsumerInfo, now_ms: number) => {
  if (pendingOf(consumer) === 0) return 0
  const filters = filtersOf(consumer)
  const subjects = filters.length === 0 ? [events_subject] : filters
  // The mirror has the same sequences as its source.
  const next = await nextOf(source, consumer.ack_floor.stream_seq, subjects)
  return next === undefined ? 0 : ageOf(next.time.getTime(), now_ms)
}

/** The subscribers furthest behind, with their lag. */
const mostBehind = async (
  source: JetStreamManager,
  all: ReadonlyArray<{ readonly consumer: ConsumerInfo; readonly missed: number }>,
  now_ms: number,
) => {
  const worst = all
    .toSorted(
      (one, other) =>
        other.missed - one.missed || pendingOf(other.consumer) - pendingOf(one.consumer),
    )
    .slice(0, subscribers_max)
  const behind: Array<Subscriber> = []
  for (let from = 0; from < worst.length; from += reads_at_once) {
    const batch = worst.slice(from, from + reads_at_once).map(async ({ consumer, missed }) => ({
      name: consumer.name,
      lag_s: await lagOf(source, consumer, now_ms),
      missed,
    }))
    behind.push(...(await Promise.all(batch)))
  }
  return behind
}

const readSubscribers = async (
  source: JetStreamManager,
  mirror: JetStreamManager,
  now_ms: number,
) => {
  const events = await source.streams.info(events_stream).catch(undefinedIfMissing)
  // A server without the mirror's account does not respond.
  const copy = await mirror.streams.info(events_stream).catch(() => undefined)
  const stored = [
    ...(events === undefined ? [] : [storedOf("events", events, now_ms)]),
    ...(copy === undefined ? [] : [storedOf("mirror", copy, now_ms)]),
  ]
  if (events === undefined) return { stored, mirror_lag_s: 0, count: 0, behind: [] }
  const stream = copy ?? events
  const all = (await durables(copy === undefined ? source : mirror)).map((consumer) => ({
    consumer,
    missed: missedBy(consumer, stream),
  }))
  const unmirrored = copy && (await nextOf(source, copy.state.last_seq, [events_subject]))
  return {
    stored,
    mirror_lag_s: unmirrored === undefined ? 0 : ageOf(unmirrored.time.getTime(), now_ms),
    count: all.length,
    behind: await mostBehind(source, all, now_ms),
  }
}

export const subscribersJetStream = Layer.effect(
  Subscribers,
  Effect.gen(function* () {
    const { connection, jsm } = yield* EventsConnection
    const mirror = yield* Effect.promise(() =>
      jetstreamManager(connection, { apiPrefix: mirror_api, checkAPI: false }),
    )
    const now = Effect.flatMap(Clock.currentTimeMillis, (now_ms) =>
      Effect.tryPromise({
        try: () => readSubscribers(jsm, mirror, now_ms),
        catch: (cause) => new PublishFailed({ detail: causeText(cause) }),
      }),
    )
    return Subscribers.of({ now })
  }),
)
