/**
 * The reader behind the dashboard's paths: when responses are built, and failures of its thread.
 */
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { Worker } from "node:worker_threads"
import { Clock, Context, Effect, Exit, Layer, Logger, Scope } from "effect"
import { TestClock } from "effect/testing"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type CapitalReaderOptions, capitalReader } from "#adapters/capital-pressure/reader.ts"
import { watchedFile } from "#adapters/capital-pressure/reader-file.ts"
import { loadObservations, loadStore } from "#adapters/capital-pressure/store.ts"
import { type DashboardQuery, DashboardReader } from "#gateway/capital-pressure/dashboard-reader.ts"
import type { Dashboard } from "#schemas/capital-pressure/dashboard.ts"
import { noon_ms } from "../../world/capital-pressure/served.ts"
import { empty_store, fillFile, openWriter } from "../../world/capital-pressure/store-file.ts"
import { syntheticStore } from "../../world/capital-pressure/synthetic-store.ts"

let folder: string
let path: string
let scope: Scope.Closeable
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "almanac-reader-"))
  path = join(folder, "capital.sqlite")
  scope = Effect.runSync(Scope.make())
})
afterEach(async () => {
  await Effect.runPromise(Scope.close(scope, Exit.void))
  rmSync(folder, { recursive: true, force: true })
})

const dashboard: DashboardQuery = { kind: "dashboard" }

const silent = Logger.layer([])

/** A reader of the file at `path`, on the day of the synthetic store. */
const start = async (options: Partial<CapitalReaderOptions> = {}) => {
  const layer = capitalReader({ path, scheduler: false, ...options })
  const run = Effect.gen(function* () {
    const clock = yield* TestClock.make()
    yield* clock.setTime(noon_ms)
    const built = yield* Effect.provideService(Layer.build(layer), Clock.Clock, clock)
    return Context.get(built, DashboardReader)
  })
  const reader = await Effect.runPromise(Scope.provide(run, scope))
  return {
    show: (query: DashboardQuery) => Effect.runPromise(reader.read(query)),
    exit: (query: DashboardQuery) =>
      Effect.runPromiseExit(Effect.provide(reader.read(query), silent)),
    trouble: () => Effect.runPromise(Effect.provide(reader.problem, silent)),
  }
}

const parsed = ({ bytes }: { readonly bytes: Uint8Array }) =>
  JSON.parse(new TextDecoder().decode(bytes))

describe("a store", () => {
  it("is read as it was written", () => {
    const store = syntheticStore()
    fillFile(path, store)
    const read = loadStore(path, { vintage: "latest" })
    const byName = <A>(map: ReadonlyMap<string, A>) =>
      [...map].sort(([one], [other]) => (one < other ? -1 : 1))
    expect(byName(read.observations)).toEqual(byName(store.observations))
    expect(byName(read.prices)).toEqual(byName(store.prices))
    expect(read.composite).toEqual(store.composite)
    expect(byName(read.feeds)).toEqual(byName(store.feeds))
    expect([...read.jobs]).toEqual([...store.jobs])
    const byTicker = [...store.targets].sort((one, other) => (one.ticker < other.ticker ? -1 : 1))
    expect(read.targets).toEqual(byTicker)
    expect(byName(loadObservations(path, { vintage: "latest" }))).toEqual(
      byName(store.observations),
    )
  })

  it("returns the first published values on request", () => {
    fillFile(path, syntheticStore())
    const writer = openWriter(path)
    writer.exec(
      "update capital_observation set value = 5, first_value = 4 where metric_id = 'nfci'",
    )
    writer.close()
    const of = (vintage: "latest" | "first") => {
      const values = loadObservations(path, { vintage }).get("nfci")?.values ?? []
      expect(loadStore(path, { vintage }).observations.get("nfci")?.values).toEqual(values)
      return [...new Set(values)]
    }
    expect([of("latest"), of("first")]).toEqual([[5], [4]])
  })

  it("that is not there is not made", () => {
    expect(() => loadStore(path, { vintage: "latest" })).toThrow()
    expect(() => loadStore(path, { vintage: "latest" })).toThrow()
  })

  it("is never written through the handle that reads it", () => {
    fillFile(path, empty_store)
    const watched = watchedFile(path)
    watched.changeCount()
    expect(() => watched.file().exec("delete from capital_feed")).toThrow(/readonly/)
    watched.close()
  })
})

