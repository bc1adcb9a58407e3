/** A log with generations on the test's server, with counters in it. */
import { mkdtempSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { Generation } from "#actors/system/generation.ts"
import { verify } from "#actors/system/verification.ts"
import { rollLog } from "#adapters/log/roll.ts"
import { NatsConnection } from "#bus"
import { Log, type Recorded } from "#events/log.ts"
import { findGenerations, type GenerationsOptions, logGenerations } from "#journal"
import { Count, Counter } from "../counter.ts"
import { temporaryFolder } from "../programs/nats.ts"

let logs = 0

/** The streams of different logs share no subjects, because each test deletes its own. */
export const fresh = Effect.acquireRelease(
  Effect.gen(function* () {
    const folder = mkdtempSync(join(yield* temporaryFolder, "log-"))
    return { name: `GENERATIONS_${++logs}`, folder, replicas: 1 } satisfies GenerationsOptions
  }),
  ({ name }) =>
    Effect.gen(function* () {
      const { jsm } = yield* NatsConnection
      const { current, others } = yield* findGenerations(jsm, name)
      for (const { stream } of [current, ...others]) {
        yield* Effect.promise(() => jsm.streams.delete(stream).catch(() => false))
      }
    }).pipe(Effect.orDie),
)

/** Opens the log as at startup, runs `body`, and closes the log. */
export const opened = <A, E>(
  options: GenerationsOptions,
  body: Effect.Effect<A, E, Log | Commands | NatsConnection>,
) =>
  Effect.provide(body, Layer.fresh(Layer.provideMerge(host, logGenerations(options))), {
    local: true,
  })

export const count = Effect.fnUntraced(function* (id: string, n: number) {
  const commands = yield* Commands
  const at = new Date(Date.UTC(2026, 10, 20, 8, n)).toISOString()
  const origin = { command_id: `${id}-${n}`, actor: "test", at }
  return yield* commands.send(origin, address(Counter, id, Count.make({ by: n })))
})

/** Counters that change often, occasionally, and once. */
export const written = Effect.gen(function* () {
  for (let n = 1; n <= 20; n++) {
    yield* count("often", n)
    if (n % 7 === 0) yield* count("rarely", n)
    if (n <= 3) yield* count(`once-${n}`, n)
  }
})

/** A log with those counters in its second generation. */
export const rolled = Effect.gen(function* () {
  const options = yield* fresh
  yield* opened(options, written)
  return { options, ...(yield* rollLog(options)) }
})

const plain = ({ position, stream, hash, commit }: Recorded) => ({ position, stream, hash, commit })

export const all = Effect.fnUntraced(function* (part = "", after = 0) {
  const log = yield* Log
  return (yield* Stream.runCollect(log.read(part, after))).map(plain)
})

/** Everything that a reader can query from the log. */
export const logState = Effect.gen(function* () {
  const log = yield* Log
  const lasts = (yield* Stream.runCollect(log.lasts("test"))).map(plain)
  return {
    lasts,
    loads: (yield* Effect.forEach(lasts, ({ stream }) => log.load(stream))).map(
      (one) => one && plain(one),
    ),
    head: yield* log.head("test"),
    all: yield* all("test"),
    later: yield* all("test", 11),
    one: yield* all("test.counter.rarely"),
    followed: (yield* Stream.runCollect(Stream.take(log.follow("test", 5), lasts.length))).map(
      plain,
    ),
  }
})

export const whole = Effect.gen(function* () {
  const { faults, commits, position } = yield* verify({ deciders: [Counter, Generation] })
  assert.deepEqual(faults, [])
  assert.equal(commits, position)
})
