/**
 * Rounds of one data folder: an ingest killed at a random moment, again and again, then one that
 * ends. What the dashboard's file holds must be what it holds where nobody was killed.
 */
import assert from "node:assert/strict"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import Sqlite from "better-sqlite3"
import { demoOf } from "#projections/capital-pressure/demo.ts"
import { dateOf, dayOf } from "#schemas/capital-pressure/day.ts"
import { seeded } from "../../world/seeded.ts"
import { end, natsServersOn, runVerb, startVerb, told, until } from "../../world/server/server.ts"

/** Milliseconds after a feed's line until the kill; of a kill before the first, after the start. */
const moment_ms_max = 40
const start_ms_max = 2_500
/** How long an ingest may take to come to a feed. */
const feed_ms_max = 60_000
/** Feeds that an ingest has: a kill comes before the first, or after any but the last. */
const feeds = 22
const last_day = dayOf("2026-11-20")
/** Enough for several years of each metric, and quick. */
const days_told = 3 * 365
/** Every so many values are revised by their publisher. */
const revised_each = 40

export interface IngestRound {
  /** Feeds that had ended when it was killed. */
  readonly feeds: number
  readonly took_ms: number
}

const csv = (head: string, lines: ReadonlyArray<string>) => `${[head, ...lines].join("\n")}\n`

/** A folder of CSV files as an operator might have them, all of them of one seed. */
export const writeSource = (folder: string, seed: number, is_revised: boolean) => {
  mkdirSync(folder, { recursive: true })
  const { observations, prices } = demoOf(last_day, seed)
  for (const [id, { days, values }] of observations) {
    const lines = Array.from(days, (day, at) => {
      const value = (values[at] ?? 0) + (is_revised && at % revised_each === 0 ? 0.25 : 0)
      return `${dateOf(day)},${value}`
    }).filter((_, at) => (days[at] ?? 0) > last_day - days_told)
    writeFileSync(join(folder, `${id}.csv`), csv("date,value", lines))
  }
  for (const [ticker, { days, close }] of prices) {
    const lines = Array.from(days, (day, at) => `${dateOf(day)},${close[at]},${close[at]}`)
    const recent = lines.filter((_, at) => (days[at] ?? 0) > last_day - days_told)
    writeFileSync(join(folder, `${ticker}.csv`), csv("Date,Close,Adj Close", recent))
  }
}

const rows_of = [
  "select metric_id, day, value, first_value from capital_observation order by 1, 2",
  "select metric_id, day, value, previous from capital_revision order by 1, 2",
  "select ticker, day, close, adjusted from capital_price order by 1, 2",
  "select ticker, target, fwd_pe, set_on, demo from capital_target order by 1",
  "select id, last_error, demo from capital_feed order by 1",
]

/** What the file holds, but for when it was told. */
const rowsIn = (data_dir: string) => {
  const file = new Sqlite(join(data_dir, "capital-pressure.sqlite"), { readonly: true })
  try {
    return rows_of.map((sql) =>
      file
        .prepare(sql)
        .all()
        .map((row) => JSON.stringify(row)),
    )
  } finally {
    file.close()
  }
}

const ingest = (source: string) => ["ingest", "--source", `file:${source}`]

const toEnd = async (data_dir: string, source: string) => {
  const { code, stderr } = await runVerb(data_dir, ingest(source))
  assert.equal(code, 0, stderr)
}

const killed = async (data_dir: string, source: string, random: ReturnType<typeof seeded>) => {
  const since = performance.now()
  const wanted = random.between(0, feeds - 1)
  const moment_ms = random.next() * (wanted === 0 ? start_ms_max : moment_ms_max)
  const is_all = random.next() < 0.5
  const run = startVerb(data_dir, ingest(source))
  const done = () => run.printed.stderr.split("\n").filter((line) => / new, /.test(line)).length
  await until(`${wanted} feeds:\n${told(run)}`, feed_ms_max, () => {
    return run.child.exitCode !== null || done() >= wanted
  })
  await pause(moment_ms)
  run.child.kill("SIGKILL")
  // Half of the time its nats-server goes with it; else the guard stops that one in order.
  if (is_all) for (const pid of natsServersOn(data_dir)) end(pid)
  await run.ended
  const round: IngestRound = { feeds: done(), took_ms: performance.now() - since }
  return round
}

/**
 * Kills `rounds` ingests of values and as many of their revisions, and compares. `folder` is to be
 * empty; fails with what differs.
 */
export const killIngests = async ({
  folder,
  seed,
  rounds,
  onRound,
}: {
  readonly folder: string
  readonly seed: number
  readonly rounds: number
  readonly onRound: (round: IngestRound) => void
}) => {
  const random = seeded(seed)
  const [quiet, troubled] = [join(folder, "quiet"), join(folder, "troubled")]
  for (const [name, is_revised] of [
    ["first", false],
    ["revised", true],
  ] as const) {
    const source = join(folder, name)
    writeSource(source, seed, is_revised)
    await toEnd(quiet, source)
    for (let round = 0; round < rounds; round++) onRound(await killed(troubled, source, random))
    await toEnd(troubled, source)
    assert.deepEqual(rowsIn(troubled), rowsIn(quiet), `seed ${seed}, ${name}`)
  }
  return rowsIn(quiet)
}
