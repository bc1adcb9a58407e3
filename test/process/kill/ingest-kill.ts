/**
 * Rounds on one data folder: an ingest is killed at random moments, repeatedly, and then one
 * completes. The dashboard's file must equal that of an undisturbed ingest.
 */
import assert from "node:assert/strict"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import Sqlite from "better-sqlite3"
import { demoOf } from "#projections/capital-pressure/demo.ts"
import { dateOf, dayOf } from "#schemas/capital-pressure/day.ts"
import { seeded } from "../../world/seeded.ts"
import {
  end,
  natsServersOn,
  outputOf,
  runVerb,
  startVerb,
  until,
} from "../../world/server/server.ts"

/**
 * Maximum delay of the kill: after a feed's line, or after the start for a kill before the first
 * feed. In milliseconds.
 */
const moment_ms_max = 40
const start_ms_max = 2_500
/** Maximum time until an ingest reaches a feed. */
const feed_ms_max = 60_000
/** Feeds of an ingest: a kill occurs before the first, or after any except the last. */
const feeds = 22
const last_day = dayOf("2026-11-20")
/** Enough for several years of each metric, and still fast. */
const days_published = 3 * 365
/** The publisher revises one in this many values. */
const revised_each = 40

export interface IngestRound {
  /** Feeds that were complete at the kill. */
  readonly feeds: number
  readonly took_ms: number
}

const csv = (head: string, lines: ReadonlyArray<string>) => `${[head, ...lines].join("\n")}\n`

/** A folder of CSV files as an operator might have them, all from one seed. */
export const writeSource = (folder: string, seed: number, is_revised: boolean) => {
  mkdirSync(folder, { recursive: true })
  const { observations, prices } = demoOf(last_day, seed)
  for (const [id, { days, values }] of observations) {
    const lines = Array.from(days, (day, at) => {
      const value = (values[at] ?? 0) + (is_revised && at % revised_each === 0 ? 0.25 : 0)
      return `${dateOf(day)},${value}`
    }).filter((_, at) => (days[at] ?? 0) > last_day - days_published)
    writeFileSync(join(folder, `${id}.csv`), csv("date,value", lines))
  }
  for (const [ticker, { days, close }] of prices) {
    const lines = Array.from(days, (day, at) => `${dateOf(day)},${close[at]},${close[at]}`)
    const recent = lines.filter((_, at) => (days[at] ?? 0) > last_day - days_published)
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

/** The file's rows, without their ingestion times. */
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
  await until(`${wanted} feeds:\n${outputOf(run)}`, feed_ms_max, () => {
    return run.child.exitCode !== null || done() >= wanted
  })
  await pause(moment_ms)
  run.child.kill("SIGKILL")
  // Half of the time nats-server is killed too; otherwise its guard stops it gracefully.
  if (is_all) for (const pid of natsServersOn(data_dir)) end(pid)
  await run.ended
  const round: IngestRound = { feeds: done(), took_ms: performance.now() - since }
  return round
}

/**
 * Kills `rounds` ingests of values and as many of their revisions, and compares the results.
 * `folder` must be empty; fails with the differences.
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
