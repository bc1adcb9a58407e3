/**
 * `node lease-child.ts <nats urls> <name> <file>`: waits for a lease. While it holds the lease, it
 * repeatedly appends a line to the file: `<nanoseconds> <name>-<term> held`, or `refused` once the
 * lease has expired by its own clock. If a file `<file>.stop` appears, the holder removes it and
 * pauses in the middle of its work. It never ends by itself.
 */
import { appendFileSync, existsSync, rmSync } from "node:fs"
import { Effect, Layer, Logger } from "effect"
import { inTerm, Leases } from "#actors/leases.ts"
import { leasesJetStream } from "#adapters/leases/jetstream.ts"
import { connectBus, NatsConnection } from "#bus"

const [urls = "", name = "", file = ""] = process.argv.slice(2)

const ttl_ms = 3_000
const pause_ms = 20

/**
 * Uses the machine's clock, which all processes share and which continues while one is paused.
 * Takes the time before checking the lease, because anything may happen between the check and a
 * write. Fencing protects the writes themselves.
 */
const line = (term: number) =>
  Effect.suspend(() => {
    if (existsSync(`${file}.stop`)) {
      rmSync(`${file}.stop`)
      process.kill(process.pid, "SIGSTOP")
    }
    const at = process.hrtime.bigint()
    const record = (what: string) =>
      Effect.sync(() => appendFileSync(file, `${at} ${name}-${term} ${what}\n`))
    return inTerm(record("held")).pipe(Effect.catch(() => record("refused")))
  })

let terms = 0
const main = Effect.flatMap(Leases, ({ hold }) =>
  hold(
    "work",
    Effect.sync(() => ++terms),
    (term) => Effect.forever(Effect.andThen(line(term), Effect.sleep(pause_ms))),
  ),
)

const bus = Layer.effect(NatsConnection, connectBus({ servers: urls.split(","), login: {} }))
const leases = leasesJetStream({ bucket: "paused", holder: name, ttl_ms, replicas: 3 })
await Effect.runPromise(
  main.pipe(Effect.provide(Layer.provide(leases, bus)), Effect.provide(Logger.layer([]))),
)
