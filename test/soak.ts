/**
 * `npm run soak -- --minutes N [--rounds N] [--seed N]`: runs the rounds of kill.ts many times,
 * after simulations of share protection for at most half of the time.
 *
 * Each folder of a few rounds has a seed, which is printed before it starts; `--seed` repeats only
 * that folder. The interleaving of two processes always varies, but the seed determines which
 * processes are killed, which data is put, and how much work precedes a kill. A failed folder is
 * kept.
 *
 * `--only carriers [--seed N] [--rounds N]` kills imports of two million dockets. `--only ingest
 * [--seed N]` kills ingests of the dashboard instead, in folders of their own. `--only predictions`
 * measures the memory of the plant predictor, then that of a server with 1,000 clients. `--only
 * simulation [--runs N] [--seed N]` runs N simulations to the end, or only that of the seed, which
 * is deterministic. `--only kill` skips them. `--only fuzz [--runs N] [--seed N]` sends N requests
 * to each operation, malicious ones included. `--only schemathesis [--minutes N] [--seed N]` tests
 * the API from its document. `--only webhooks [--runs N] [--seed N]` delivers to failing receivers,
 * in N runs. `--only cluster-simulation [--runs N] [--seed N]` runs N simulated
 * clusters. `--only volume [--runs N] [--seed N]` runs N crash points of a simulated volume.
 * `--only cluster [--nodes 10] [--rounds N] [--seed N] [--first WHAT] [--skew]` kills, stops and
 * partitions nodes under load, starting with WHAT; `--skew` makes clocks differ by half a minute
 * and more. `--only chaos [--rounds N] [--seed N]` kills, stops and partitions each of three
 * nats-servers and two processes under load, N times each. `--only starts [--rounds N] [--seed N]`
 * starts a server N times on busy cores and checks the outcome of each start. `--only log [--runs
 * N] [--seed N]` damages N copies of the log's store and starts on each. `--only volume-load
 * [--blobs N]` restarts a volume of N small blobs (default 10,000,000), and loads another one with
 * deletes by the hundred thousand and blobs of 5 GiB.
 */
import { randomInt } from "node:crypto"
import { rmSync } from "node:fs"
import { parseArgs } from "node:util"
import { soakCluster } from "../packages/cluster/test/simulation/soak.ts"
import { soakVolume } from "../packages/volume/test/crash/soak.ts"
import { soakLoad } from "../packages/volume/test/load.ts"
import { runCases } from "./log/damage/cases.ts"
import { growth_bytes_max, growthOver } from "./plant-disease/predictor-memory.ts"
import { chaosRounds } from "./process/chaos/soak.ts"
import { type ClusterRound, clusterRounds } from "./process/cluster/kill.ts"
import { killIngests } from "./process/kill/ingest-kill.ts"
import { killRounds, type Round } from "./process/kill/kill.ts"
import { import_mb_max, killImports } from "./process/kill/mirror-kill.ts"
import { load_growth_bytes_max, plantLoad } from "./process/kill/plant-load.ts"
import { all_faults, shareFaults } from "./process/share-protection/faults.ts"
import { killShareRounds, type ShareRound } from "./process/share-protection/kill.ts"
import { startLoop } from "./process/start/start-loop.ts"
import { soakFuzz } from "./security/fuzz-soak.ts"
import { soakSchemathesis } from "./security/schemathesis/soak.ts"
import { cleanUp, keep, newFolder } from "./world/server/server.ts"
import { soakSimulation } from "./world/share-protection/simulation/soak.ts"
import { soakWebhooks } from "./world/system/webhook/soak.ts"

const minutes_default = 30
const rounds_default = 50
const runs_default = 10_000
const clusters_default = 20_000
const nodes_default = 6
/** Issue 10: number of seeded fault runs. */
const webhooks_default = 1000
/** Per operation: some 25,000 requests in all. */
const fuzz_default = 100
const small_blobs_default = 10_000_000
/** Each kind of kill runs at least once, however short the time. */
const rounds_min = 3
/**
 * Blobs accumulate in a folder and each round reads all of them, so start a new folder after this.
 */
