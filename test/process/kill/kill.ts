/** Rounds on one data folder: a server under load is killed at a random moment and then checked. */
import assert from "node:assert/strict"
import { setTimeout as pause } from "node:timers/promises"
import { type Seeded, seeded } from "../../world/seeded.ts"
import { ledger } from "../../world/server/ledger.ts"
import {
  end,
  isRunning,
  natsServersOn,
  outputOf,
  type Server,
  startServer,
  until,
} from "../../world/server/server.ts"
import { type Checked, checkAll } from "./check.ts"
import { type Known, startLoad } from "./load.ts"

/**
 * The victims: everything, everything except nats-server, or nats-server while the rest continues.
 */
export const kills = ["everything", "server alone", "nats-server, then everything"] as const
export type Kill = (typeof kills)[number]

/** Acknowledged operations before a kill, and the delay after the last of them in milliseconds. */
const acknowledged_min = 60
const acknowledged_max = 250
const moment_ms_max = 40
/** Maximum number of nats-server kills in one round. */
const nats_kills_max = 2
/** Maximum time until the load gets that far, and until nats-server is back. */
const load_ms_max = 60_000
const back_ms_max = 30_000

/** The clients' nodes send few heartbeats, and must not be considered dead meanwhile. */
const environment = {
  // All events come from the load.
  ALMANAC_COMPUTE__KIND: "none",
  ALMANAC_CLUSTER__HEARTBEAT_DEADLINE_SECONDS: "7200",
  ALMANAC_CLUSTER__REMOVE_AFTER_SECONDS: "86400",
}

export interface Round extends Checked {
  readonly kill: Kill
  readonly nats_kills: number
  readonly acknowledged: number
  readonly in_doubt: number
  /** The time from process start to its ready line, after the kill. */
  readonly ready_ms: number
  readonly took_ms: number
}

/** Waits for some more acknowledged operations, and then for a short random time. */
const moment = async (known: Known, load: ReturnType<typeof startLoad>, random: Seeded) => {
  const more = random.between(acknowledged_min, acknowledged_max)
  const wanted = known.ledger.acknowledged() + more
  await until(`${more} acknowledged operations`, load_ms_max, () => {
    load.check()
    return known.ledger.acknowledged() >= wanted
  })
  await pause(random.next() * moment_ms_max)
}

/** Kills only nats-server and waits until the server has started another. */
const killNats = async ({ data_dir, pid }: Server) => {
  const [nats] = natsServersOn(data_dir)
  assert(nats !== undefined, "there is a nats-server")
  end(nats)
  await until("another nats-server", back_ms_max, () =>
    natsServersOn(data_dir).some((other) => other !== nats),
  )
  assert(isRunning(pid), "the server goes on without nats-server")
}

const loadAndKill = async (server: Server, known: Known, kill: Kill, random: Seeded) => {
  const load = startLoad(server, known, random.between(1, 1_000_000))
  let nats_kills = 0
  try {
    if (kill === "nats-server, then everything") {
      for (const times = random.between(1, nats_kills_max); nats_kills < times; nats_kills++) {
        await moment(known, load, random)
        await killNats(server)
      }
    }
    await moment(known, load, random)
    load.over()
    if (kill === "server alone") await server.killAlone()
    else await server.killAll()
  } finally {
    await load.stop()
  }
  return nats_kills
}

export interface Rounds {
  readonly data_dir: string
  readonly seed: number
  readonly rounds: number
  /** Whether there is time for another round; runs the requested number by default. */
  readonly goesOn?: () => boolean
  readonly onRound?: (round: Round, n: number) => void
}

/**
 * Kills and checks this many times, on one data folder. The first violation fails with the seed and
 * the server's output. Returns the rounds and the exit of the last server.
 */
export const killRounds = async (options: Rounds) => {
  const { data_dir, seed, rounds, goesOn = () => true, onRound } = options
  const random = seeded(seed)
  const known: Known = { ledger: ledger(), contents: new Map(), next: random.between(0, 1_000_000) }
  let server = await startServer(data_dir, environment)
  const done: Array<Round> = []
  try {
    while (done.length < rounds && goesOn()) {
      const since = performance.now()
      const before = known.ledger.acknowledged()
      const kill = kills[done.length % kills.length] ?? "everything"
      const nats_kills = await loadAndKill(server, known, kill, random)
      const counted = {
        acknowledged: known.ledger.acknowledged() - before,
        in_doubt: known.ledger.doubts.size,
      }
      server = await startServer(data_dir, environment)
      const checked = await checkAll(server, known)
      const took_ms = performance.now() - since
      const round = { kill, nats_kills, ...counted, ready_ms: server.ready_ms, took_ms, ...checked }
      done.push(round)
      onRound?.(round, done.length)
    }
    const ended = await server.stop()
    assert.deepEqual(ended, { code: 0, signal: null }, "SIGTERM ends the server with 0")
    return done
  } catch (cause) {
    const message = `seed ${seed}, round ${done.length + 1}, ${data_dir}: ${cause}`
    throw new Error(`${message}\n${outputOf(server)}`, { cause })
  }
}
