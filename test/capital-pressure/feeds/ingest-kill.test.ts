/**
 * An ingest as an operator runs it: killed without warning and repeated, and its final result. `npm
 * run soak -- --only ingest` kills it many more times.
 */
import assert from "node:assert/strict"
import { randomInt } from "node:crypto"
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { killIngests, writeSource } from "../../process/kill/ingest-kill.ts"
import { describeWithServer } from "../../world/programs/nats.ts"
import {
  cleanUp,
  newFolder,
  runVerb,
  startServer,
  startVerb,
  until,
} from "../../world/server/server.ts"

const seed_max = 2 ** 31
const rounds = 2
const start_ms_max = 60_000

afterAll(cleanUp)

describeWithServer("almanac ingest", () => {
  it("ends with the same rows, however often it was killed", async () => {
    const seed = randomInt(seed_max)
    const [observations = [], revisions = [], prices = []] = await killIngests({
      folder: newFolder(),
      seed,
      rounds,
      onRound: (round) => console.log(`seed ${seed}: ${JSON.stringify(round)}`),
    })
    assert(observations.length > 5_000 && revisions.length > 100 && prices.length > 5_000)
  }, 240_000)

  it("ends with 0, 2 or 1, and says why in one line", async () => {
    const data_dir = newFolder()
    const source = join(newFolder(), "csv")
    writeSource(source, 1, false)
    const ingest = (...args: ReadonlyArray<string>) =>
      runVerb(data_dir, ["ingest", "--source", `file:${source}`, ...args])

    const unknown = await ingest("--metric", "nfcj")
    expect([unknown.code, unknown.stderr]).toEqual([
      1,
      "almanac: unknown metric nfcj; did you mean nfci?\n",
    ])
    const stub = await ingest("--metric", "put_call")
    expect([stub.code, stub.stderr]).toEqual([
      1,
      "almanac: put_call has no feed: Cboe publishes no free history.\n",
    ])
    const none = await runVerb(data_dir, ["ingest", "--source", "file:/nowhere"])
    expect([none.code, none.stderr]).toEqual([
      1,
      "almanac: --source: folder /nowhere does not exist\n",
    ])
    expect((await ingest("--since", "2026-02-30")).code).toBe(1)
    expect((await ingest("--demo")).stderr).toMatch(/^almanac: --demo generates all data/)

    const whole = await ingest("--metric", "nfci", "--metric", "prices")
    expect(whole.code).toBe(0)
    expect(whole.stdout).toMatch(/^FEED +NEW +REVISED +NEWEST\nnfci +\d+ +0 +2026-11-\d\d\nprices /)
    expect(whole.stderr).toMatch(/^nfci: \d+ new, 0 revised, newest 2026-11-\d\d$/m)

    rmSync(join(source, "skew.csv"))
    const some = await ingest("--metric", "nfci", "--metric", "skew")
    expect(some.code).toBe(2)
    expect(some.stdout).toMatch(/^nfci +0 +0 /m)
    expect(some.stdout).toMatch(/^skew +- +- +- +.*skew\.csv does not exist/m)
    expect(some.stderr).toMatch(/almanac: 1 of 2 feeds failed: skew\. .*skew\.csv does not exist/)
    const all = await ingest("--metric", "skew")
    expect([all.code, all.stderr]).toEqual([1, expect.stringMatching(/1 of 1 feeds failed: skew/)])

    const stopped = startVerb(data_dir, ["ingest", "--source", `file:${source}`])
    await until("its first feed", start_ms_max, () => / new, /.test(stopped.printed.stderr))
    stopped.child.kill("SIGTERM")
    expect(await stopped.ended).toEqual({ code: 130, signal: null })

    const mixed = await runVerb(data_dir, ["ingest", "--demo"])
    expect(mixed.code).toBe(1)
    expect(mixed.stderr).toMatch(
      /^almanac: This data folder contains real data, .*ALMANAC_DATA_DIR/m,
    )
  }, 120_000)

  it("is wanted before a backfill, which says so, or that it begins too late", async () => {
    const data_dir = newFolder()
    const backfill = (...args: ReadonlyArray<string>) =>
      runVerb(data_dir, ["backfill-composite", ...args])
    const late = await backfill("--since", "2199-01-01")
    expect([late.code, late.stderr]).toEqual([
      1,
      expect.stringMatching(/^almanac: --since 2199-01-01 is after 20\d\d-\d\d-\d\d, /),
    ])
    const none = await backfill()
    expect([none.code, none.stderr]).toEqual([
      1,
      expect.stringMatching(/^almanac: no day has a composite yet: .* needs 3 years of values/),
    ])
    const recent = await backfill("--since", "2026-01-01")
    expect(recent.stderr).toMatch(/^almanac: no day since 2026-01-01 has a composite: /)
  }, 60_000)

  it("of files discards the last responses of the publishers of these metrics", async () => {
    const data_dir = newFolder()
    const source = join(newFolder(), "csv")
    writeSource(source, 1, false)
    const answers = join(data_dir, "feeds")
    mkdirSync(answers)
    for (const id of ["nfci", "skew"]) writeFileSync(join(answers, `${id}.json`), "{}")
    const of_file = ["--metric", "nfci", "--source", `file:${source}`]
    const { code, stderr } = await runVerb(data_dir, ["ingest", ...of_file])
    assert.equal(code, 0, stderr)
    expect(readdirSync(answers)).toEqual(["skew.json"])
  }, 120_000)

  it("works with a running instance, which writes the file", async () => {
    const data_dir = newFolder()
    const source = join(newFolder(), "csv")
    writeSource(source, 2, false)
    writeFileSync(join(data_dir, "watchlist.json"), '[{"ticker": "UNH", "target": 321}]')
    const server = await startServer(data_dir, { ALMANAC_COMPUTE__KIND: "none" })
    const ingested = await runVerb(data_dir, ["ingest", "--source", `file:${source}`])
    assert.equal(ingested.code, 0, ingested.stderr)
    // Once the command has returned, the instance shows the new value.
    const { rows } = await fetchJson(`${server.url}/api/watchlist`)
    expect(rows).toContainEqual(expect.objectContaining({ ticker: "UNH", target: 321 }))
    const before = await fetchJson(`${server.url}/api/dashboard`)
    expect(before.composite_history).toEqual([])
    const filled = await runVerb(data_dir, ["backfill-composite"])
    assert.equal(filled.code, 0, filled.stderr)
    expect(filled.stdout).toMatch(/^\d{3} days from 20\d\d-\d\d-\d\d to .*, \d{3} changed\n$/)
    const after = await fetchJson(`${server.url}/api/dashboard`)
    expect(after.composite_history.length).toBe(252)
    const again = await runVerb(data_dir, ["backfill-composite"])
    expect(again.stdout).toMatch(/, 0 changed\n$/)
    await server.stop()
  }, 120_000)
})

const fetchJson = async (url: string) => {
  const answer = await fetch(url)
  assert.equal(answer.status, 200, url)
  // The tests assert the values of all fields that they use.
  return (await answer.json()) as { rows: Array<object>; composite_history: Array<object> }
}