const rounds_per_folder = 6
const seed_max = 2 ** 31
/** More dockets than the registry has. */
const dockets = 2_000_000
const predictions_count = 10_000
const predictions_clients = 1000
/** Every fault of a chaos round; it takes about four minutes. */
const chaos_rounds_max = 100
const log_default = 2000
/** Cases per progress line. */
const log_report_every = 100
const minute_ms = 60_000
/** Allowance for a stop and a cleanup after the last round. */
const last_ms = 5_000

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: String(minutes_default) },
    rounds: { type: "string", default: String(rounds_default) },
    seed: { type: "string" },
    only: { type: "string" },
    runs: { type: "string" },
    blobs: { type: "string" },
    nodes: { type: "string", default: String(nodes_default) },
    first: { type: "string" },
    skew: { type: "boolean", default: false },
  },
})

const number = (name: string, text: string) => {
  const value = Number(text)
  if (Number.isFinite(value) && value > 0) return value
  console.error(`soak: --${name} needs a number above 0, not ${text}`)
  process.exit(2)
}

const since = performance.now()
const soak_ms = number("minutes", values.minutes) * minute_ms
const end = since + soak_ms
const wanted = number("rounds", values.rounds)
const done: Array<Round> = []
const shares_done: Array<ShareRound> = []

/** Whether another round of the longest duration so far would end in time. */
const goesOn = () => {
  const longest_ms = Math.max(0, ...done.map(({ took_ms }) => took_ms))
  const is_in_time = performance.now() + longest_ms + last_ms < end
  if (values.only === "shares") return shares_done.length < wanted && performance.now() < end
  return done.length < Math.min(wanted, rounds_min) || (done.length < wanted && is_in_time)
}

const reportRound = (round: Round, n: number) => {
  done.push(round)
  const { kill, acknowledged, in_doubt, ready_ms, took_ms, blobs, events } = round
  console.log(
    `soak: round ${done.length} (${n} of its folder): killed ${kill}; ` +
      `${acknowledged} acknowledged, ${in_doubt} in doubt, ready again in ` +
      `${Math.round(ready_ms)} ms; ${blobs} blobs and ${events} events as they must be ` +
      `(${Math.round(took_ms)} ms)`,
  )
}

const folder = async (seed: number) => {
  const data_dir = newFolder()
  console.log(`soak: seed ${seed} in ${data_dir}`)
  keep(data_dir)
  const rounds = Math.min(rounds_per_folder, wanted - done.length)
  await killRounds({ data_dir, seed, rounds, goesOn, onRound: reportRound })
  rmSync(data_dir, { recursive: true, force: true })
}

const toldShares = (round: ShareRound, n: number) => {
  shares_done.push(round)
  const { kill, acknowledged, in_doubt, ready_ms, took_ms } = round
  console.log(
    `soak: round ${shares_done.length} of share protection (${n} of its folder): killed ${kill}; ` +
      `${acknowledged} acknowledged, ${in_doubt} in doubt, ready again in ` +
      `${Math.round(ready_ms)} ms (${Math.round(took_ms)} ms)`,
  )
}

/** Only the end of a folder checks everything, so finish every folder that is started. */
const sharesFolder = async (seed: number) => {
  const data_dir = newFolder()
  console.log(`soak: share protection, seed ${seed} in ${data_dir}`)
  keep(data_dir)
  const left = values.only === "shares" ? wanted - shares_done.length : rounds_min
  const rounds = Math.min(rounds_per_folder, left)
  await killShareRounds({ data_dir, seed, rounds, onRound: toldShares })
  rmSync(data_dir, { recursive: true, force: true })
}

let ingests_done = 0

/** Kills and repeats ingests of the dashboard until the folder must be complete. */
const ingestsFolder = async (seed: number) => {
  const folder = newFolder()
  console.log(`soak: ingests, seed ${seed} in ${folder}`)
  keep(folder)
  await killIngests({
    folder,
    seed,
    rounds: values.only === "ingest" ? rounds_per_folder : 1,
    onRound: ({ feeds, took_ms }) =>
      console.log(
        `soak: ingest ${++ingests_done} killed after ${feeds} feeds (${Math.round(took_ms)} ms)`,
      ),
  })
  rmSync(folder, { recursive: true, force: true })
}

const ingests = async () => {
  do await ingestsFolder(randomInt(1, seed_max))
  while (ingests_done < wanted && performance.now() < end)
}

