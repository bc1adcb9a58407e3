/** A spool whose process is killed between any two steps and at random moments. */
import { spawn } from "node:child_process"
import { copyFileSync, existsSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger, Redacted, Stream } from "effect"
import { TestClock } from "effect/testing"
import { searches } from "#actors/carrier-search/search.ts"
import { Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import type { Spool } from "#actors/spool.ts"
import { spooler } from "#actors/spooler.ts"
import { spoolFile } from "#adapters/spool/file.ts"
import { spoolOver, spoolSqlite } from "#adapters/spool/sqlite.ts"
import { connectBus, NatsConnection, NatsServer } from "#bus"
import type { SearchEvent } from "#events/carrier-search/search.ts"
import { Log } from "#events/log.ts"
import { logJetStream, logMemory } from "#journal"
import { SearchFact } from "#schemas/carrier-search/search.ts"
import { describeNats, temporaryFolder } from "../../world/programs/nats.ts"
import { proxy } from "../../world/proxy.ts"
import { seeded } from "../../world/seeded.ts"
import { searchFact, until } from "../../world/spooled.ts"

const node_id = "node-1"
const kind = searches

const recorded = Effect.gen(function* () {
  const log = yield* Log
  const commits = yield* Stream.runCollect(log.read("carrier-search.search"))
  // This part of the log contains only searches.
  const events = commits.flatMap(({ commit }) => commit.events as ReadonlyArray<SearchEvent>)
  return events.map(({ start }) => start)
})

/** The files that a kill at this moment leaves, opened from a copy. */
const left = (path: string, to: string) => {
  for (const suffix of ["", "-wal"]) {
    if (existsSync(path + suffix)) copyFileSync(path + suffix, to + suffix)
  }
  const ask = spoolFile(to, 0)
  const { rows } = ask({ call: "scan", after: 0, max: 100_000 })
  ask({ call: "close" })
  // The rows were written with this schema.
  return rows.map(({ fact }) => (JSON.parse(fact) as SearchFact).start)
}

/** Each number occurs once, in the order in which they were added. */
const assertInOrder = (numbers: ReadonlyArray<number>, hint: string) => {
  for (const [i, n] of numbers.slice(1).entries()) assert.isAbove(n, numbers[i] ?? 0, hint)
}

/** A spool whose file is used in this thread, so that nothing waits except for the test clock. */
const spoolHere = Effect.fnUntraced(function* (path: string) {
  const file = spoolFile(path, 0)
  const held = file({ call: "open" })
  return yield* spoolOver(path, SearchFact, held, (question) => Effect.sync(() => file(question)))
})

const emptied = (spool: Spool<SearchFact>) =>
  until(Effect.map(spool.scan(0, 1), ({ length }) => length === 0))

const silent = Logger.layer([])
const numbers = (count: number) => Array.from({ length: count }, (_, i) => i + 1)

/** Runs until step `stop_at`, never past it, and then calls `onStop`. */
const stoppedAt = (stop_at: number, onStop: () => void) => {
  let step = 0
  const gate = Effect.suspend(() => {
    if (step > stop_at) return Effect.never
    if (step++ < stop_at) return Effect.void
    onStop()
    return Effect.never
  })
  return {
    steps: () => step,
    around: <A, E, R>(work: Effect.Effect<A, E, R>) =>
      Effect.andThen(
        gate,
        Effect.tap(work, () => gate),
      ),
  }
}

/** Runs a spool that is killed at a step, and returns the contents of its file and of the log. */
const killedAt = Effect.fnUntraced(function* (stop_at: number, path: string, copy: string) {
  const commands = yield* Commands
  let kept: ReadonlyArray<number> = []
  let stopped = false
  const { around } = stoppedAt(stop_at, () => {
    kept = left(path, copy)
    stopped = true
  })
  const spool = yield* spoolHere(path)
  const mortal: Spool<SearchFact> = {
    epoch: spool.epoch,
    add: (fact) => around(spool.add(fact)),
    scan: (after, max) => around(spool.scan(after, max)),
    acknowledge: (cursor) => around(spool.acknowledge(cursor)),
  }
  const send = Commands.of({ send: (...sent) => around(commands.send(...sent)) })
  const recording = yield* spooler({ spool: mortal, kind, node_id }).pipe(
    Effect.provideService(Commands, send),
    Effect.forkChild,
  )
  const adding = yield* Effect.forkChild(
    Effect.forEach(numbers(3), (n) => Effect.delay(mortal.add(searchFact(n)), n * 90)),
  )
  yield* TestClock.adjust(2_000)
  const records = yield* recorded
  yield* Fiber.interrupt(recording)
  yield* Fiber.interrupt(adding)
  if (!stopped) kept = left(path, copy)
  return { stopped, wanted: new Set([...kept, ...records]) }
})

describe("a spool that is killed", () => {
  it.effect(
    "between any two steps loses nothing of what was written, and doubles nothing",
    () =>
      Effect.gen(function* () {
        let stops = 0
        // Every run is identical up to its kill, so facts written in one run are also written in
        // the next.
        const written = new Set<number>()
        for (let stop_at = 0, stopped = true; stopped; stop_at++) {
          yield* Effect.gen(function* () {
            const folder = yield* temporaryFolder
            const [path, copy] = [join(folder, "a.sqlite"), join(folder, "b.sqlite")]
            const first = yield* Effect.scoped(killedAt(stop_at, path, copy))
            const spool = yield* spoolHere(copy)
            yield* spool.add(searchFact(9))
            const recording = yield* Effect.forkChild(spooler({ spool, kind, node_id }))
            yield* TestClock.adjust(2_000)
            yield* Fiber.interrupt(recording)
            const records = yield* recorded
            for (const n of first.wanted) written.add(n)
            const wanted = [...written, 9].sort((a, b) => a - b)
            assert.deepEqual(records, wanted, `stopped at ${stop_at}`)
            assert.deepEqual(yield* spool.scan(0, 10), [])
            stopped = first.stopped
            if (stopped) stops++
          }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(host, Layer.fresh(logMemory))))
        }
        assert.isAbove(stops, 20)
      }),
    60_000,
  )
})

