/**
 * Compares this checkout with an earlier one in a single run: both servers and a bare `node:http`
 * server receive the same requests in turn. Prints ratios of CPU time and rate, as median and range
 * over all rounds.
 */
import { execFileSync } from "node:child_process"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { parseArgs } from "node:util"
import { usedSeconds } from "../blob/process.ts"
import { startRaw } from "../blob/raw.ts"
import { startGateway } from "../gateway/almanac-gateway.ts"
import { scratchFolder } from "../harness/disk.ts"
import { median } from "../harness/round.ts"
import { spread } from "../harness/series.ts"
import { aligned, number, range } from "../harness/table.ts"
import { operations, type Prepared, prepare, rawOperations } from "./operations.ts"

const help = `node bench/versions/main.ts --before FOLDER [--rounds N] [--only NAME,...]

Compares this checkout with the one in FOLDER, whose packages must be installed and whose bundle is
built by its first start. Above 1 means that this checkout needs less processor time, or serves more
requests a second. Needs Linux. Not a part of \`npm run bench\`.

  node bench/versions/main.ts --before ../almanac-2baff22 --rounds 7`

const { values } = parseArgs({
  options: {
    before: { type: "string" },
    rounds: { type: "string", default: "5" },
    only: { type: "string" },
    help: { type: "boolean", default: false },
  },
})

/** Concurrent requests. */
const at_once = 16
/** Milliseconds after a round in which background work of a put still counts. */
const settle_ms = 300

interface Figures {
  readonly cpu_us: number
  readonly wall_us: number
}

const measured = async (
  pids: ReadonlyArray<number>,
  count: number,
  send: (n: number) => Promise<unknown>,
): Promise<Figures> => {
  const cpu = usedSeconds(pids)
  const from = performance.now()
  let next = 0
  const client = async () => {
    while (next < count) await send(next++)
  }
  await Promise.all(Array.from({ length: Math.min(at_once, count) }, client))
  const wall_us = ((performance.now() - from) * 1000) / count
  await pause(settle_ms)
  return { cpu_us: ((usedSeconds(pids) - cpu) * 1e6) / count, wall_us }
}

const spreadOf = (all: ReadonlyArray<number>) => range(spread(all))

interface Row {
  readonly name: string
  /** Figures of the earlier version, of this one, and of the bare server, by round. */
  readonly figures: readonly [Array<Figures>, Array<Figures>, Array<Figures>]
}

const cellsOf = ({ name, figures: [before, after, raw] }: Row) => {
  const ratios = (all: ReadonlyArray<Figures>, key: keyof Figures) =>
    all.map((one, round) => one[key] / (after[round]?.[key] ?? Number.NaN))
  return [
    name,
    number(median(after.map(({ cpu_us }) => cpu_us))),
    spreadOf(ratios(before, "cpu_us")),
    spreadOf(ratios(before, "wall_us")),
    raw.length === 0 ? "" : spreadOf(ratios(raw, "wall_us")),
  ]
}

interface Version {
  readonly checkout: string
  readonly folder: string
}

/** CPU seconds of one command against a checkout's server, with all of its children. */
const commandSeconds = ({ checkout, folder }: Version, args: ReadonlyArray<string>) => {
  const script = '"$@" >/dev/null; times'
  const command = ["-c", script, "bash", join(checkout, "almanac"), ...args]
  const text = execFileSync("bash", command, {
    encoding: "utf8",
    env: { ...process.env, ALMANAC_DATA_DIR: folder },
    stdio: ["ignore", "pipe", "inherit"],
  })
  const [, children = ""] = text.trim().split("\n").slice(-2)
  return [...children.matchAll(/(\d+)m([\d.]+)s/g)].reduce(
    (sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds),
    0,
  )
}

/**
 * Runs a command of both in turn; the first run does not count, because it may install something.
 */
const compareCommand = (before: Version, now: Version, rounds: number, args: Array<string>) => {
  for (const version of [before, now]) commandSeconds(version, args)
  const ratios = Array.from(
    { length: rounds },
    () => commandSeconds(now, args) / commandSeconds(before, args),
  )
  console.log(`almanac ${args.join(" ")}: CPU, now / before ${spreadOf(ratios)}`)
}

/** A server that is ready for the operations; `pids` are the processes whose CPU time counts. */
interface Contestant {
  readonly pids: ReadonlyArray<number>
  readonly prepared: Prepared
  readonly stop: () => Promise<void>
}

const startVersion = async ({ checkout, folder }: Version): Promise<Contestant> => {
  const gateway = await startGateway(folder, {}, checkout)
  return { pids: [gateway.pid], prepared: await prepare(gateway), stop: gateway.stop }
}

const startBare = async (folder: string): Promise<Contestant> => {
  const { port, stop } = await startRaw(folder, 0)
  return { pids: [], prepared: rawOperations(`http://127.0.0.1:${port}`), stop }
}

const main = async (checkout: string, rounds: number) => {
  const old = { checkout, folder: await scratchFolder() }
  const present = { checkout: join(import.meta.dirname, "../.."), folder: await scratchFolder() }
  const contestants = [
    await startVersion(old),
    await startVersion(present),
    await startBare(present.folder),
  ]
  const only = values.only?.split(",")
  const wanted = operations.filter(({ name }) => only?.includes(name) ?? true)
  const rows: Array<Row> = wanted.map(({ name }) => ({ name, figures: [[], [], []] }))
  for (let round = -1; round < rounds; round++) {
    for (const [at, { name, count, is_raw }] of wanted.entries()) {
      const order = round % 2 === 0 ? ([0, 1, 2] as const) : ([2, 1, 0] as const)
      for (const who of order) {
        const contestant = contestants[who]
        if (contestant === undefined || (who === 2 && !is_raw)) continue
        const figures = await measured(contestant.pids, count, contestant.prepared[name])
        // The first round warms up.
        if (round >= 0) rows[at]?.figures[who].push(figures)
      }
    }
  }
  const head = ["", "CPU us", "CPU, before / now", "rate, now / before", "rate, now / node:http"]
  console.log(aligned([head, ...rows.map(cellsOf)]))
  compareCommand(old, present, rounds, ["--help"])
  compareCommand(old, present, rounds, ["jobs", "list", "--as", "tenant"])
  for (const { stop } of contestants) await stop()
  for (const { folder } of [old, present]) rmSync(folder, { recursive: true, force: true })
}

if (values.help || values.before === undefined) {
  console.log(help)
  process.exitCode = values.help ? 0 : 2
} else await main(values.before, Number(values.rounds))
