/**
 * Suite: the erasure code compared with ISA-L's general Reed-Solomon, one core each, in gigabytes.
 */
import { spawn, spawnSync } from "node:child_process"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { openErasureCode } from "#adapters/blob-storage/erasure.ts"
import { machine } from "../harness/machine.ts"
import { interleave, orSkip } from "../harness/series.ts"
import type { Suite } from "../harness/suite.ts"
import { table } from "../harness/table.ts"

const kib = 1024
const sizes = [64 * kib, 1024 * kib, 16_384 * kib]
const policies = [
  ["EC42", 4],
  ["EC82", 8],
] as const
/** Bytes per gigabyte, and bytes of blobs in one round. */
const giga = 1e9
const bytes_of_run = 2 ** 28

interface Work {
  readonly what: "encode" | "rebuild"
  readonly data_shards: number
  readonly bytes: number
}

/** The rate of a round is in gigabytes per second, its latency per blob. */
const roundOf =
  (run: (times: number) => Promise<number>, { bytes }: Work) =>
  async () => {
    const runs = Math.max(4, Math.round(bytes_of_run / bytes))
    const ns = await run(runs)
    const ms = ns / runs / 1e6
    return { runs, runs_per_s: (bytes * runs) / ns, p50_ms: ms, p99_ms: ms }
  }

const oursOf = ({ what, data_shards, bytes }: Work) => {
  const shard_bytes = bytes / data_shards
  const code = openErasureCode(data_shards, shard_bytes)
  for (let shard = 0; shard < data_shards; shard++) code.shard(shard).fill(shard + 3)
  const lost = [1, data_shards - 1]
  const once = () =>
    what === "encode" ? code.encode(shard_bytes) : code.rebuild(lost, shard_bytes)
  return async (times: number) => {
    const began = process.hrtime.bigint()
    for (let run = 0; run < times; run++) once()
    return Number(process.hrtime.bigint() - began)
  }
}

/** ISA-L in its own process, compiled here. */
const openPeer = (folder: string) => {
  const program = join(folder, "erasure")
  const source = join(import.meta.dirname, "../peers/erasure.c")
  const { status, stderr } = spawnSync("gcc", ["-O2", "-o", program, source, "-lisal"], {
    encoding: "utf8",
  })
  if (status !== 0) throw new Error(`apt-get install gcc libisal-dev: ${stderr?.slice(0, 200)}`)
  const peer = spawn(program, [], { stdio: ["pipe", "pipe", "inherit"] })
  const lines = createInterface({ input: peer.stdout })[Symbol.asyncIterator]()
  const runOf =
    ({ what, data_shards, bytes }: Work) =>
    async (times: number) => {
      peer.stdin.write(`${what} ${data_shards} ${bytes} ${times}\n`)
      const { value } = await lines.next()
      return Number(value)
    }
  const stop = async () => void peer.stdin.end()
  return { runOf, stop }
}

export const erasure: Suite = async ({ folder, rounds, onEnd }) => {
  const peer = await orSkip("ISA-L", async () => openPeer(folder))
  if (peer !== undefined) onEnd(peer.stop)
  const parts: Array<string> = []
  const all: Array<Awaited<ReturnType<typeof interleave>>> = []
  for (const [policy, data_shards] of policies) {
    for (const bytes of sizes) {
      for (const what of ["encode", "rebuild"] as const) {
        const work = { what, data_shards, bytes }
        const seats = [{ name: "almanac", round: roundOf(oursOf(work), work) }]
        if (peer) seats.push({ name: "ISA-L", round: roundOf(peer.runOf(work), work) })
        const effort = { in_flight: 1, seconds: 0, runs_max: 1 }
        const measured = await interleave(seats, effort, rounds, folder)
        all.push(measured)
        const title = what === "encode" ? "encode" : "two data shards rebuilt"
        const columns = { rate: "GB/s", per_run: 1, ours: "almanac", latency: false }
        parts.push(`### ${policy}, ${bytes / kib} KiB: ${title}\n\n${table(measured, columns)}`)
      }
    }
  }
  const spent =
    `${rounds} rounds of ${bytes_of_run / 2 ** 20} MiB each, interleaved, after one discarded; ` +
    `gigabytes (${giga}) of blob per second on one core. The peer is measured in CPU time, ` +
    "Almanac in elapsed time."
  return [await machine(folder, all, []), spent, ...parts].join("\n\n")
}
