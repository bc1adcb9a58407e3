/** The mirror that subscribers read: what it copies, and which failures it survives. */
import { spawn } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { assert, it } from "@effect/vitest"
import {
  AckPolicy,
  DeliverPolicy,
  jetstream,
  jetstreamManager,
  PersistMode,
} from "@nats-io/jetstream"
import { connect, nanos } from "@nats-io/transport-node"
import { Effect, Layer, Logger, Redacted, Schedule } from "effect"
import { ownServerLayer } from "#adapters/bus/own-server.ts"
import { DataFolder } from "#adapters/data-folder/lock.ts"
import { publishedEventsJetStream } from "#adapters/published/jetstream.ts"
import { events_stream, events_subject } from "#adapters/published/stream-name.ts"
import { EventsConnection, NatsServer, undefinedIfMissing } from "#bus"
import { findBinary } from "../../../launcher/binaries.mjs"
import { describeWithServer, temporaryFolder } from "../../world/programs/nats.ts"

const quiet = Logger.layer([])

/** Our own server on a folder, with the stream of published events and its mirror. */
const over = (folder: string) =>
  Layer.fresh(
    publishedEventsJetStream(1).pipe(
      Layer.provideMerge(EventsConnection.layer),
      Layer.provideMerge(ownServerLayer()),
      Layer.provideMerge(DataFolder.layer(folder)),
      Layer.provideMerge(quiet),
    ),
  )

/** A subscriber's own connection, through the vendor's client. */
const subscriber = Effect.gen(function* () {
  const { servers, subscriber } = yield* NatsServer
  const { user = "", password = Redacted.make("") } = subscriber ?? {}
  const options = { servers: [...servers], user, pass: Redacted.value(password) }
  const connection = yield* Effect.acquireRelease(
    Effect.promise(() => connect(options)),
    (connection) => Effect.promise(() => connection.close()),
  )
  const jsm = yield* Effect.promise(() => jetstreamManager(connection))
  return { js: jetstream(connection), jsm }
})

const publish = Effect.fnUntraced(function* (...bodies: ReadonlyArray<string>) {
  const { js } = yield* EventsConnection
  yield* Effect.promise(async () => {
    for (const body of bodies) await js.publish("events.blob-storage.blob.made", body)
  })
})

/** Waits until the mirror holds this number of messages, up to this sequence. */
const mirrored = Effect.fnUntraced(function* (messages: number, last: number) {
  const { jsm } = yield* subscriber
  // The mirror is missing for a moment while it is recreated.
  const held = Effect.promise(async () => {
    const info = await jsm.streams.info(events_stream).catch(undefinedIfMissing)
    return [info?.state.messages, info?.state.last_seq]
  })
  yield* Effect.repeat(held, {
    until: ([now, last_seq]) => now === messages && last_seq === last,
    schedule: Schedule.spaced(20),
    times: 1500,
  })
  assert.deepEqual(yield* held, [messages, last])
}, Effect.scoped)

/** Bodies that the durable consumer has not read yet. */
const readBy = Effect.fnUntraced(function* (name: string, count: number) {
  const { js } = yield* subscriber
  return yield* Effect.promise(async () => {
    const consumer = await js.consumers.get(events_stream, name)
    const bodies: Array<string> = []
    for (let taken = 0; taken < count; taken++) {
      const message = await consumer.next({ expires: 10_000 })
      bodies.push(`${message?.seq} ${message?.string()}`)
      await message?.ackAck()
    }
    return bodies
  })
}, Effect.scoped)

const addDurable = Effect.fnUntraced(function* (durable_name: string) {
  const { jsm } = yield* subscriber
  const config = { durable_name, ack_policy: AckPolicy.Explicit }
  yield* Effect.promise(() => jsm.consumers.add(events_stream, config))
}, Effect.scoped)

/** The state that an earlier version left: the stream in the subscribers' account. */
const earlier = (folder: string) =>
  Effect.promise(async () => {
    const nats = join(folder, "nats")
    const port = 20_000 + (process.pid % 10_000)
    mkdirSync(nats, { recursive: true })
    const conf = join(nats, "earlier.conf")
    const ports = join(nats, "earlier-ports")
    mkdirSync(ports)
    writeFileSync(
      conf,
      `host: "127.0.0.1"
       port: ${port}
       jetstream { store_dir: ${JSON.stringify(join(nats, "jetstream"))}, sync_interval: always }
       accounts { SUBSCRIBERS { jetstream: enabled, users: [{ user: "a", password: "b" }] } }`,
    )
    const child = spawn(findBinary("nats-server")?.path ?? "", ["-c", conf], { stdio: "ignore" })
    const ended = new Promise((resolve) => child.once("close", resolve))
    const options = { servers: `nats://127.0.0.1:${port}`, user: "a", pass: "b" }
    const connection = await connect({
      ...options,
      maxReconnectAttempts: 50,
      waitOnFirstConnect: true,
    })
    const jsm = await jetstreamManager(connection)
    await jsm.streams.add({
      name: events_stream,
      subjects: [events_subject],
      allow_direct: true,
      deny_delete: true,
      deny_purge: true,
      persist_mode: PersistMode.Async,
      duplicate_window: nanos(1_000),
    })
    const js = jetstream(connection)
    for (const body of ["1", "2", "3"]) await js.publish("events.blob-storage.blob.made", body)
    await jsm.consumers.add(events_stream, { durable_name: "old", ack_policy: AckPolicy.Explicit })
    const consumer = await js.consumers.get(events_stream, "old")
    await (await consumer.next())?.ackAck()
    await connection.close()
    child.kill("SIGTERM")
    await ended
    await pause(50)
  })

