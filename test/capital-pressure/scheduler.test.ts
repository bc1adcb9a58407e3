import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Redacted, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { host } from "#actors/host.ts"
import { publishInstance } from "#adapters/data-folder/instance-file.ts"
import { Log } from "#events/log.ts"
import { logMemory } from "#journal"
import { metrics } from "#schemas/capital-pressure/registry.ts"
import { scheduled_jobs } from "#schemas/capital-pressure/schedule.ts"
import { ChildFailed, commandProgram, lastLine, runChild } from "#server/capital-pressure/child.ts"
import {
  announced,
  byCommands,
  ingestArguments,
  keepSchedule,
  type RunJob,
} from "#server/capital-pressure/scheduler.ts"
import { temporaryFolder } from "../world/programs/nats.ts"
import { until } from "../world/server/server.ts"

const app = Layer.provideMerge(host, logMemory)

/** Runs everything that is due. */
const settled = Effect.gen(function* () {
  for (let i = 0; i < 200; i++) yield* Effect.yieldNow
})

const clockAt = (time: string) => TestClock.setTime(Date.parse(time))

const moveTo = (time: string) => Effect.andThen(clockAt(time), settled)

/** `<job> <event> <tick>` of each event, in order; a failure with its detail. */
const recorded = Effect.gen(function* () {
  const log = yield* Log
  const commits = yield* Stream.runCollect(log.read("capital-pressure.schedule"))
  return commits.flatMap(({ stream, commit }) =>
    commit.events.map((event) => {
      const { type, tick, detail } = event as unknown as Record<string, string | undefined>
      const words = [stream.split(".").at(-1), type?.replace("ScheduledRun", ""), tick, detail]
      return words.filter((word) => word !== undefined).join(" ")
    }),
  )
})

/** A scheduler whose jobs a test runs; returns how to stop it. */
const started = Effect.fnUntraced(function* (run: RunJob) {
  const scope = yield* Scope.make()
  const fiber = yield* Effect.forkIn(keepSchedule(scheduled_jobs, run), scope)
  yield* settled
  return { fiber, stop: Effect.andThen(Scope.close(scope, Exit.void), settled) }
})

const done: RunJob = () => Effect.void

// 2026-11-18 is a Wednesday; 17:00 in New York is 22:00 UTC in winter and 21:00 in summer.
const daily = "2026-11-18T22:00:00.000Z"

describe("the scheduler", () => {
  it.effect("runs a job at its tick, and not earlier", () =>
    Effect.gen(function* () {
      yield* clockAt("2026-11-15T12:00:00Z")
      yield* started(done)
      assert.deepEqual(yield* recorded, [])
      yield* moveTo("2026-11-16T21:59:00Z")
      assert.deepEqual(yield* recorded, [])
      yield* moveTo("2026-11-16T22:00:00Z")
      assert.deepEqual(yield* recorded, [
        "daily_ingest Started 2026-11-16T22:00:00.000Z",
        "daily_ingest Ended 2026-11-16T22:00:00.000Z",
      ])
    }).pipe(Effect.provide(app)),
  )

  it.effect("uses New York time", () =>
    Effect.gen(function* () {
      yield* clockAt("2026-07-05T12:00:00Z")
      yield* started(done)
      yield* moveTo("2026-07-06T21:00:30Z")
      assert.equal((yield* recorded)[0], "daily_ingest Started 2026-07-06T21:00:00.000Z")
    }).pipe(Effect.provide(app)),
  )

  it.effect("runs a missed tick of the last day once, and no older one", () =>
    Effect.gen(function* () {
      yield* clockAt("2026-11-19T21:59:00Z")
      const first = yield* started(done)
      assert.deepEqual(yield* recorded, [
        `daily_ingest Started ${daily}`,
        `daily_ingest Ended ${daily}`,
      ])
      yield* first.stop
      const second = yield* started(done)
      assert.equal((yield* recorded).length, 2)
      yield* second.stop
      // Saturday night: Friday's ticks are more than a day old.
      yield* clockAt("2026-11-21T23:30:00Z")
      yield* started(done)
      assert.equal((yield* recorded).length, 2)
    }).pipe(Effect.provide(app)),
  )

  it.effect("never runs two jobs at once", () =>
    Effect.gen(function* () {
      yield* clockAt("2026-11-20T22:00:00Z")
      let running = 0
      let most = 0
      yield* started(() =>
        Effect.gen(function* () {
          most = Math.max(most, ++running)
          yield* Effect.sleep("2 hours")
          running--
        }),
      )
      yield* moveTo("2026-11-20T23:30:00Z")
      const friday = "2026-11-20T22:00:00.000Z"
      const evening = "2026-11-20T23:00:00.000Z"
      assert.deepEqual(yield* recorded, [`daily_ingest Started ${friday}`])
      yield* moveTo("2026-11-21T00:00:00Z")
      yield* moveTo("2026-11-21T02:00:00Z")
      assert.deepEqual(yield* recorded, [
        `daily_ingest Started ${friday}`,
        `daily_ingest Ended ${friday}`,
        `release_ingest Started ${evening}`,
        `release_ingest Ended ${evening}`,
      ])
      assert.equal(most, 1)
    }).pipe(Effect.provide(app)),
  )

  it.effect("records why a run failed, and runs at the next tick", () =>
    Effect.gen(function* () {
      yield* clockAt("2026-11-18T22:00:00Z")
      const detail = "2 of 22 feeds failed: nfci, skew."
      let fails = true
      yield* started(() =>
        fails ? Effect.fail(new ChildFailed({ code: 2, detail })) : Effect.void,
      )
      fails = false
      yield* moveTo("2026-11-19T22:00:00Z")
      assert.deepEqual(yield* recorded, [
        `daily_ingest Started ${daily}`,
        `daily_ingest Failed ${daily} ${detail}`,
        "daily_ingest Started 2026-11-19T22:00:00.000Z",
        "daily_ingest Ended 2026-11-19T22:00:00.000Z",
      ])
    }).pipe(Effect.provide(app)),
  )

  it.effect("records a run that died with its server, and does not repeat it", () =>
    Effect.gen(function* () {
      yield* clockAt("2026-11-18T22:00:00Z")
      const first = yield* started(() => Effect.never)
      yield* first.stop
      assert.deepEqual(yield* recorded, [`daily_ingest Started ${daily}`])
      yield* started(done)
      assert.deepEqual(yield* recorded, [
        `daily_ingest Started ${daily}`,
        `daily_ingest Failed ${daily} The server stopped during this run.`,
      ])
    }).pipe(Effect.provide(app)),
  )
})

