/**
 * `npm run bench`: runs the suites one after another and writes their tables to
 * docs/benchmark-results.md.
 */
import { rm } from "node:fs/promises"
import { parseArgs } from "node:util"
import { blob } from "./blob/blob.ts"
import { cluster } from "./blob/cluster.ts"
import { erasure } from "./blob/erasure.ts"
import { repair } from "./blob/repair.ts"
import { volume } from "./blob/volume.ts"
import { backfill } from "./capital-pressure/backfill.ts"
import { dashboard } from "./capital-pressure/dashboard.ts"
import { carrier } from "./carrier-search/carrier.ts"
import { mirror } from "./carrier-search/mirror.ts"
import { gateway } from "./gateway/gateway.ts"
import { memory } from "./gateway/memory.ts"
import { scratchFolder } from "./harness/disk.ts"
import { orSkip, say } from "./harness/series.ts"
import type { Suite } from "./harness/suite.ts"
import { publish } from "./harness/table.ts"
import { command } from "./log/command.ts"
import { events } from "./log/events.ts"
import { failover } from "./log/failover.ts"
import { replay } from "./log/replay.ts"
import { plant } from "./plant-disease/plant.ts"
import { backup } from "./share-protection/backup.ts"
import { jobsPage } from "./share-protection/jobs-page.ts"
import { schedule } from "./share-protection/schedule.ts"
import { token } from "./share-protection/token.ts"

const help = `npm run bench -- [--only SUITE] [--rounds N] [--seconds S] [--dry]

SUITE is command, gateway, replay, jobs-page, schedule, token, backup, memory, dashboard,
backfill, carrier, plant, mirror, blob, volume, erasure, repair, cluster, events or
failover. Each measures Almanac and its peers, interleaved, and writes its tables to
docs/benchmark-results.md (--dry only prints them). A missing peer is skipped with one line. The
blob suite measures all sizes with all counts of clients, or only these:
--sizes "1 MiB,16 MiB" --clients 8,2. The memory of a server under a mixed load is a separate
script: node bench/mixed-load/main.ts --help.

  npm run bench -- --only command --rounds 3 --seconds 2 --dry`

const suites: Readonly<Record<string, Suite>> = {
  command,
  gateway,
  replay,
  "jobs-page": jobsPage,
  schedule,
  token,
  backup,
  memory,
  dashboard,
  backfill,
  carrier,
  plant,
  mirror,
  blob,
  volume,
  erasure,
  repair,
  cluster,
  events,
  failover,
}

/** Defaults: seven rounds of four seconds; suites with many tables use fewer and shorter rounds. */
const usual = { rounds: "7", seconds: "4" }
const lengths: Readonly<Record<string, typeof usual>> = {
  blob: { rounds: "3", seconds: "1" },
  failover: { rounds: "3", seconds: "1" },
}

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    rounds: { type: "string" },
    seconds: { type: "string" },
    sizes: { type: "string" },
    clients: { type: "string" },
    dry: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
})

const positive = (name: string, text: string) => {
  const value = Number(text)
  if (!(value > 0)) throw new Error(`--${name} must be a number above 0, not ${text}`)
  return value
}

const run = async (name: string, suite: Suite) => {
  await using ends = new AsyncDisposableStack()
  const folder = await scratchFolder()
  ends.defer(() => rm(folder, { recursive: true, force: true }))
  const interrupted = () => void ends.disposeAsync().finally(() => process.exit(130))
  process.once("SIGINT", interrupted).once("SIGTERM", interrupted)
  ends.defer(() => void process.off("SIGINT", interrupted).off("SIGTERM", interrupted))
  const length = lengths[name] ?? usual
  const settings = {
    folder,
    rounds: Math.ceil(positive("rounds", values.rounds ?? length.rounds)),
    seconds: positive("seconds", values.seconds ?? length.seconds),
    ...(values.sizes === undefined ? {} : { sizes: values.sizes.split(",") }),
    ...(values.clients === undefined
      ? {}
      : { clients: values.clients.split(",").map((text) => positive("clients", text)) }),
    onEnd: (stop: () => Promise<void>) => (ends.disposed ? void stop() : ends.defer(stop)),
  }
  say(`${name}, in ${folder}`)
  const text = await orSkip(name, () => suite(settings))
  // Interrupted: the process is about to exit, and the measurements are incomplete.
  if (ends.disposed) return new Promise<never>(() => {})
  if (text === undefined) return
  console.log(`\n## ${name}\n\n${text}\n`)
  if (!values.dry) await publish(name, text)
}

if (values.help) console.log(help)
else if (values.only && !suites[values.only]) throw new Error(`--only ${values.only}: ${help}`)
else {
  for (const [name, suite] of Object.entries(suites)) {
    if (!values.only || values.only === name) await run(name, suite)
  }
}
