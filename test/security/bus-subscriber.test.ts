/**
 * The read-only user of the bus, compromised: none of its publishes, requests, subscriptions or
 * reply subjects changes the published events, the log or other readers' data.
 */
import { assert, it } from "@effect/vitest"
import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect, Layer, Logger, Redacted, Schedule, type Scope } from "effect"
import { mirror_api, mirror_consumer, mirror_deliveries, source_api } from "#adapters/bus/config.ts"
import { publishedEventsJetStream } from "#adapters/published/jetstream.ts"
import { events_stream } from "#adapters/published/stream-name.ts"
import { EventsConnection, ensureStream, NatsConnection, NatsServer } from "#bus"
import { describeWithServer, nats } from "../world/programs/nats.ts"
import {
  attack,
  heardOn,
  jetstreamRequests,
  jetstreamSubjects,
  spy,
  stateOf,
} from "./bus-attack.ts"

const forged = "events.share-protection.target.forged"
const consumer = "reader"

const bus = publishedEventsJetStream(1).pipe(
  Layer.provideMerge(nats),
  Layer.provideMerge(Logger.layer([])),
)
type Bus = Layer.Success<typeof bus> | Scope.Scope

const live = (name: string, body: Effect.Effect<void, unknown, Bus>) =>
  it.live(name, () => body.pipe(Effect.scoped, Effect.provide(Layer.fresh(bus))), 120_000)

/** Connects as an external subscriber does. */
const subscriber = Effect.gen(function* () {
  const { servers, subscriber } = yield* NatsServer
  const { user = "", password = Redacted.make("") } = subscriber ?? {}
  const options = { servers: [...servers], user, pass: Redacted.value(password) }
  return yield* Effect.acquireRelease(
    Effect.promise(() => connect({ ...options, maxReconnectAttempts: 0 })),
    (connection) => Effect.promise(() => connection.close()),
  )
})

const publish = (count: number) =>
  Effect.gen(function* () {
    const { js } = yield* EventsConnection
    for (let n = 0; n < count; n++) {
      yield* Effect.promise(() => js.publish("events.blob-storage.blob.made", `${n}`))
    }
  })

/** The mirror, as its owner sees it. */
const mirror = Effect.gen(function* () {
  const { connection } = yield* EventsConnection
  const options = { apiPrefix: mirror_api, checkAPI: false }
  const jsm = yield* Effect.promise(() => jetstreamManager(connection, options))
  const { config, created, state } = yield* Effect.promise(() => jsm.streams.info(events_stream))
  const { messages, first_seq, last_seq } = state
  return { config, created, messages, first_seq, last_seq }
})

const mirrored = (last: number) =>
  Effect.repeat(mirror, {
    until: ({ last_seq }) => last_seq === last,
    schedule: Schedule.spaced(20),
    times: 500,
  })

/** Streams and consumers of accounts that a subscriber has no access to. */
const others = Effect.gen(function* () {
  const [core, events] = [yield* NatsConnection, yield* EventsConnection]
  return { core: yield* stateOf(core.jsm), events: yield* stateOf(events.jsm) }
})

/** Prepares the log's stream with a commit, and published events. */
const given = Effect.gen(function* () {
  const { js, jsm } = yield* NatsConnection
  yield* ensureStream(jsm, { name: "ALMANAC_LOG", subjects: ["commit.>"] })
  yield* Effect.promise(() => js.publish("commit.share-protection.target.x", "commit"))
  yield* publish(3)
  yield* mirrored(3)
  // The mirror acknowledges once a second.
  const { jsm: its } = yield* EventsConnection
  const feeding = Effect.promise(() => its.consumers.info(events_stream, mirror_consumer))
  yield* Effect.repeat(feeding, {
    until: ({ ack_floor }) => ack_floor.stream_seq === 3,
    schedule: Schedule.spaced(50),
    times: 200,
  })
})

/** Subjects on which a reply or a consumer's delivery would do harm. */
const replies = [
  forged,
  "commit.share-protection.target.forged",
  "_INBOX.somebody.else",
  "$KV.leases.conductor",
  mirror_deliveries,
  `${source_api}.CONSUMER.RESET.${events_stream}.MIRROR`,
  `${mirror_api}.STREAM.DELETE.${events_stream}`,
  `$JS.FC.${events_stream}.MIRROR.x`,
  `$JS.API.STREAM.DELETE.${events_stream}`,
  `$JS.API.STREAM.PURGE.${events_stream}`,
  `$JS.API.CONSUMER.DELETE.${events_stream}.MIRROR`,
  `$JS.API.CONSUMER.RESET.${events_stream}.MIRROR`,
  `$JS.API.CONSUMER.CREATE.${events_stream}.stolen`,
  `$JS.ACK.${events_stream}.MIRROR.1.1.1.1700000000000000000.0`,
]

const subjects = [
  ...[forged, "commit.share-protection.target.forged", "command.share-protection.job.x"],
  ...["worker.worker-1.command", "agent.worker-1.offer", "live.share-protection.worker.worker-1"],
  ...["conductor.share-protection.image", "worker-users.admit", "$KV.leases.conductor", "$O.x"],
  ...["_INBOX.somebody.else", "_R_.x", "$MQTT.x", mirror_deliveries, "forged.x"],
  `${source_api}.CONSUMER.RESET.${events_stream}.MIRROR`,
  ...jetstreamRequests(events_stream, consumer),
  ...jetstreamRequests(events_stream, "MIRROR"),
  ...jetstreamRequests("ALMANAC_LOG", consumer),
  ...jetstreamSubjects(events_stream, consumer),
  ...jetstreamSubjects(events_stream, "MIRROR"),
  ...jetstreamRequests(events_stream, consumer).map((subject) => subject.replace("$JS", "MIRROR")),
]

