/**
 * Suite: the repair of one node, in process: its bandwidth compared with the configured limit, and
 * its effect on puts. It reads from a volume on disk; the receiving node keeps the copies in
 * memory.
 */
import { randomFillSync } from "node:crypto"
import { rm } from "node:fs/promises"
import { join } from "node:path"
import type { PutOrder } from "#actors/blob-storage/ports/engine.ts"
import type { NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import type { Members, Peers } from "#actors/blob-storage/ports/peers.ts"
import { memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { repair as makeRepair, peerFailure, rollbackGuard } from "#cluster"
import { placement } from "#placement"
import { openVolume } from "#volume"
import { machine } from "../harness/machine.ts"
import { drive, type Round } from "../harness/round.ts"
import { interleave, type Measured, say, spread } from "../harness/series.ts"
import type { Settings, Suite } from "../harness/suite.ts"
import { range, table } from "../harness/table.ts"

const kib = 1024
const mib = 1024 * kib
const ns_per_ms = 1_000_000n
const sizes = [
  { name: "4 KiB", blob_bytes: 4 * kib },
  { name: "1 MiB", blob_bytes: mib },
  { name: "16 MiB", blob_bytes: 16 * mib },
]
/** The default of `cluster.repair_bytes_per_second`. */
const limit_bytes = 50 * mib
const put_bytes = 4 * kib
const puts_in_flight = 32
/** A put older than this does not count as in progress. */
const settled_ns = 10_500n * ns_per_ms

const now = () => BigInt(Date.now()) * ns_per_ms
const timing = {
  now: () => process.hrtime.bigint() + began,
  after: (ms: number, run: () => void) => {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}
const began = now() - process.hrtime.bigint()

const orderOf = (policy: PutOrder["policy"]): PutOrder => ({
  labels: {},
  expected_id: undefined,
  if_none_match: false,
  policy,
  origin: { actor: "bench", request_id: "r", correlation_id: "c" },
})

const nodes = ["here", "there"]
const peersOf = nodes.map((node_id) => ({ node_id, address: `${node_id}:1` }))
const table_of = placement({
  ring_version: 1,
  vnodes_per_node: 8,
  nodes: nodes.map((node_id) => ({ node_id, weight_percent: 100 })),
})
const members: Members = {
  node_id: "here",
  ring_version: 1,
  active: peersOf,
  leaving: [],
  is_leaving: false,
  placement: table_of,
}

const never = async () => {
  throw peerFailure("UNAVAILABLE", "no such node")
}

/** The other node, in this process; it hashes what it receives, as a real node does. */
const peersTo = (engine: NodeEngine): Peers => ({
  rollBack: never,
  deleteClusterWide: never,
  fetch: never,
  copies: never,
  renew: never,
  keeps: async (_, ids) => ids.map(() => false),
  ringVersion: async () => 1,
  copiesOf: (_, ids) => engine.copiesOf(ids),
  send: async (_, order, bytes) => {
    const receiving = engine.receive(order, order.size)
    for await (const part of bytes) await receiving.write(part)
    return receiving.finish(now())
  },
})

/** A repair of this node's blobs, for another node that is still empty. */
const repairOf = (local: NodeEngine) => {
  return makeRepair({
    local,
    timing,
    peers: peersTo(memoryEngine()),
    members: () => members,
    guard: rollbackGuard(local, timing),
    isCurrent: async () => true,
    rebuild: never,
    report: say,
    sweep_seconds: 600,
    repair_bytes_per_second: limit_bytes,
  })
}

const open = (dir: string) =>
  openVolume({
    dir,
    capacity_bytes: 2 ** 40,
    size_max_bytes: 2 ** 40,
    segment_bytes: 64 * mib,
    scrub_bytes_per_second: 0,
  })

const fresh = (bytes: number, i: number) => {
  const buffer = randomFillSync(Buffer.alloc(bytes))
  buffer.writeDoubleLE(i + 1, 0)
  return buffer
}

/** A volume with this many bytes in blobs that the other node should also hold. */
const filled = async (dir: string, blob_bytes: number, bytes: number) => {
  const engine = await open(dir)
  const order = orderOf("REPLICATION_POLICY_REPLICA2")
  const blobs = Math.ceil(bytes / blob_bytes)
  const effort = { in_flight: 32, seconds: 600, runs_max: blobs }
  const put_at = now() - settled_ns
  await drive(
    async (i) => void (await engine.put(order, [fresh(blob_bytes, i)], put_at)),
    0,
    effort,
  )
  return { engine, bytes: blobs * blob_bytes }
}

/** The rate of a round is in MiB per second. */
const sweepRound = (engine: NodeEngine, bytes: number) => async (): Promise<Round> => {
  const repairs = repairOf(engine)
  const started = performance.now()
  const { actions } = await repairs.sweep()
  const seconds = (performance.now() - started) / 1000
  if (repairs.progress().bytes_moved !== bytes) throw new Error(`only ${actions} blobs were moved`)
  return { runs: actions, runs_per_s: bytes / mib / seconds, p50_ms: 0, p99_ms: 0 }
}

const bandwidth = async ({ folder, rounds, seconds }: Settings) => {
  const parts: Array<string> = []
  const measured: Array<Measured> = []
  for (const { name, blob_bytes } of sizes) {
    say(`repair of ${name}`)
    const dir = join(folder, `repair-${blob_bytes}`)
    const { engine, bytes } = await filled(dir, blob_bytes, limit_bytes * seconds)
    const limit: Round = { runs: 1, runs_per_s: limit_bytes / mib, p50_ms: 0, p99_ms: 0 }
    const seats = [
      { name: "repair", round: sweepRound(engine, bytes) },
      { name: "its limit", round: async () => limit },
    ]
    const effort = { in_flight: 1, seconds: 0, runs_max: 1 }
    const each = await interleave(seats, effort, rounds, folder)
    measured.push(each)
    parts.push(`Blobs of ${name}:`)
    parts.push(table(each, { rate: "MiB/s", per_run: 1, ours: "repair", latency: false }))
    await engine.close()
    await rm(dir, { recursive: true })
  }
  return { parts, measured }
}

/** A round of puts, and the MiB per second that the concurrent repair sent. */
interface DuringRepair extends Round {
  readonly mib_per_s: number
}

/** Runs puts during a repair, one sweep after another. */
const duringRepair = async (
  engine: NodeEngine,
  put: () => Promise<Round>,
): Promise<DuringRepair> => {
  let is_over = false
  let bytes_moved = 0
  const going = (async () => {
    while (!is_over) {
      const repairs = repairOf(engine)
      const swept = repairs.sweep()
      while (!is_over) {
        const pause = new Promise((resolve) => setTimeout(() => resolve(false), 20))
        if (await Promise.race([swept.then(() => true), pause])) break
      }
      bytes_moved += repairs.progress().bytes_moved
      await repairs.stop()
      await swept
    }
  })()
  const began = performance.now()
  try {
    const round = await put()
    const seconds = (performance.now() - began) / 1000
    is_over = true
    await going
    return { ...round, mib_per_s: bytes_moved / mib / seconds }
  } finally {
    is_over = true
    await going
  }
}

/**
 * Each round has its own volume: otherwise each sweep would check the blobs of earlier puts one by
 * one, and as these accumulate, less time would remain for the blobs to send.
 */
const latencies = async ({ folder, rounds, seconds }: Settings) => {
  say("puts during repair")
  const order = orderOf("REPLICATION_POLICY_NONE")
  let done = 0
  const withPuts =
    (run: (engine: NodeEngine, put: () => Promise<Round>) => Promise<DuringRepair>) => async () => {
      const dir = join(folder, "repair-puts")
      const { engine } = await filled(dir, mib, limit_bytes * seconds)
      const one = async (i: number) =>
        void (await engine.put(order, [fresh(put_bytes, i + 2 ** 40)], now()))
      const effort = { in_flight: puts_in_flight, seconds, runs_max: Number.MAX_SAFE_INTEGER }
      const round = await run(engine, () => drive(one, done, effort))
      done += round.runs
      await engine.close()
      await rm(dir, { recursive: true })
      return round
    }
  const seats = [
    { name: "during repair", round: withPuts(duringRepair) },
    { name: "alone", round: withPuts(async (_, put) => ({ ...(await put()), mib_per_s: 0 })) },
  ]
  const effort = { in_flight: puts_in_flight, seconds, runs_max: 1 }
  const measured = await interleave(seats, effort, rounds, folder)
  const [during] = measured.series
  const moved = spread(during?.rounds.map(({ mib_per_s }) => mib_per_s) ?? [])
  const columns = { rate: "puts/s", per_run: 1, ours: "during repair", latency: true }
  const heading = `Puts of 4 KiB, ${puts_in_flight} in flight`
  const sent = `the repair sent ${range(moved)} MiB/s meanwhile`
  return { parts: [`${heading}; ${sent}:`, table(measured, columns)], measured }
}

export const repair: Suite = async (settings) => {
  const { folder, rounds, seconds } = settings
  const speed = await bandwidth(settings)
  const during = await latencies(settings)
  const spent =
    `${rounds} rounds, interleaved, after one discarded; each moves ${seconds} seconds' worth of ` +
    "its limit."
  const setup = await machine(folder, [...speed.measured, during.measured], [])
  return [setup, spent, ...speed.parts, ...during.parts].join("\n\n")
}
