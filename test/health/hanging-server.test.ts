/** An embedded nats-server that hangs: it is restarted, and no acknowledged write is lost. */
import { assert, it } from "@effect/vitest"
import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect, Logger, Redacted } from "effect"
import { ownServer } from "#adapters/bus/own-server.ts"
import { DataFolder, lockDataFolder } from "#adapters/data-folder/lock.ts"
import { describeWithServer, temporaryFolder } from "../world/programs/nats.ts"

/** The default is more than a minute; these values only detect the hang sooner. */
const liveness = { ping_ms: 300, probe_ms_max: 200, unanswered_max: 3 }

/** A hung process does not handle SIGTERM; it is killed five seconds later. */
const restart_ms_max = 30_000

describeWithServer("a nats-server that hangs", () => {
  it.live(
    "is restarted, but not after a short pause",
    () =>
      Effect.gen(function* () {
        const lines: Array<string> = []
        const logged = Logger.layer([
          Logger.make(({ message }) => void lines.push(String(message))),
        ])
        yield* Effect.gen(function* () {
          const folder = yield* lockDataFolder(yield* temporaryFolder)
          const server = yield* Effect.provideService(
            ownServer({ patience: liveness }),
            DataFolder,
            folder,
          )
          const { user = "", password = Redacted.make("") } = server.core
          const connection = yield* Effect.acquireRelease(
            Effect.promise(() =>
              connect({
                servers: [...server.servers],
                user,
                pass: Redacted.value(password),
                maxReconnectAttempts: -1,
                reconnectTimeWait: 50,
                pingInterval: 200,
              }),
            ),
            (one) => Effect.promise(() => one.close()),
          )
          const jsm = yield* Effect.promise(() => jetstreamManager(connection))
          yield* Effect.promise(() => jsm.streams.add({ name: "KEPT", subjects: ["kept.>"] }))
          yield* Effect.promise(() => jetstream(connection).publish("kept.x", "acknowledged"))
          const pid = (yield* server.pid) ?? assert.fail("no server")

          process.kill(pid, "SIGSTOP")
          yield* Effect.sleep(liveness.ping_ms)
          process.kill(pid, "SIGCONT")
          yield* Effect.sleep(2 * liveness.unanswered_max * liveness.ping_ms)
          assert.equal(yield* server.pid, pid, "the same process, which only paused")

          process.kill(pid, "SIGSTOP")
          const next = yield* server.pid.pipe(
            Effect.tap(() => Effect.sleep(50)),
            Effect.repeat({ until: (now) => now !== undefined && now !== pid }),
            Effect.timeout(restart_ms_max),
          )
          assert.isDefined(next)
          assert.throws(() => process.kill(pid, 0), /ESRCH/, "the one that hung is gone")
          const state = Effect.tryPromise(() => jsm.streams.info("KEPT")).pipe(
            Effect.retry({ times: 50 }),
          )
          assert.equal((yield* state).state.messages, 1)
        }).pipe(Effect.scoped, Effect.provide(logged))
        const why = lines.find((line) => line.startsWith("nats-server exited"))
        assert.match(why ?? "", /it did not respond for 0\.9 s/)
      }).pipe(Effect.scoped),
    60_000,
  )
})
