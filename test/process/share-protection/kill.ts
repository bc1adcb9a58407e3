/** Rounds on one data folder: share protection under load, killed at a random moment. */
import assert from "node:assert/strict"
import { setTimeout as pause } from "node:timers/promises"
import { type Seeded, seeded } from "../../world/seeded.ts"
import { ledger } from "../../world/server/ledger.ts"
import {
  type Environment,
  outputOf,
  type Server,
  startServer,
  until,
} from "../../world/server/server.ts"
import type { Known } from "../../world/server/share-request.ts"
import { checkRound, checkShares, pauseSchedule, type SharesChecked } from "./check.ts"
import { closeAll, connected, makeYards, startTenants, type Yard } from "./load.ts"

/** Acknowledged requests before a kill, and the delay after the last of them in milliseconds. */
const acknowledged_min = 60
const acknowledged_max = 200
const moment_ms_max = 40
const load_ms_max = 60_000

/** The conductor runs schedules and reconciliation every second. */
const busy: Environment = {
  ALMANAC_SERVICES: '["share-protection"]',
  // The targets' buckets do not exist; the ends of jobs are random enough.
  ALMANAC_COMPUTE__KIND: "none",
  ALMANAC_CONDUCTOR__SCHEDULER_INTERVAL: "1",
  ALMANAC_CONDUCTOR__RECONCILIATION_INTERVAL: "1",
  ALMANAC_CONDUCTOR__QUEUED_JOB_DEADLINE_SECONDS: "5",
  ALMANAC_QUOTA__TARGETS: "1000",
}

/** No automatic activity, and quotas that permit no further resources. */
const calm = (counts: {
  readonly targets: number
  readonly policies: number
  readonly backups: number
}): Environment => ({
  ...busy,
  ALMANAC_CONDUCTOR__RECONCILIATION_INTERVAL: "86400",
  ALMANAC_CONDUCTOR__QUEUED_JOB_DEADLINE_SECONDS: "86400",
  ALMANAC_QUOTA__TARGETS: String(counts.targets),
  ALMANAC_QUOTA__POLICIES: String(counts.policies),
  ALMANAC_QUOTA__BACKUPS: String(counts.backups),
})

export interface ShareRound {
  readonly kill: "everything" | "server alone"
  readonly acknowledged: number
  readonly in_doubt: number
  /** The time from process start to its ready line, after the kill. */
  readonly ready_ms: number
  readonly took_ms: number
}

const loadAndKill = async (
  server: Server,
  known: Known,
  yards: ReadonlyArray<Yard>,
  kill: ShareRound["kill"],
  random: Seeded,
) => {
  const load = startTenants(server, known, yards, random.between(1, 1_000_000))
  const more = random.between(acknowledged_min, acknowledged_max)
  const wanted = known.ledger.acknowledged() + more
  try {
    await until(`${more} acknowledged requests`, load_ms_max, () => {
      load.check()
      return known.ledger.acknowledged() >= wanted
    })
    await pause(random.next() * moment_ms_max)
    load.over()
    await (kill === "everything" ? server.killAll() : server.killAlone())
  } finally {
    await load.stop()
  }
}

export interface ShareRounds {
  readonly data_dir: string
  readonly seed: number
  readonly rounds: number
  readonly onRound?: (round: ShareRound, n: number) => void
}

/**
 * Kills and checks this many times, on one data folder, and then checks everything. The first
 * violation fails with the seed and the server's output.
 */
export const killShareRounds = async (options: ShareRounds) => {
  const { data_dir, seed, rounds, onRound } = options
  const random = seeded(seed)
  const known: Known = {
    ledger: ledger(),
    ids: new Map(),
    jobs: new Map(),
    again: new Map(),
    next: random.between(0, 1_000_000),
  }
  let server = await startServer(data_dir, busy)
  const done: Array<ShareRound> = []
  try {
    const clients = connected(server)
    const yards = await makeYards(server, clients)
    closeAll(clients)
    while (done.length < rounds) {
      const since = performance.now()
      const before = known.ledger.acknowledged()
      const kill = done.length % 2 === 0 ? "everything" : "server alone"
      await loadAndKill(server, known, yards, kill, random)
      const acknowledged = known.ledger.acknowledged() - before
      const in_doubt = known.ledger.doubts.size
      server = await startServer(data_dir, busy)
      await checkRound(server, known, yards)
      const took_ms = performance.now() - since
      const round = { kill, acknowledged, in_doubt, ready_ms: server.ready_ms, took_ms } as const
      done.push(round)
      onRound?.(round, done.length)
    }
    const checked = await checkCalm(server, known, yards, (next) => {
      server = next
    })
    return { done, checked }
  } catch (cause) {
    const message = `seed ${seed}, round ${done.length + 1}, ${data_dir}: ${cause}`
    throw new Error(`${message}\n${outputOf(server)}`, { cause })
  }
}

/** Restarts the server with no work and with quotas equal to the current counts. */
const checkCalm = async (
  server: Server,
  known: Known,
  yards: ReadonlyArray<Yard>,
  started: (server: Server) => void,
): Promise<SharesChecked> => {
  const { targets, policies, backups } = await pauseSchedule(server)
  const stopped = await server.stop()
  assert.deepEqual(stopped, { code: 0, signal: null }, "SIGTERM ends the server with 0")
  const counts = { targets: targets.size, policies: policies.size, backups: backups.size }
  const last = await startServer(server.data_dir, calm(counts))
  started(last)
  const checked = await checkShares(last, known, yards)
  await last.stop()
  return checked
}
