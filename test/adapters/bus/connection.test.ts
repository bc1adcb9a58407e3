import { createServer } from "node:net"
import { assert, it as plain } from "@effect/vitest"
import { Effect } from "effect"
import { connectBus, differencesOf, ensureStream, NatsConnection } from "#bus"
import { describeNats } from "../../world/programs/nats.ts"

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
      // A maximum age of one second also limits the deduplication window.
      assert.deepEqual(options, ["duplicate_window", "max_age", "subjects"])
      assert.include(error.message, "OTHER")
      assert.include(error.message, "max_age is 1000000000 instead of 0")
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
  /** The API field in the account information. */
  readonly api: object
  /** The number of initial requests that get no response. */
  readonly unanswered: number
}

/** The part of nats-server that a client needs to request its account information. */
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