describe("a scheduler that starts commands", () => {
  it.live("waits until they can find its server", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const waiting = yield* Effect.forkScoped(announced(folder))
      const secret = Redacted.make("")
      const instance = {
        url: "http://127.0.0.1:1",
        control_token: secret,
        started_at: "2026-11-20T12:00:00Z",
        nats: { url: "nats://127.0.0.1:1", user: "", password: secret },
      }
      yield* Effect.scoped(
        Effect.gen(function* () {
          // Another live process: the parent of this one.
          yield* publishInstance(folder, { ...instance, pid: process.ppid })
          yield* Effect.sleep(250)
          assert.isUndefined(waiting.pollUnsafe())
        }),
      )
      yield* publishInstance(folder, { ...instance, pid: process.pid })
      yield* Fiber.join(waiting)
    }).pipe(Effect.scoped),
  )
})

/** A program that runs a line of JavaScript, with its arguments in `process.argv.slice(1)`. */
const script = (code: string, ...args: ReadonlyArray<string>) => ({
  program: process.execPath,
  args: ["-e", code, ...args],
  environment: process.env,
})

describe("a command as a child process", () => {
  it.live("succeeds, or fails with its last line of output", () =>
    Effect.gen(function* () {
      yield* runChild(script("console.error('all is well')"))
      const failed = yield* Effect.flip(
        runChild(script("console.error('first\\nalmanac: why\\u0007\\n'); process.exitCode = 2")),
      )
      assert.deepInclude(failed, { code: 2, detail: "almanac: why" })
      const silent = yield* Effect.flip(runChild(script("process.exit(3)")))
      assert.deepInclude(silent, { code: 3, detail: "The process ended with code 3." })
      const missing = { program: "/nowhere/node", args: [], environment: {} }
      assert.match((yield* Effect.flip(runChild(missing))).detail, /ENOENT/)
    }),
  )

  it.live("stops when its parent ends", () =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(tmpdir(), "almanac-child-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
      const file = join(folder, "pid")
      const code = `
        process.on("SIGTERM", () => setTimeout(() => process.exit(0), 50))
        require("fs").writeFileSync(process.argv[1], String(process.pid))
        setInterval(() => {}, 1000)`
      const fiber = yield* Effect.forkChild(runChild(script(code, file)))
      // The file is empty for a moment.
      const pid = yield* Effect.promise(() =>
        until("the child to start", 10_000, () =>
          existsSync(file) ? Number(readFileSync(file, "utf8")) || undefined : undefined,
        ),
      )
      yield* Fiber.interrupt(fiber)
      assert.throws(() => process.kill(pid, 0), /ESRCH/)
    }).pipe(Effect.scoped),
  )

  it("gets its settings from the environment, the file and the flags", () => {
    const { args, environment } = commandProgram({ config: "a.toml", set: ["log.level=debug"] }, [
      "x",
    ])
    const [program = "", ...verb] = args
    assert.match(program, /launcher\/run\.mjs$/)
    assert.deepEqual(verb, ["x", "--config", "a.toml", "--set", "log.level=debug"])
    assert.equal(environment, process.env)
    assert.equal(commandProgram({ config: "", set: [] }, ["x"]).args.at(-1), "x")
  })

  it("reports the last line without control characters", () => {
    assert.equal(lastLine("one\r\n\u001b[31mtwo\u0007 \n\n"), "[31mtwo")
    assert.equal(lastLine(""), "")
    assert.equal(lastLine("x".repeat(900)).length, 500)
  })
})

describe("a job", () => {
  it("requests everything daily, and rarer series on Fridays", () => {
    assert.deepEqual(ingestArguments("daily_ingest"), [])
    const args = ingestArguments("release_ingest").filter((word) => word !== "--metric")
    assert.deepEqual(
      args,
      metrics
        .filter(({ cadence, stub }) => cadence !== "daily" && stub === null)
        .map(({ metric_id }) => metric_id),
    )
    assert.include(args, "nfci")
    assert.notInclude(args, "skew")
  })

  it.live("computes the composite after a partial ingest", () =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(tmpdir(), "almanac-job-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
      for (const [code, verbs] of [
        [0, "ingest\nbackfill-composite\n"],
        [2, "ingest\nbackfill-composite\n"],
        [1, "ingest\n"],
      ] as const) {
        const file = join(folder, `${code}`)
        const run = byCommands(([verb = ""]) => {
          const exit = verb === "ingest" ? code : 0
          const write = `require("fs").appendFileSync(process.argv[1], process.argv[2] + "\\n")`
          return script(`${write}; console.error("said"); process.exitCode = ${exit}`, file, verb)
        })
        const exit = yield* Effect.exit(run("daily_ingest"))
        assert.equal(Exit.isSuccess(exit), code === 0)
        assert.equal(readFileSync(file, "utf8"), verbs)
      }
    }).pipe(Effect.scoped),
  )
})
