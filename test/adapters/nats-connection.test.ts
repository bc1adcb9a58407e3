import { createServer } from "node:net"
import { assert, it as plain } from "@effect/vitest"
import { AckPolicy, DeliverPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream"
import { type NatsConnection as Connection, connect } from "@nats-io/transport-node"
import { Effect, Redacted } from "effect"
import { connectBus, EventsConnection, NatsConnection } from "#adapters/nats-connection.ts"
import { NatsServer } from "#adapters/nats-server.ts"
import { differencesOf, ensureStream } from "#adapters/nats-stream.ts"
import { describeNats } from "../nats.ts"

const events = {
  name: "ALMANAC_EVENTS",
  subjects: ["events.>"],
  deny_delete: true,
  deny_purge: true,
  allow_direct: true,
} as const

/** The stream of published events with `count` messages more, and the sequence of the last. */
const published = Effect.fnUntraced(function* (count: number) {
  const { js, jsm } = yield* EventsConnection
  yield* ensureStream(jsm, { ...events, subjects: [...events.subjects] })
  let last = 0
  for (let n = 1; n <= count; n++) {
    const sent = yield* Effect.promise(() => js.publish("events.blob-storage.blob.made", `${n}`))
    last = sent.seq
  }
  return last
})

/** A connection as somebody outside makes it: the vendor's client with the given login. */
const subscriber = Effect.gen(function* () {
  const { servers, subscriber } = yield* NatsServer
  return yield* asOutsider({
    servers: [...servers],
    user: subscriber?.user ?? "",
    pass: Redacted.value(subscriber?.password ?? Redacted.make("")),
  })
})

const asOutsider = (options: Parameters<typeof connect>[0]) =>
  Effect.acquireRelease(
    Effect.promise(() => connect(options)),
    (connection) => Effect.promise(() => connection.close()),
  )

/** The API's answer, or the connection's refusal to send: never a success by silence. */
const outcome = (connection: Connection, subject: string, body = "") =>
  Effect.promise(() =>
    connection.request(subject, body, { timeout: 1_000 }).then(
      (answer) => `answered ${answer.string()}`,
      (error: Error) => `refused ${error.message}`,
    ),
  )

describeNats("a subscriber", (it) => {
  it.effect("hears published events live", () =>
    Effect.gen(function* () {
      const connection = yield* subscriber
      yield* published(0)
      const heard = connection.subscribe("events.blob-storage.>", { max: 2 })
      yield* Effect.promise(() => connection.flush())
      yield* published(2)
      const subjects = yield* Effect.promise(async () => {
        const all: Array<string> = []
        for await (const message of heard) all.push(message.subject)
        return all
      })
      assert.deepEqual(subjects, Array(2).fill("events.blob-storage.blob.made"))
    }),
  )

  it.effect("reads with ordered consumers, from any sequence and by filters", () =>
    Effect.gen(function* () {
      const last = yield* published(5)
      const connection = yield* subscriber
      const js = jetstream(connection)
      const kinds = [
        { opt_start_seq: last - 4 },
        { opt_start_seq: last - 4, filter_subjects: "events.blob-storage.>" },
        { opt_start_seq: last - 4, filter_subjects: ["events.blob-storage.>", "events.x.>"] },
      ]
      for (const options of kinds) {
        const sequences = yield* Effect.promise(async () => {
          const consumer = await js.consumers.get("ALMANAC_EVENTS", options)
          const messages = await consumer.consume()
          const all: Array<number> = []
          for await (const message of messages) {
            all.push(message.seq)
            if (message.seq === last) break
          }
          await messages.close()
          await consumer.delete()
          return all
        })
        assert.deepEqual(
          sequences,
          [4, 3, 2, 1, 0].map((back) => last - back),
        )
      }
    }),
  )

  it.effect("reads with pushed ordered consumers", () =>
    Effect.gen(function* () {
      const last = yield* published(1)
      const js = jetstream(yield* subscriber)
      const seen = yield* Effect.promise(async () => {
        const consumer = await js.consumers.getPushConsumer("ALMANAC_EVENTS", {
          opt_start_seq: last,
        })
        const messages = await consumer.consume()
        for await (const message of messages) return message.seq
        return 0
      })
      assert.equal(seen, last)
    }),
  )

  it.effect("reads with durable and ephemeral consumers, and what it acknowledged is kept", () =>
    Effect.gen(function* () {
      const last = yield* published(3)
      const connection = yield* subscriber
      const jsm = yield* Effect.promise(() => jetstreamManager(connection))
      const from = { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: last - 2 }
      for (const name of ["mine", undefined]) {
        const read = Effect.promise(async () => {
          const kind = name ? { durable_name: name } : { inactive_threshold: 60_000_000_000 }
          const made = await jsm.consumers.add("ALMANAC_EVENTS", {
            ...from,
            ...kind,
            ack_policy: AckPolicy.Explicit,
          })
          const consumer = await jsm.jetstream().consumers.get("ALMANAC_EVENTS", made.name)
          for (let taken = 0; taken < 3; taken++) {
            const message = await consumer.next({ expires: 5_000 })
            assert.isTrue(await message?.ackAck())
          }
          return await jsm.consumers.info("ALMANAC_EVENTS", made.name)
        })
        const info = yield* read
        assert.equal(info.ack_floor.stream_seq, last)
        assert.isTrue(
          yield* Effect.promise(() => jsm.consumers.delete("ALMANAC_EVENTS", info.name)),
        )
      }
    }),
  )

  const forbidden = [
    "events.blob-storage.blob.forged",
    "commit.blob-storage.volume.n1",
    "command.blob-storage.volume.n1",
    "$KV.lease.conductor",
    "_INBOX.somebody",
    "_PUBLISHER.somebody",
    "$JS.API.STREAM.NAMES",
    "$JS.API.STREAM.LIST",
    "$JS.API.STREAM.CREATE.OTHER",
    "$JS.API.STREAM.UPDATE.ALMANAC_EVENTS",
    "$JS.API.STREAM.DELETE.ALMANAC_EVENTS",
    "$JS.API.STREAM.PURGE.ALMANAC_EVENTS",
    "$JS.API.STREAM.MSG.DELETE.ALMANAC_EVENTS",
    "$JS.API.STREAM.MSG.GET.ALMANAC_LOG",
    "$JS.API.DIRECT.GET.ALMANAC_LOG",
    "$JS.API.STREAM.INFO.ALMANAC_LOG",
    "$JS.API.STREAM.SNAPSHOT.ALMANAC_EVENTS",
    "$JS.API.STREAM.RESTORE.OTHER",
    "$JS.API.CONSUMER.LIST.ALMANAC_EVENTS",
    "$JS.API.CONSUMER.NAMES.ALMANAC_EVENTS",
    "$JS.API.CONSUMER.CREATE.ALMANAC_LOG.x",
    "$JS.API.CONSUMER.MSG.NEXT.ALMANAC_LOG.x",
    "$SYS.REQ.SERVER.PING",
  ]
  it.effect.each(forbidden)("may not send to %s", (subject) =>
    Effect.gen(function* () {
      yield* published(1)
      const { jsm } = yield* EventsConnection
      const before = yield* Effect.promise(() => jsm.streams.info("ALMANAC_EVENTS"))
      const body = JSON.stringify({ name: "OTHER", subjects: ["other"], seq: 1 })
      const said = yield* outcome(yield* subscriber, subject, body)
      assert.match(said, /^refused .*permissions violation/i)
      const after = yield* Effect.promise(() => jsm.streams.info("ALMANAC_EVENTS"))
      assert.deepEqual([after.state.last_seq, after.config], [before.state.last_seq, before.config])
      assert.equal(after.state.messages, before.state.messages)
      const names = yield* Effect.promise(() => jsm.streams.names().next())
      assert.deepEqual(names, ["ALMANAC_EVENTS"])
    }),
  )

  const unheard = ["commit.>", "command.>", "$KV.>", "_PUBLISHER.>", "$JS.>", ">", "$SYS.>"]
  it.effect.each(unheard)("may not listen to %s", (subject) =>
    Effect.gen(function* () {
      const connection = yield* subscriber
      const refusal = yield* Effect.promise(async () => {
        for await (const _ of connection.subscribe(subject)) return "heard something"
        return "ended without a refusal"
      }).pipe(Effect.catchDefect((error) => Effect.succeed(String(error))))
      assert.match(refusal, /permissions violation/i)
    }),
  )

  it.effect("cannot make the server deliver into the core, whatever a consumer names", () =>
    Effect.gen(function* () {
      yield* published(3)
      const { connection: core, jsm } = yield* NatsConnection
      yield* ensureStream(jsm, { name: "ALMANAC_LOG", subjects: ["commit.>"] })
      const heard: Array<string> = []
      core.subscribe("command.exact", {
        callback: (_, message) => void heard.push(message.subject),
      })
      yield* Effect.promise(() => core.flush())
      const connection = yield* subscriber
      const aims = ["command.exact", "commit.forged.x", "$JS.API.STREAM.DELETE.ALMANAC_LOG"]
      const own = ["events.forged.x", "$JS.API.STREAM.DELETE.ALMANAC_EVENTS"]
      for (const [n, deliver_subject] of [...aims, ...own].entries()) {
        const config = { name: `aim${n}`, deliver_subject, deliver_policy: "all", max_deliver: 1 }
        const body = JSON.stringify({ stream_name: "ALMANAC_EVENTS", config })
        yield* outcome(connection, `$JS.API.CONSUMER.CREATE.ALMANAC_EVENTS.aim${n}`, body)
      }
      // A reader of its own gets all messages after those consumers were made: they had their turn.
      const last = yield* published(1)
      const consumer = yield* Effect.promise(() =>
        jetstream(connection).consumers.get("ALMANAC_EVENTS", { opt_start_seq: last }),
      )
      assert.equal((yield* Effect.promise(() => consumer.next()))?.seq, last)
      yield* Effect.promise(() => core.flush())
      assert.deepEqual(heard, [])
      const log = yield* Effect.promise(() => jsm.streams.info("ALMANAC_LOG"))
      assert.equal(log.state.last_seq, 0)
      assert.equal(yield* published(0).pipe(Effect.andThen(lastPublished)), last)
    }),
  )

  it.effect("sees nothing of the core's streams", () =>
    Effect.gen(function* () {
      const { js, jsm } = yield* NatsConnection
      yield* ensureStream(jsm, { name: "ALMANAC_LOG", subjects: ["commit.>"] })
      yield* Effect.promise(() => js.publish("commit.a.b.c", "secret"))
      const { jsm: its } = yield* EventsConnection
      const names = yield* Effect.promise(() => its.streams.names().next())
      assert.notInclude(names, "ALMANAC_LOG")
    }),
  )
})

const lastPublished = Effect.gen(function* () {
  const { jsm } = yield* EventsConnection
  const info = yield* Effect.promise(() => jsm.streams.info("ALMANAC_EVENTS"))
  return info.state.last_seq
})

describeNats("a stream", (it) => {
  const wanted = {
    name: "CHECKED",
    subjects: ["checked.>"],
    deny_delete: true,
    deny_purge: true,
    allow_atomic: true,
    allow_direct: true,
    max_bytes: 1_000_000,
  }

  it.effect("is made with every option that was asked, and found again", () =>
    Effect.gen(function* () {
      const { jsm } = yield* NatsConnection
      const made = yield* ensureStream(jsm, wanted)
      assert.deepEqual(differencesOf(wanted, made.config), [])
      const found = yield* ensureStream(jsm, wanted)
      assert.equal(found.created, made.created)
    }),
  )

  it.effect("that was made otherwise is refused, with option, wanted and found", () =>
    Effect.gen(function* () {
      const { jsm } = yield* NatsConnection
      yield* ensureStream(jsm, { ...wanted, name: "OTHER", subjects: ["other.>"], max_age: 1e9 })
      const error = yield* Effect.flip(
        ensureStream(jsm, { ...wanted, name: "OTHER", subjects: ["other.>", "more.>"] }),
      )
      assert(error._tag === "StreamMismatch")
      const options = error.differences.map(({ option }) => option).sort()
      // A second without messages also bounds the window in which doubles are noticed.
      assert.deepEqual(options, ["duplicate_window", "max_age", "subjects"])
      assert.include(error.message, "OTHER")
      assert.include(error.message, "max_age is 1000000000, wanted 0")
      const left = yield* Effect.promise(() => jsm.streams.info("OTHER"))
      assert.deepEqual(left.config.subjects, ["other.>"])
    }),
  )

  it.effect("whose option the server rewrites is refused at once", () =>
    Effect.gen(function* () {
      const { jsm } = yield* NatsConnection
      const timers = { name: "TIMERS", subjects: ["timer.>"], allow_msg_schedules: true }
      const error = yield* Effect.flip(ensureStream(jsm, { ...timers, deny_purge: true }))
      assert(error._tag === "StreamMismatch")
      const rewritten = error.differences.find(({ option }) => option === "deny_purge")
      assert.deepEqual(rewritten, { option: "deny_purge", wanted: true, found: false })
    }),
  )

  it.effect("may grow, but not shrink below what it promised", () =>
    Effect.gen(function* () {
      const { jsm } = yield* NatsConnection
      const small = { ...wanted, name: "SIZED", subjects: ["sized.>"] }
      yield* ensureStream(jsm, small)
      const grown = yield* ensureStream(jsm, { ...small, max_bytes: 2_000_000, description: "x" })
      assert.equal(grown.config.max_bytes, 2_000_000)
      const error = yield* Effect.flip(ensureStream(jsm, { ...small, description: "x" }))
      assert.equal(error._tag, "StreamMismatch")
      const kept = yield* Effect.promise(() => jsm.streams.info("SIZED"))
      assert.equal(kept.config.max_bytes, 2_000_000)
    }),
  )

  it.effect("that the server refuses to make fails with its reason", () =>
    Effect.gen(function* () {
      const { jsm } = yield* NatsConnection
      yield* ensureStream(jsm, wanted)
      const error = yield* Effect.flip(ensureStream(jsm, { ...wanted, name: "OVERLAPPING" }))
      assert.equal(error._tag, "StreamFailed")
      assert.match(error.message, /OVERLAPPING.*overlap/)
    }),
  )
})

plain.live("a server without the API level that we need is refused", () =>
  Effect.gen(function* () {
    const url = yield* fakeServer({ version: "2.10.27", api: {}, unanswered: 0 })
    const error = yield* Effect.flip(connectBus({ servers: [url], login: {} }))
    assert.equal(error._tag, "NatsTooOld")
    for (const part of ["2.10.27", "level 0", "2.15"]) assert.include(error.message, part)
  }),
)

plain.live("a server whose JetStream answers late is asked again", () =>
  Effect.gen(function* () {
    const url = yield* fakeServer({ version: "2.15.0", api: { level: 9 }, unanswered: 1 })
    const { connection } = yield* connectBus({ servers: [url], login: {} })
    assert.isFalse(connection.isClosed())
  }),
)

interface Fake {
  readonly version: string
  /** What it says of its API in an account's information. */
  readonly api: object
  /** Questions for it that go unanswered first. */
  readonly unanswered: number
}

/** As much of a nats-server as a client needs to ask for its account. */
const fakeServer = ({ version, api, unanswered }: Fake) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly url: string; readonly close: () => void }>((resume) => {
      const info = { server_id: "fake", version, headers: true, max_payload: 1_048_576 }
      const account = JSON.stringify({ memory: 0, streams: 0, api })
      let questions = 0
      const server = createServer((socket) => {
        socket.on("error", () => socket.destroy())
        socket.write(`INFO ${JSON.stringify({ ...info, jetstream: true })}\r\n`)
        let sid = "1"
        socket.on("data", (bytes) => {
          const text = bytes.toString("latin1")
          sid = /SUB \S+ (\w+)\r\n/.exec(text)?.[1] ?? sid
          if (text.includes("PING\r\n")) socket.write("PONG\r\n")
          const [, reply] = /PUB \$JS\.API\.INFO (\S+) /.exec(text) ?? []
          if (reply === undefined) return
          questions += 1
          if (questions <= unanswered) return
          socket.write(`MSG ${reply} ${sid} ${account.length}\r\n${account}\r\n`)
        })
      })
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" ? address?.port : 0
        resume(Effect.succeed({ url: `nats://127.0.0.1:${port}`, close: () => server.close() }))
      })
    }),
    ({ close }) => Effect.sync(close),
  ).pipe(Effect.map(({ url }) => url))