const rounds = 4
const moment_ms_max = 400
const seed_max = 2 ** 31

let logs = 0
/** A separate log on the shared server, and its writer. */
const freshLog = () => {
  const stream = `SPOOL_${++logs}`
  const log = logJetStream({ stream, head: `commit-${stream}` })
  return { stream, around: Layer.provideMerge(host, log) }
}

/**
 * A process that adds and records until it is killed at a random moment; returns its last numbers.
 */
const addUntilKilled = Effect.fnUntraced(function* (
  args: ReadonlyArray<string>,
  moment_ms: number,
) {
  const { servers, core } = yield* NatsServer
  const env = {
    ...process.env,
    SERVER: servers[0] ?? "",
    LOGIN_USER: core.user ?? "",
    LOGIN_PASSWORD: core.password === undefined ? "" : Redacted.value(core.password),
  }
  return yield* Effect.promise(async () => {
    const script = join(import.meta.dirname, "adder.ts")
    const child = spawn(process.execPath, [script, ...args], {
      env,
      stdio: ["ignore", "pipe", "inherit"],
    })
    const closed = new Promise((resolve) => child.once("close", resolve))
    const lasts = { added: 0, written: 0 }
    for await (const line of createInterface({ input: child.stdout })) {
      if (lasts.added === 0) setTimeout(() => child.kill("SIGKILL"), moment_ms)
      const [word, n] = line.split(" ")
      lasts[word === "written" ? "written" : "added"] = Number(n)
    }
    await closed
    assert.equal(child.signalCode, "SIGKILL")
    return lasts
  })
})

describeNats("a spool over a real bus", (it) => {
  it.effect(
    "is killed again and again: what was written is in the log once, and in order",
    () =>
      Effect.gen(function* () {
        const seed = Math.floor(Math.random() * seed_max)
        const random = seeded(seed)
        const folder = yield* temporaryFolder
        const path = join(folder, "spool.sqlite")
        const { stream, around } = freshLog()
        yield* Effect.gen(function* () {
          const wanted = new Set<number>()
          const firsts: Array<number> = []
          let first = 1
          for (let round = 0; round < rounds; round++) {
            firsts.push(first)
            const moment_ms = random.between(0, moment_ms_max)
            const args = [path, stream, `${first}`]
            const { added, written } = yield* addUntilKilled(args, moment_ms)
            for (let n = first; n <= written; n++) wanted.add(n)
            for (const n of left(path, join(folder, `copy-${round}`))) wanted.add(n)
            for (const n of yield* recorded) wanted.add(n)
            first = added + 1_000
          }
          const spool = yield* spoolSqlite(path, SearchFact)
          yield* Effect.forkScoped(spooler({ spool, kind, node_id }))
          yield* emptied(spool)
          const records = yield* recorded
          const hint = `seed ${seed}`
          assertInOrder(records, hint)
          assert.deepEqual(
            records,
            [...wanted].sort((a, b) => a - b),
            hint,
          )
          // Each process loses only its last facts.
          for (const n of records) {
            assert(firsts.includes(n) || records.includes(n - 1), `${n} without ${n - 1}, ${hint}`)
          }
          assert.isAbove(records.length, 100)
        }).pipe(Effect.scoped, Effect.provide(around))
      }).pipe(Effect.scoped),
    120_000,
  )

  it.effect("takes facts while the bus is out of reach, and records them then", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const server = yield* NatsServer
      const between = yield* proxy(server.servers[0] ?? "")
      const bus = yield* connectBus({ servers: [between.url], login: server.core })
      const { around } = freshLog()
      const through = around.pipe(Layer.provide(Layer.succeed(NatsConnection, bus)))
      yield* Effect.gen(function* () {
        const spool = yield* spoolSqlite(join(folder, "spool.sqlite"), SearchFact)
        yield* Effect.forkScoped(spooler({ spool, kind, node_id }))
        yield* spool.add(searchFact(1))
        yield* emptied(spool)
        between.refuse()
        for (const n of [2, 3, 4]) yield* spool.add(searchFact(n))
        yield* Effect.sleep(600)
        assert.deepEqual(
          (yield* spool.scan(0, 10)).map(({ fact }) => fact.start),
          [2, 3, 4],
        )
        between.accept()
        yield* emptied(spool)
        assert.deepEqual(yield* recorded, [1, 2, 3, 4])
      }).pipe(Effect.scoped, Effect.provide(through))
    }).pipe(Effect.scoped, Effect.provide(silent)),
  )
})