describeWithServer("the subscribers' user of the bus", () => {
  live(
    "can store, change, deliver or delete nothing",
    Effect.gen(function* () {
      yield* given
      const [before, its] = [yield* others, yield* mirror]
      const stops = [
        yield* spy((yield* NatsConnection).connection),
        yield* spy((yield* EventsConnection).connection),
      ]
      const attacker = yield* subscriber
      const stream = events_stream
      yield* attack({ connection: attacker, subjects, replies, stream, consumer })
      yield* Effect.sleep(200)
      const [core = [], events = []] = yield* Effect.promise(() =>
        Promise.all(stops.map((stop) => stop())),
      )
      assert.deepEqual(core, [])
      // Traffic of the mirror and of its owner, whose responses go to its inbox.
      const usual = [
        mirror_deliveries,
        "$JS.FC.",
        "$JS.API.",
        `${mirror_api}.`,
        "_INBOX.",
        "$JS.EVENT",
      ]
      assert.deepEqual(
        events.filter((subject) => !usual.some((start) => subject.startsWith(start))),
        [],
      )
      assert.notIncludeMembers(
        events,
        replies.filter((reply) => reply !== mirror_deliveries),
      )
      assert.deepEqual(yield* others, before)
      assert.deepEqual(yield* mirror, its)
      assert.isFalse(attacker.isClosed())
      // The mirror still works.
      yield* publish(2)
      yield* mirrored(5)
    }),
  )

  const deliveries = [...replies, "command.exact", "worker.worker-1.command", "mirror.>"]
  live(
    "cannot make a consumer deliver to others",
    Effect.gen(function* () {
      yield* given
      const [before, its] = [yield* others, yield* mirror]
      const stop = yield* spy((yield* NatsConnection).connection)
      const attacker = yield* subscriber
      for (const [n, deliver_subject] of deliveries.entries()) {
        for (const headers_only of [true, false]) {
          const name = `aim${n}${headers_only}`
          const config = { name, deliver_subject, headers_only, ack_policy: "none" }
          const body = JSON.stringify({
            stream_name: events_stream,
            config: { ...config, deliver_policy: "all", flow_control: true, idle_heartbeat: 1e8 },
          })
          const subject = `$JS.API.CONSUMER.CREATE.${events_stream}.${name}`
          yield* Effect.promise(() => attacker.request(subject, body, { timeout: 2_000 }))
        }
      }
      yield* publish(5)
      yield* mirrored(8)
      yield* Effect.sleep(500)
      assert.deepEqual(yield* Effect.promise(stop), [])
      const { core, events } = yield* others
      assert.deepEqual(core, before.core)
      assert.deepEqual(Object.keys(events), Object.keys(before.events))
      const now = yield* mirror
      assert.deepEqual([now.created, now.messages, now.last_seq], [its.created, 8, 8])
    }),
  )

  live(
    "can exhaust only its own consumers",
    Effect.gen(function* () {
      yield* given
      const attacker = yield* subscriber
      const refused = yield* Effect.promise(async () => {
        const jsm = await jetstreamManager(attacker)
        const config = { ack_policy: AckPolicy.Explicit }
        for (let n = 0; n < 5_000; n += 100) {
          const some = Array.from({ length: 100 }, (_, i) => ({
            durable_name: `d${n + i}`,
            ...config,
          }))
          const made = some.map((one) => jsm.consumers.add(events_stream, one))
          const failures = (await Promise.allSettled(made)).filter(
            ({ status }) => status === "rejected",
          )
          if (failures.length > 0) return n
        }
        return undefined
      })
      assert.equal(refused, 1000)
      const { connection } = yield* EventsConnection
      const read = yield* Effect.promise(async () => {
        const consumer = await jetstream(connection).consumers.get(events_stream)
        return (await consumer.next())?.seq
      })
      assert.equal(read, 1)
      yield* publish(1)
      yield* mirrored(4)
    }),
  )

  live(
    "hears nothing but its own answers",
    Effect.gen(function* () {
      yield* given
      const attacker = yield* subscriber
      const wanted = [
        ...[">", "*", "*.*", "events.>", "commit.>", "command.>", "worker.>", "agent.>", "live.>"],
        ...[
          "conductor.>",
          "mirror.>",
          mirror_deliveries,
          "$KV.>",
          "$JS.>",
          "$JS.API.>",
          "$JS.ACK.>",
        ],
        ...["$JS.FC.>", "$JS.EVENT.>", "$SYS.>", "_R_.>", "MIRROR.>", "EVENTS.>"],
      ]
      for (const { connection } of [yield* NatsConnection, yield* EventsConnection]) {
        assert.deepEqual(yield* heardOn(attacker, connection, wanted), [])
        assert.deepEqual(yield* heardOn(attacker, connection, ["_INBOX.>"]), [])
      }
    }),
  )
})
