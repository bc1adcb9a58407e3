/**
 * Named subscribers of the bus, each compromised in turn, and the user that all others share: none
 * of them reads, advances or deletes another's consumers. Source: decision 0174.
 */
import { assert, it } from "@effect/vitest"
import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream"
import { type NatsConnection as Connection, connect } from "@nats-io/transport-node"
import { Effect, Layer, Logger, Redacted, type Scope } from "effect"
import { ownServerLayer } from "#adapters/bus/own-server.ts"
import { DataFolder } from "#adapters/data-folder/lock.ts"
import { publishedEventsJetStream } from "#adapters/published/jetstream.ts"
import { events_stream } from "#adapters/published/stream-name.ts"
import { consumersOf, inboxOf } from "#adapters/published/subscriber-users.ts"
import { EventsConnection, NatsServer } from "#bus"
import { describeWithServer, temporaryFolder } from "../world/programs/nats.ts"
import { attack, jetstreamRequests, jetstreamSubjects } from "./bus-attack.ts"

const names = ["alpha", "beta"]
const shared = "subscriber"

const bus = Layer.unwrap(
  Effect.map(temporaryFolder, (folder) =>
    publishedEventsJetStream(1).pipe(
      Layer.provideMerge(EventsConnection.layer),
      Layer.provideMerge(ownServerLayer({ subscribers: names })),
      Layer.provideMerge(DataFolder.layer(folder)),
      Layer.provideMerge(Logger.layer([])),
    ),
  ),
)
type Bus = Layer.Success<typeof bus> | Scope.Scope

const live = (name: string, body: Effect.Effect<void, unknown, Bus>) =>
  it.live(name, () => body.pipe(Effect.scoped, Effect.provide(Layer.fresh(bus))), 120_000)

/** Connects as a subscriber does: with its own name, or as the shared user. */
const as = Effect.fnUntraced(function* (name: string) {
  const { servers, subscriber, subscribers } = yield* NatsServer
  const login = name === shared ? subscriber : subscribers.get(name)
  const { user = "", password = Redacted.make("") } = login ?? {}
  const options = { servers: [...servers], user, pass: Redacted.value(password) }
  const inboxPrefix = name === shared ? "_INBOX" : inboxOf(name)
  return yield* Effect.acquireRelease(
    Effect.promise(() => connect({ ...options, inboxPrefix, maxReconnectAttempts: 0 })),
    (connection) => Effect.promise(() => connection.close()),
  )
})

/** Publishes events with these numbers. */
const publish = (from: number, to: number) =>
  Effect.gen(function* () {
    const { js } = yield* EventsConnection
    for (let n = from; n <= to; n++) {
      yield* Effect.promise(() => js.publish("events.blob-storage.blob.made", `${n}`))
    }
  })

/** Creates a durable consumer that has read this many events. */
const durable = (connection: Connection, durable_name: string, count: number) =>
  Effect.promise(async () => {
    const jsm = await jetstreamManager(connection)
    await jsm.consumers.add(events_stream, { durable_name, ack_policy: AckPolicy.Explicit })
    return await readBy(connection, durable_name, count)
  })

const readBy = async (connection: Connection, name: string, count: number) => {
  const consumer = await jetstream(connection).consumers.get(events_stream, name)
  const read: Array<string> = []
  for (let n = 0; n < count; n++) {
    const message = await consumer.next({ expires: 10_000 })
    read.push(message?.string() ?? "none")
    await message?.ackAck()
  }
  return read
}

const stateOf = (connection: Connection, name: string) =>
  Effect.promise(async () => {
    const jsm = await jetstreamManager(connection)
    const { config, created, ack_floor, delivered, num_ack_pending } = await jsm.consumers.info(
      events_stream,
      name,
    )
    const places = [ack_floor.stream_seq, delivered.stream_seq, num_ack_pending]
    return { config, created, places }
  })

/** Subjects and replies that could harm any of a victim's consumers. */
const subjectsAgainst = (victim: string, own: string) => [
  ...jetstreamRequests(events_stream, victim),
  ...jetstreamSubjects(events_stream, victim),
  ...jetstreamRequests(events_stream, own),
  `$JS.ACK.${events_stream}.${victim}.1.3.3.1700000000000000000.0`,
  `$JS.API.CONSUMER.CREATE.${events_stream}.${victim}.events.>`,
]
const repliesAgainst = (victim: string) => [
  `$JS.API.CONSUMER.DELETE.${events_stream}.${victim}`,
  `$JS.API.CONSUMER.MSG.NEXT.${events_stream}.${victim}`,
  `$JS.ACK.${events_stream}.${victim}.1.3.3.1700000000000000000.0`,
  `${inboxOf(victim)}.x`,
]

describeWithServer("named subscribers of the bus", () => {
  live(
    "read by consumers of their own names",
    Effect.gen(function* () {
      yield* publish(1, 3)
      const alpha = yield* as("alpha")
      for (const name of consumersOf("alpha")) {
        assert.deepEqual(yield* durable(alpha, name, 3), ["1", "2", "3"])
      }
      const refused = yield* Effect.flip(
        Effect.tryPromise(async () => {
          const jsm = await jetstreamManager(alpha)
          await jsm.consumers.add(events_stream, { durable_name: "other" })
        }),
      )
      assert.include(String(refused.cause), "ermission")
    }),
  )

  for (const [attacker, victim] of [
    ["alpha", "beta"],
    ["beta", "alpha"],
    [shared, "alpha"],
    ["alpha", shared],
  ] as const) {
    live(
      `${attacker} changes nothing of what ${victim} has`,
      Effect.gen(function* () {
        yield* publish(1, 5)
        const theirs = yield* as(victim)
        const its = victim === shared ? "anything" : victim
        assert.deepEqual(yield* durable(theirs, its, 2), ["1", "2"])
        const before = yield* stateOf(theirs, its)
        const own = attacker === shared ? "own" : attacker
        const hostile = yield* as(attacker)
        yield* attack({
          connection: hostile,
          subjects: subjectsAgainst(its, own),
          replies: repliesAgainst(its),
          stream: events_stream,
          consumer: its,
        })
        yield* Effect.sleep(300)
        assert.deepEqual(yield* stateOf(theirs, its), before)
        yield* publish(6, 6)
        const rest = yield* Effect.promise(() => readBy(theirs, its, 4))
        assert.deepEqual(rest, ["3", "4", "5", "6"])
      }),
    )
  }

  live(
    "receive no replies of each other",
    Effect.gen(function* () {
      yield* publish(1, 3)
      const heard: Array<string> = []
      for (const name of [...names, shared]) {
        const spying = yield* as(name)
        const others = [...names.map(inboxOf), "_INBOX"].filter(
          (inbox) => inbox !== (name === shared ? "_INBOX" : inboxOf(name)),
        )
        for (const subject of [">", "*.>", ...others.map((inbox) => `${inbox}.>`)]) {
          const callback = (error: Error | null) => {
            if (error === null) heard.push(`${name} ${subject}`)
          }
          spying.subscribe(subject, { callback })
        }
        yield* Effect.promise(() => spying.flush())
      }
      for (const name of [...names, shared]) {
        yield* durable(yield* as(name), name === shared ? "anything" : name, 3)
      }
      assert.deepEqual(heard, [])
    }),
  )
})
