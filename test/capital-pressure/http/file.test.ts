/**
 * The dashboard while its file is missing, not a database, foreign, replaced, locked or deleted.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import Sqlite from "better-sqlite3"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Dashboarded, startDashboard } from "../../world/capital-pressure/served.ts"
import { empty_store, fillFile, openWriter } from "../../world/capital-pressure/store-file.ts"
import { until } from "../../world/http.ts"

const of_the_file = [
  "/api/dashboard",
  "/api/sources",
  "/api/scheduler",
  "/api/watchlist",
  "/api/metrics/nfci/history",
  "/api/metrics/nfci/detail",
  "/api/tier/1/history",
]

/** A file in which one metric has these values, starting on day `first`. */
const storeOf = (...values: ReadonlyArray<number>) => ({
  ...empty_store,
  observations: new Map([
    [
      "nfci",
      {
        days: Int32Array.from(values, (_value, at) => 20_000 + 7 * at),
        values: Float64Array.from(values),
      },
    ],
  ]),
})

let served: Dashboarded
beforeEach(async () => {
  served = await startDashboard()
})
afterEach(() => served.stop())

const valuesShown = async (): Promise<ReadonlyArray<number> | number> => {
  const answer = await served.fetch("/api/metrics/nfci/history")
  const body: { readonly points: ReadonlyArray<{ readonly value: number }> } = await answer.json()
  return answer.status === 200 ? body.points.map(({ value }) => value) : answer.status
}

/** Each path that reads the file responds with a bare 500; the others still work. */
const isUnreadable = async () => {
  for (const path of of_the_file) {
    const answer = await served.fetch(path)
    expect([path, answer.status]).toEqual([path, 500])
    expect(await answer.text()).toBe('{"detail":"Internal Server Error"}')
    expect(answer.headers.get("etag")).toBe(null)
  }
  expect((await served.fetch("/health")).status).toBe(200)
  expect((await served.fetch("/api/tier/9/history")).status).toBe(404)
  expect((await served.fetch("/api/metrics/none/detail")).status).toBe(404)
}

const warnings = () => served.logged.filter((line) => line.includes("cannot be read"))

describe("a file that is", () => {
  it("missing: 500, said once, until there is one", async () => {
    await isUnreadable()
    await isUnreadable()
    expect(warnings()).toEqual([expect.stringContaining("ENOENT")])
    expect(warnings()[0]).toContain(served.path)
    fillFile(served.path, storeOf(1, 2))
    expect(await valuesShown()).toEqual([1, 2])
  })

  it("a folder", async () => {
    mkdirSync(served.path)
    await isUnreadable()
    rmSync(served.path, { recursive: true })
    fillFile(served.path, storeOf(3))
    expect(await valuesShown()).toEqual([3])
  })

  it.each([
    ["empty", Buffer.alloc(0)],
    ["text", Buffer.from("This is no database.".repeat(1000))],
    ["cut off", undefined],
  ])("%s", async (_name, bytes) => {
    fillFile(served.path, storeOf(...new Array<number>(2000).fill(1)))
    if (bytes === undefined) truncateSync(served.path, 8192)
    else writeFileSync(served.path, bytes)
    await isUnreadable()
  })

  it("another program's database", async () => {
    const other = new Sqlite(served.path)
    other.exec("create table capital_observation (name text)")
    other.close()
    await isUnreadable()
    expect(warnings().join()).toMatch(/no such (table|column)/)
  })
})

describe("while it is served, a file that is", () => {
  beforeEach(async () => {
    fillFile(served.path, storeOf(1))
    expect(await valuesShown()).toEqual([1])
  })

  it("written to is shown as of its last commit", async () => {
    const writer = openWriter(served.path)
    for (let n = 2; n < 20; n++) {
      writer.prepare("update capital_observation set value = ?, first_value = 0").run(n)
      expect(await valuesShown()).toEqual([n])
    }
    writer.exec("begin immediate; update capital_observation set value = 99")
    expect(await valuesShown()).toEqual([19])
    writer.exec("rollback")
    writer.close()
  })

  it("replaced is shown as the new one", async () => {
    fillFile(`${served.path}.new`, storeOf(7, 8))
    renameSync(`${served.path}.new`, served.path)
    expect(await valuesShown()).toEqual([7, 8])
  })

  it("written over in place is shown as the new one, and garbage as what it is", async () => {
    fillFile(`${served.path}.new`, storeOf(5, 6))
    writeFileSync(served.path, readFileSync(`${served.path}.new`))
    expect(await valuesShown()).toEqual([5, 6])
    writeFileSync(served.path, "garbage".repeat(4096))
    await isUnreadable()
  })

  it("deleted is not shown from memory, and is when it comes back", async () => {
    const kept = readFileSync(served.path)
    rmSync(served.path)
    await isUnreadable()
    writeFileSync(served.path, kept)
    expect(await valuesShown()).toEqual([1])
  })

  it("held exclusively shows what was made of it, and is waited for with the rest", async () => {
    // Readers of a file in WAL mode never block, so this file uses another mode.
    fillFile(`${served.path}.new`, storeOf(1))
    const made = new Sqlite(`${served.path}.new`)
    made.pragma("journal_mode = DELETE")
    made.close()
    renameSync(`${served.path}.new`, served.path)
    const holder = new Sqlite(served.path)
    const before = await (await served.fetch("/api/dashboard")).text()
    holder.exec("begin exclusive; update capital_observation set value = 2")
    expect(await (await served.fetch("/api/dashboard")).text()).toBe(before)
    let is_answered = false
    const waiting = served.fetch("/api/sources").then(({ status }) => {
      is_answered = true
      return status
    })
    await until(() => served.inFlight() > 0)
    expect(is_answered).toBe(false)
    holder.exec("commit")
    holder.close()
    expect(await waiting).toBe(200)
    expect(await valuesShown()).toEqual([2])
  })
})