describe("a file that is watched", () => {
  it("has changed after a commit, and not after a rollback", () => {
    fillFile(path, empty_store)
    const watched = watchedFile(path)
    const writer = openWriter(path)
    let seen = watched.changeCount()
    expect(watched.changeCount()).toBe(seen)
    for (let n = 0; n < 3; n++) {
      writer.exec(`insert into capital_feed (id) values ('${n}')`)
      expect(watched.changeCount()).toBeGreaterThan(seen)
      seen = watched.changeCount()
      expect(watched.changeCount()).toBe(seen)
    }
    writer.exec("begin; delete from capital_feed; rollback")
    expect(watched.changeCount()).toBe(seen)
    writer.close()
    watched.close()
  })
})

describe("an answer", () => {
  it("is the same object until something changes", async () => {
    fillFile(path, syntheticStore())
    const { show } = await start()
    const first = await show(dashboard)
    expect(await show(dashboard)).toBe(first)
    const writer = openWriter(path)
    writer.exec("update capital_feed set last_error = 'x'")
    writer.close()
    const second = await show(dashboard)
    expect(second).not.toBe(first)
    expect(second.tag).toBe(first.tag)
  })

  it("is made once for all who ask while it is made", async () => {
    fillFile(path, syntheticStore())
    const { show } = await start()
    const sendRequest = [1, 2, 3, 4, 5].map(() => show(dashboard))
    const [first, ...others] = await Promise.all(sendRequest)
    for (const other of others) expect(other).toBe(first)
  })

  it("that was asked for after a commit shows it, however many are on their way", async () => {
    fillFile(path, empty_store)
    const { show } = await start()
    const writer = openWriter(path)
    const found: Array<Promise<{ n: number; error: string }>> = []
    for (let n = 0; n < 200; n++) {
      const sql = "insert or replace into capital_feed (id, last_error) values ('nfci', ?)"
      writer.prepare(sql).run(String(n))
      const row = show({ kind: "sources" }).then((answer) => {
        const rows: ReadonlyArray<{ metric_id: string; last_error: string }> = parsed(answer).rows
        return { n, error: rows.find(({ metric_id }) => metric_id === "nfci")?.last_error ?? "" }
      })
      found.push(row)
      if (n % 10 === 0) await row
    }
    for (const { n, error } of await Promise.all(found)) {
      expect(Number(error)).toBeGreaterThanOrEqual(n)
    }
    writer.close()
  })

  it("is never torn between two commits, nor an error, while a writer commits", async () => {
    const store = syntheticStore()
    fillFile(path, store)
    const { show } = await start()
    const writing = new Worker(new URL("./hold-capital-writer.ts", import.meta.url), {
      workerData: path,
    })
    await once(writing, "message")
    const seen = new Set<number>()
    try {
      for (let n = 0; seen.size < 5 && n < 500; n++) {
        const body: Dashboard = parsed(await show(dashboard))
        const days = body.composite_history.flatMap(({ z, tier_zs }) => [
          z,
          ...Object.values(tier_zs),
        ])
        const readings = body.tiers.flatMap((tier) => tier.metrics)
        const nfci = readings.find(({ metric_id }) => metric_id === "nfci")
        const [version, ...others] = new Set([...days, Number(nfci?.value)])
        expect(others).toEqual([])
        seen.add(version ?? -1)
      }
    } finally {
      writing.postMessage("end")
      await once(writing, "exit")
    }
    expect(seen.size).toBe(5)
  })
})

/** A program for the reader's thread that runs only `body` for each request. */
const program = (body: string) => {
  const file = join(folder, "program.mjs")
  const head = 'import { parentPort } from "node:worker_threads"\n'
  writeFileSync(file, `${head}parentPort.on("message", () => { ${body} })\n`)
  return pathToFileURL(file)
}

describe("a thread that", () => {
  beforeEach(() => fillFile(path, empty_store))

  it.each([
    ["says nothing", "", /did not respond within 300 ms/],
    ["never comes back", "for (;;) {}", /did not respond within 300 ms/],
    ["ends", "process.exit(0)", /ended/],
    ["throws", "throw new Error('by itself')", /by itself/],
  ])("%s is 500 for all who wait, and is followed by another", async (_name, body, why) => {
    const { exit, trouble } = await start({ program: program(body), response_ms_max: 300 })
    const all = await Promise.all([exit(dashboard), exit(dashboard), exit({ kind: "sources" })])
    for (const one of all) expect(Exit.isFailure(one)).toBe(true)
    expect(await trouble()).toMatch(why)
    // The next thread runs the program as it is then: one that responds.
    const found = "{ bytes: new Uint8Array(1), gzip: null, tag: 't' }"
    program(`parentPort.postMessage({ response: ${found} })`)
    expect(await exit(dashboard)).toMatchObject({ value: { tag: "t" } })
    expect(await trouble()).toBe(undefined)
  })
})