/** Kills and repeats imports of carriers until the mirror must be complete. */
const carriersFolder = async (seed: number) => {
  const folder = newFolder()
  console.log(`soak: imports of carriers, seed ${seed} in ${folder}`)
  keep(folder)
  const { took_ms, held_mb, carriers } = await killImports({
    folder,
    seed,
    rows: dockets,
    rounds: Math.min(wanted, rounds_per_folder),
    onRound: ({ moment, is_new }) =>
      console.log(
        `soak: import killed at ${Math.round(moment * 100)}%: the mirror is ` +
          `${is_new ? "the new" : "still the old"} one`,
      ),
  })
  const held = `held ${Math.round(held_mb)} MB, ${import_mb_max} at most`
  console.log(`soak: ${carriers} carriers in ${Math.round(took_ms)} ms, ${held}`)
  if (held_mb > import_mb_max) throw new Error(held)
  rmSync(folder, { recursive: true, force: true })
}

const toldCluster = ({ what, blobs, deleted, doubtful, reads, took_ms }: ClusterRound) =>
  console.log(
    `soak: ${what}: ${blobs} blobs whole, ${deleted} deleted everywhere, ${doubtful} in doubt, ` +
      `${reads} reads answered (${Math.round(took_ms)} ms)`,
  )

const cluster = async () => {
  const seed = values.seed === undefined ? randomInt(1, seed_max) : number("seed", values.seed)
  const count = number("nodes", values.nodes)
  const { first, skew: is_skewed } = values
  console.log(`soak: a cluster of ${count}, seed ${seed}${is_skewed ? ", wrong clocks" : ""}`)
  await clusterRounds({
    count,
    seed,
    rounds: wanted,
    is_skewed,
    onRound: toldCluster,
    ...(first !== undefined && { first }),
  })
}

const summary = (outcome: string) => {
  const sum = (of: (round: Round) => number) => done.reduce((total, round) => total + of(round), 0)
  const ready = done.map(({ ready_ms }) => ready_ms).toSorted((one, other) => one - other)
  const median = Math.round(ready[Math.floor(ready.length / 2)] ?? 0)
  const seconds = Math.round((performance.now() - since) / 1000)
  console.log(
    `soak: ${outcome}: ${done.length} rounds, ${shares_done.length} of share protection, and ` +
      `${ingests_done} killed ingests ` +
      `in ${seconds} s, ` +
      `${sum(({ acknowledged }) => acknowledged)} acknowledged, ` +
      `${sum(({ in_doubt }) => in_doubt)} in doubt, ` +
      `${sum(({ nats_kills }) => nats_kills)} kills of nats-server alone, ` +
      `ready again in ${median} ms at the median`,
  )
}

const megabytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MB`

/**
 * 10,000 images through the predictor, then through a server with 1,000 clients, which may respond
 * only with 200 and 503.
 */
const predictions = async () => {
  const grown = growthOver(predictions_count)
  console.log(`soak: ${predictions_count} predictions: ${megabytes(grown)} more`)
  if (grown > growth_bytes_max) throw new Error("the predictor's memory grows")
  const loaded = await plantLoad(predictions_clients, predictions_count)
  const statuses = [...loaded.statuses].map(([status, count]) => `${count} times ${status}`)
  const more = `${megabytes(loaded.growth_bytes)} more`
  console.log(`soak: ${predictions_clients} clients: ${statuses.join(", ")}; ${more}`)
  if ([...loaded.statuses.keys()].some((status) => status !== 200 && status !== 503)) {
    throw new Error("predictions were answered otherwise than 200 and 503")
  }
  if (!loaded.is_same) throw new Error("a leaf had several answers")
  if (loaded.growth_bytes > load_growth_bytes_max) throw new Error("the server's memory grows")
}

/** Returns whether all simulations kept their invariants. */
const simulations = () => {
  const runs = number("runs", values.runs ?? String(runs_default))
  if (values.only !== "simulation") return soakSimulation(runs, since + soak_ms / 2)
  if (values.seed === undefined) return soakSimulation(runs, Infinity)
  return soakSimulation(1, Infinity, number("seed", values.seed))
}

const parts = [
  "kill",
  "shares",
  "ingest",
  "carriers",
  "faults",
  "simulation",
  "predictions",
  "volume",
  "volume-load",
  "cluster-simulation",
  "cluster",
  "webhooks",
  "chaos",
  "fuzz",
  "schemathesis",
  "starts",
  "log",
]
if (values.only !== undefined && !parts.includes(values.only)) {
  console.error(`soak: --only knows ${parts.join(", ")}, not ${values.only}`)
  process.exit(2)
}
const is_simulated = values.only === "simulation" || (!values.only && values.seed === undefined)
if (is_simulated && !simulations()) process.exit(1)
if (values.only === "simulation") process.exit(0)
if (values.only === "cluster-simulation") {
  const seed = values.seed === undefined ? undefined : number("seed", values.seed)
  const runs = seed === undefined ? number("runs", values.runs ?? String(clusters_default)) : 1
  process.exit((await soakCluster(runs, seed)) ? 0 : 1)
}
if (values.only === "webhooks") {
  const seed = values.seed === undefined ? undefined : number("seed", values.seed)
  const runs = seed === undefined ? number("runs", values.runs ?? String(webhooks_default)) : 1
  process.exit(soakWebhooks(runs, seed) ? 0 : 1)
}
if (values.only === "volume") {
  const seed = values.seed === undefined ? undefined : number("seed", values.seed)
  const is_kept = await soakVolume(number("runs", values.runs ?? String(runs_default)), seed)
  process.exit(is_kept ? 0 : 1)
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void cleanUp().finally(() => process.exit(1)))
}

/** Blob storage and share protection in turn, until the time or the rounds are used up. */
const rounds = async () => {
  while (goesOn()) {
    if (values.only !== "shares") await folder(randomInt(1, seed_max))
    if (values.only !== "kill") await sharesFolder(randomInt(1, seed_max))
    if (values.only === undefined) await ingestsFolder(randomInt(1, seed_max))
  }
}

const faults = () =>
  shareFaults(all_faults, ({ victim, moment, met, state, attempt, took_ms }) =>
    console.log(
      `soak: ${victim} gone in ${moment} (met in ${met}): ${state} in attempt ${attempt} ` +
        `(${Math.round(took_ms)} ms)`,
    ),
  )

const damagedLogs = async () => {
  const is_one = values.seed !== undefined
  const seed = is_one ? number("seed", values.seed ?? "") : randomInt(1, seed_max)
  const count = is_one ? 1 : number("runs", values.runs ?? String(log_default))
  console.log(`soak: damaged logs from seed ${seed} on`)
  const onCase = (done: number) => {
    if (done % log_report_every === 0) console.log(`soak: ${done} damaged logs`)
  }
  const faults = await runCases({ folder: newFolder(), seed, count, onCase })
  if (faults.length > 0) throw new Error(faults.join("\n"))
}

const starts = async () => {
  const seed = values.seed === undefined ? randomInt(1, seed_max) : number("seed", values.seed)
  console.log(`soak: starts, seed ${seed}`)
  let n = 0
  const faults = await startLoop({
    seed,
    rounds: wanted,
    onRound: ({ state, end, ready_ms, fault }) =>
      console.log(
        `soak: start ${++n} (${state}, ${end}): ready in ${Math.round(ready_ms)} ms` +
          (fault === undefined ? "" : `; FAULT: ${fault}`),
      ),
  })
  if (faults.length > 0) throw new Error(`${faults.length} of ${n} starts went wrong`)
}

const folderOf = (seed: number) => {
  if (values.only === "ingest") return ingestsFolder(seed)
  if (values.only === "carriers") return carriersFolder(seed)
  return values.only === "shares" ? sharesFolder(seed) : folder(seed)
}

try {
  const is_whole = values.only === undefined && values.seed === undefined
  if (values.only === "predictions" || is_whole) await predictions()
  if (values.only === "volume-load") {
    await soakLoad(newFolder(), number("blobs", values.blobs ?? String(small_blobs_default)))
  } else if (values.only === "cluster") await cluster()
  else if (values.only === "starts") await starts()
  else if (values.only === "log") await damagedLogs()
  else if (values.only === "chaos") {
    const seed = values.seed === undefined ? randomInt(1, seed_max) : number("seed", values.seed)
    await chaosRounds(seed, Math.min(wanted, chaos_rounds_max))
  } else if (values.only === "faults") await faults()
  else if (values.only === "fuzz") {
    const seed = values.seed === undefined ? undefined : number("seed", values.seed)
    await soakFuzz(number("runs", values.runs ?? String(fuzz_default)), seed)
  } else if (values.only === "schemathesis") {
    const seed = values.seed === undefined ? undefined : number("seed", values.seed)
    await soakSchemathesis(number("minutes", values.minutes), seed)
  } else if (values.only === "carriers" && values.seed === undefined) {
    await carriersFolder(randomInt(1, seed_max))
  } else if (values.only === "predictions") console.log("soak: the predictor's memory is flat")
  else if (values.seed !== undefined) await folderOf(number("seed", values.seed))
  else await (values.only === "ingest" ? ingests() : rounds())
  summary("passed")
} catch (cause) {
  console.error(cause)
  summary("FAILED")
  process.exitCode = 1
} finally {
  await cleanUp()
}
