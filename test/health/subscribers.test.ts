/**
 * The status of NATS subscribers: how far each lags behind, and which events it can no longer read.
 */
import { assert, it } from "@effect/vitest"
import { AckPolicy, DeliverPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect, Layer, Logger, Redacted } from "effect"
import { ownServerLayer } from "#adapters/bus/own-server.ts"
import { DataFolder } from "#adapters/data-folder/lock.ts"
import { subscribersJetStream } from "#adapters/health/subscribers-jetstream.ts"
import { publishedEventsJetStream } from "#adapters/published/jetstream.ts"
import { events_stream } from "#adapters/published/stream-name.ts"
import { EventsConnection, NatsServer } from "#bus"
import { subscriberMetrics } from "#gateway/health/published-metrics.ts"
import { Subscribers } from "#projections/health/subscribers.ts"
import { parsed } from "../observability/exposition.ts"
import { describeWithServer, temporaryFolder } from "../world/programs/nats.ts"

/** Room for about ten events of the size below. */
const kept_bytes = 8_192
const body = "x".repeat(700)

const over = (folder: string) =>
  subscribersJetStream.pipe(
    Layer.provideMerge(publishedEventsJetStream(1, { bytes: kept_bytes, days: 1 })),
    Layer.provideMerge(EventsConnection.layer),
    Layer.provideMerge(ownServerLayer()),
    Layer.provideMerge(DataFolder.layer(folder)),
    Layer.provideMerge(Logger.layer([])),
    Layer.fresh,
  )

const subscriber = Effect.gen(function* () {
  const { servers, subscriber } = yield* NatsServer
  const { user = "", password = Redacted.make("") } = subscriber ?? {}
  const connection = yield* Effect.acquireRelease(
    Effect.promise(() => connect({ servers: [...servers], user, pass: Redacted.value(password) })),
    (connection) => Effect.promise(() => connection.close()),
  )
  const jsm = yield* Effect.promise(() => jetstreamManager(connection))
  return { js: jetstream(connection), jsm }
})

const publish = Effect.fnUntraced(function* (type: string, count: number) {
  const { js } = yield* EventsConnection
  yield* Effect.promise(async () => {
    for (let n = 0; n < count; n++) await js.publish(`events.blob-storage.blob.${type}`, body)
  })
})

/** The status once the mirror contains all events up to `last`. */
const known = Effect.fnUntraced(function* (last: number) {
  const { jsm } = yield* subscriber
  const state = Effect.promise(() => jsm.streams.info(events_stream).then(({ state }) => state))
  yield* Effect.repeat(Effect.andThen(Effect.sleep(20), state), {
    until: ({ last_seq }) => last_seq === last,
  })
  const now = yield* (yield* Subscribers).now
  return { ...now, of: new Map(now.behind.map((one) => [one.name, one])) }
})

describeWithServer("what is known of subscribers", () => {
  it.live("their lag in seconds, and events that were discarded before they read them", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      yield* Effect.gen(function* () {
        const { js, jsm } = yield* subscriber
        const add = (durable_name: string, more: object = {}) =>
          Effect.promise(() =>
            jsm.consumers.add(events_stream, {
              durable_name,
              ack_policy: AckPolicy.Explicit,
              ...more,
            }),
          )
        yield* publish("made", 2)
        yield* known(2)
        yield* add("away")
        yield* add("reads")
        yield* add("picky", { filter_subject: "events.*.*.never" })
        yield* add("fresh", { deliver_policy: DeliverPolicy.New })
        yield* Effect.promise(() => jsm.consumers.add(events_stream, { name: "passing" }))
        yield* Effect.sleep(1_000)

        const first = yield* known(2)
        assert.equal(first.count, 4, "one that is not durable keeps no place")
        assert.isAtLeast(first.of.get("away")?.lag_s ?? 0, 1)
        for (const name of ["picky", "fresh"]) {
          assert.deepEqual(first.of.get(name), { name, lag_s: 0, missed: 0 }, "none waits")
        }
        const consumer = yield* Effect.promise(() => js.consumers.get(events_stream, "reads"))
        const messages = yield* Effect.promise(() => consumer.fetch({ max_messages: 2 }))
        yield* Effect.promise(async () => {
          for await (const message of messages) if (!(await message.ackAck())) throw new Error()
        })
        assert.equal((yield* known(2)).of.get("reads")?.lag_s, 0, "idle, and it has all")

        yield* publish("made", 30)
        const later = yield* known(32)
        const kept = later.stored.find(({ name }) => name === "mirror")?.messages ?? 0
        assert.isBelow(kept, 20)
        assert.equal(later.of.get("away")?.missed, 32 - kept)
        assert.equal(later.of.get("reads")?.missed, 30 - kept)
        assert.equal(later.of.get("picky")?.missed, 0, "nothing that it wants was published")
        assert.equal(later.behind[0]?.name, "away", "the worst is the first")
        assert.equal(later.mirror_lag_s, 0)
        for (const { bytes, limit_bytes, oldest_s } of later.stored) {
          assert.equal(limit_bytes, kept_bytes)
          assert.isAtMost(bytes, limit_bytes)
          assert.isAbove(oldest_s, 0)
        }
        const families = parsed(yield* subscriberMetrics)
        const missed = families.get("almanac_subscriber_missed_events")?.samples
        assert.deepEqual(missed?.[0]?.labels, { consumer: "away" })
      }).pipe(Effect.scoped, Effect.provide(over(folder)))
    }).pipe(Effect.scoped),
  )
})
