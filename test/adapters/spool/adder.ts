/**
 * Adds searches to a spool and records them until it is killed: numbers from `first` on, several
 * concurrently. Prints the last number added and the last number written. Run by
 * spool-crash.test.ts, which passes the bus login in the environment.
 */
import { writeSync } from "node:fs"
import { Effect, Layer, Redacted } from "effect"
import { searches } from "#actors/carrier-search/search.ts"
import { host } from "#actors/host.ts"
import { spooler } from "#actors/spooler.ts"
import { type SpoolCall, spoolThread } from "#adapters/spool/call.ts"
import { spoolOver } from "#adapters/spool/sqlite.ts"
import { connectBus, NatsConnection } from "#bus"
import { logJetStream } from "#journal"
import { searchFact } from "../../world/spooled.ts"

const [path = "", stream = "", first = "1"] = process.argv.slice(2)
const { SERVER = "", LOGIN_USER = "", LOGIN_PASSWORD = "" } = process.env

const bus = Layer.effect(
  NatsConnection,
  connectBus({
    servers: [SERVER],
    login: { user: LOGIN_USER, password: Redacted.make(LOGIN_PASSWORD) },
  }),
)
const around = host.pipe(
  Layer.provideMerge(logJetStream({ stream, head: `commit-${stream}` })),
  Layer.provide(bus),
)

const program = Effect.gen(function* () {
  const ask = spoolThread({ path, now_ms: Date.now() })
  const loud: SpoolCall = (question) =>
    Effect.tap(ask(question), () =>
      Effect.sync(() => {
        if (question.call !== "keep") return
        const { start } = JSON.parse(question.rows.at(-1)?.fact ?? "{}")
        writeSync(1, `written ${start}\n`)
      }),
    )
  const spool = yield* spoolOver(path, searches.fact, yield* ask({ call: "open" }), loud)
  yield* Effect.forkScoped(spooler({ spool, kind: searches, node_id: "node-1" }))
  for (let n = Number(first); ; ) {
    for (let i = n % 17; i >= 0; i--) yield* spool.add(searchFact(n++))
    writeSync(1, `added ${n - 1}\n`)
    yield* Effect.sleep(n % 5)
  }
})
await Effect.runPromise(Effect.provide(Effect.scoped(program), around))