describeWithServer("the mirror of the published events", () => {
  it.live("has each event under its sequence, and is there again after a restart", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      yield* Effect.gen(function* () {
        yield* publish("1", "2")
        yield* mirrored(2, 2)
        yield* addDurable("mine")
        assert.deepEqual(yield* readBy("mine", 1), ["1 1"])
      }).pipe(Effect.provide(over(folder)))
      yield* Effect.gen(function* () {
        yield* publish("3")
        yield* mirrored(3, 3)
        assert.deepEqual(yield* readBy("mine", 2), ["2 2", "3 3"])
      }).pipe(Effect.provide(over(folder)))
    }).pipe(Effect.scoped),
  )

  it.live("goes on over kills of the server, without a gap", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      yield* Effect.gen(function* () {
        yield* publish("1", "2")
        yield* mirrored(2, 2)
        const { pid } = yield* NatsServer
        const id = yield* pid
        assert(id !== undefined)
        process.kill(id, "SIGKILL")
        const { js } = yield* EventsConnection
        const send = Effect.tryPromise(() => js.publish("events.blob-storage.blob.made", "3"))
        yield* Effect.retry(send, { schedule: Schedule.spaced(50), times: 200 })
        const { jsm } = yield* EventsConnection
        const { state } = yield* Effect.promise(() => jsm.streams.info(events_stream))
        yield* mirrored(state.messages, state.last_seq)
      }).pipe(Effect.provide(over(folder)))
    }).pipe(Effect.scoped),
  )

  it.live(
    "is made again where its source was, and keeps durables where sequences go on",
    () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        yield* Effect.gen(function* () {
          yield* publish("1", "2")
          yield* mirrored(2, 2)
          yield* addDurable("mine")
          const { jsm } = yield* EventsConnection
          const again = (first_seq?: number) =>
            Effect.promise(async () => {
              const { config } = await jsm.streams.info(events_stream)
              await jsm.streams.delete(events_stream)
              await jsm.streams.add({ ...config, ...(first_seq && { first_seq }) })
            })
          yield* again(5)
          yield* publish("5")
          yield* mirrored(3, 5)
          assert.deepEqual(yield* readBy("mine", 3), ["1 1", "2 2", "5 5"])
          yield* again(1)
          yield* publish("other 1")
          yield* mirrored(1, 1)
          const { jsm: theirs } = yield* subscriber
          const names = yield* Effect.promise(() =>
            theirs.consumers.info(events_stream, "mine"),
          ).pipe(Effect.catchDefect(() => Effect.succeed("gone")))
          assert.equal(names, "gone")
        }).pipe(Effect.scoped, Effect.provide(over(folder)))
      }).pipe(Effect.scoped),
    60_000,
  )

  it.live(
    "takes over the stream and the durables of an earlier version",
    () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        yield* earlier(folder)
        yield* Effect.gen(function* () {
          yield* publish("4")
          yield* mirrored(4, 4)
          assert.deepEqual(yield* readBy("old", 3), ["2 2", "3 3", "4 4"])
          const { jsm } = yield* EventsConnection
          const left = yield* Effect.promise(() => jsm.consumers.list(events_stream).next())
          assert.deepEqual(
            left.map(({ name }) => name),
            ["MIRROR"],
          )
        }).pipe(Effect.provide(over(folder)))
      }).pipe(Effect.scoped),
    60_000,
  )

  it.live("is read by ordered consumers with filters, from any place", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      yield* Effect.gen(function* () {
        yield* publish("1", "2", "3")
        yield* mirrored(3, 3)
        const { js } = yield* subscriber
        const from = { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: 2 }
        const bodies = yield* Effect.promise(async () => {
          const consumer = await js.consumers.get(events_stream, {
            ...from,
            filter_subjects: ["events.blob-storage.>"],
          })
          const read: Array<string> = []
          for await (const message of await consumer.consume()) {
            if (read.push(message.string()) === 2) break
          }
          return read
        })
        assert.deepEqual(bodies, ["2", "3"])
      }).pipe(Effect.scoped, Effect.provide(over(folder)))
    }).pipe(Effect.scoped),
  )

  it.live("keeps what durable and ephemeral consumers acknowledged", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      yield* Effect.gen(function* () {
        yield* publish("1", "2", "3")
        yield* mirrored(3, 3)
        const { js, jsm } = yield* subscriber
        for (const kind of [{ durable_name: "mine" }, { inactive_threshold: 60_000_000_000 }]) {
          const info = yield* Effect.promise(async () => {
            const config = { ...kind, ack_policy: AckPolicy.Explicit }
            const { name } = await jsm.consumers.add(events_stream, config)
            const consumer = await js.consumers.get(events_stream, name)
            for await (const message of await consumer.fetch({ max_messages: 3 })) {
              assert.isTrue(await message.ackAck())
            }
            const info = await jsm.consumers.info(events_stream, name)
            assert.isTrue(await jsm.consumers.delete(events_stream, name))
            return info
          })
          assert.equal(info.ack_floor.stream_seq, 3)
        }
      }).pipe(Effect.scoped, Effect.provide(over(folder)))
    }).pipe(Effect.scoped),
  )
})
