/** Suite 1: command, durable event, visible read model; fsync before the response, no HTTP. */
import { machine } from "../harness/machine.ts"
import { programs, serverVersion, startServer } from "../harness/postgres-server.ts"
import { interleave, type Measured, orSkip } from "../harness/series.ts"
import { type Seat, seat } from "../harness/stage.ts"
import type { Suite } from "../harness/suite.ts"
import { table } from "../harness/table.ts"
import { install, versionOf } from "../peers/installed.ts"

/** Module paths are relative to stage-child.ts, which imports them. */
const contestants = [
  { module: "../log/almanac.ts", name: "almanac" },
  { module: "../log/bare-log.ts", name: "bare JetStream" },
  { module: "../peers/postgres.ts", name: "postgres" },
  { module: "../peers/postgres.ts", name: "postgres, rule in the application" },
  { module: "../peers/dbos.ts", name: "dbos" },
  { module: "../peers/emmett.ts", name: "emmett" },
]

/** The issue requires both: a single waiting caller, and a busy service. */
const in_flights = [1, 16]

/** Minimum warm-up in seconds: V8 still optimizes after thousands of commands. */
const warm_up_s = 8

const versions = () => {
  const bin = programs()
  return [
    bin ? serverVersion(bin) : "no PostgreSQL",
    `pg ${versionOf("pg")}`,
    `DBOS ${versionOf("@dbos-inc/dbos-sdk")}`,
    `emmett-sqlite ${versionOf("@event-driven-io/emmett-sqlite")}`,
  ]
}

export const command: Suite = async ({ folder, rounds, seconds, onEnd }) => {
  await orSkip("the peers", async () => {
    if (!install()) throw new Error("npm ci failed in bench/peers")
  })
  const server = await orSkip("the PostgreSQL server", () => startServer(folder, onEnd))
  const home = { folder, ...(server ? { postgres: server.socket } : {}) }
  const seats: Array<Seat> = []
  for (const { module, name } of contestants) {
    const taken = await orSkip(name, () => seat(module, name, home, onEnd))
    if (taken) seats.push(taken)
  }
  const measured: Array<Measured> = []
  const parts: Array<string> = []
  for (const in_flight of in_flights) {
    const effort = { in_flight, seconds, runs_max: Number.MAX_SAFE_INTEGER }
    const warm_up = { ...effort, seconds: Math.max(seconds, warm_up_s) }
    const each = await interleave(seats, effort, rounds, folder, warm_up)
    measured.push(each)
    const columns = { rate: "commands/s", per_run: 1, ours: "almanac", latency: true }
    parts.push(`${in_flight} in flight:`, table(each, columns))
  }
  const spent = `${rounds} rounds of ${seconds} s each, interleaved, after a discarded warm-up.`
  return [await machine(folder, measured, versions()), spent, ...parts].join("\n\n")
}
