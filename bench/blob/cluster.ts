/**
 * Suite: puts to clusters of two and six nodes on this machine, compared with puts to a single
 * node: rates, latencies, and the CPU time per put of all processes in the cluster.
 */
import { randomInt } from "node:crypto"
import { existsSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { machine } from "../harness/machine.ts"
import { median } from "../harness/round.ts"
import {
  type Contender,
  interleave,
  rates,
  ratioSpread,
  type Series,
  spread,
} from "../harness/series.ts"
import type { Suite } from "../harness/suite.ts"
import { aligned, number, range } from "../harness/table.ts"
import { startAlmanac } from "./almanac.ts"
import { type LoadClient, loadClient } from "./load.ts"
import { descendants, pause_ms_max, rested, usedSeconds } from "./process.ts"
import type { BlobRequest, BlobRound } from "./request.ts"
import { plainPut, startProgram } from "./server.ts"

const kib = 1024
const mib = 1024 * kib
const us_per_s = 1e6
/** Maximum bytes per round, to limit disk use. */
const round_bytes_max = 512 * mib
/**
 * Until V8 has compiled the code for puts on six nodes, they cost up to twice as much. The warm-up
 * ends after this many seconds, or after the bytes of this many rounds.
 */
const warm_up_seconds = 8
const warm_up_rounds = 3

/** Policies and sizes to put, with the numbers of concurrent clients and of nodes. */
const kinds = [
  {
    name: "EC42",
    policy: "REPLICATION_POLICY_EC42",
    blob_bytes: 16 * mib,
    clients: [1, 4],
    clusters: [6],
  },
  {
    name: "REPLICA2",
    policy: "REPLICATION_POLICY_REPLICA2",
    blob_bytes: 4 * kib,
    clients: [1, 32],
    clusters: [2, 6],
  },
]

/** One round of load, and its cost for all processes involved, until they are idle. */
interface Row extends BlobRound {
  readonly cpu_us: number
}

interface Put {
  readonly port: number
  /** All processes involved. */
  readonly pids: () => ReadonlyArray<number>
  readonly request: (policy: string, blob_bytes: number) => BlobRequest
}

const putTo =
  (token: string) =>
  (policy: string, blob_bytes: number): BlobRequest =>
    plainPut("POST", `/v1/blobs/stream?policy=${policy}`, {
      authorization: `Bearer ${token}`,
      "content-type": "application/octet-stream",
    })(blob_bytes)

/** The result of `start`, and the processes that it started. */
const watched = async <A>(start: () => Promise<A>) => {
  const before = new Set(descendants(process.pid))
  const started = await start()
  const roots = descendants(process.pid).filter((pid) => !before.has(pid))
  const pids = () => [...new Set(roots.flatMap((pid) => [pid, ...descendants(pid)]))]
  return { started, pids }
}

/** Below Linux's ephemeral ports, so that several consecutive ones stay free. */
const own_ports = { first: 20_000, last: 32_000 }

/** Starts the processes of one cluster; the first node receives the blobs. */
const startCluster = async (folder: string, nodes: number) => {
  const dir = join(folder, `cluster-${nodes}`)
  const described = join(dir, "cluster.json")
  // The nodes listen on this port and the ones after it.
  const port = randomInt(own_ports.first, own_ports.last - nodes)
  const main = join(import.meta.dirname, "../../main.ts")
  const args = [main, "cluster", "--nodes", String(nodes), "--dir", dir, "--port", String(port)]
  const { started: stop, pids } = await watched(() =>
    startProgram({
      folder: join(folder, "log"),
      name: `cluster-${nodes}`,
      command: process.execPath,
      args,
      environment: process.env,
      isReady: async () => existsSync(described),
    }),
  )
  // `almanac cluster` writes this file; only this field is needed here.
  const { token } = JSON.parse(await readFile(described, "utf8")) as { token: string }
  const put: Put = { port, pids, request: putTo(token) }
  return { put, stop }
}

/** Makes the bytes of each round unique. */
let rounds_begun = 0

const seat = (
  name: string,
  { port, pids, request }: Put,
  client: LoadClient,
  { policy, blob_bytes, connections }: { policy: string; blob_bytes: number; connections: number },
): Contender<Row> => ({
  name,
  round: async ({ seconds, runs_max }) => {
    const before = usedSeconds(pids())
    const { round } = await client.load({
      protocol: "http",
      port,
      connections,
      seconds,
      is_kept: false,
      round: ++rounds_begun,
      requests: [request(policy, blob_bytes)],
      runs_max,
    })
    // Background writes after the responses belong to these puts, not to the next round.
    await rested(pids, pause_ms_max)
    return { ...round, cpu_us: ((usedSeconds(pids()) - before) * us_per_s) / round.runs }
  },
})

const rowsOf = (series: ReadonlyArray<Series<Row>>) => {
  const alone = series.find(({ name }) => name === alone_name)
  const middle = (each: Series<Row>, figure: (row: Row) => number) =>
    number(median(each.rounds.map(figure)))
  return series.map((each) => {
    const ratio = alone && each !== alone ? ratioSpread(each, alone) : undefined
    return [
      each.name,
      range(spread(rates(each))),
      middle(each, ({ p50_ms }) => p50_ms),
      middle(each, ({ p99_ms }) => p99_ms),
      middle(each, ({ cpu_us }) => cpu_us),
      ratio ? range(ratio) : "",
      rates(each).map(number).join(" "),
    ]
  })
}

const alone_name = "a single node"
const heads = ["", "puts/s", "p50 ms", "p99 ms", "CPU us", "this / alone", "round by round"]

const spentIn = (rounds: number, seconds: number) =>
  `${rounds} rounds of ${seconds} s each, interleaved, after a discarded warm-up of at most ` +
  `${warm_up_seconds} s. All nodes, the single node and the client share this machine's cores ` +
  "and its one disk, so this machine does the work of all six nodes of a put. CPU is the time of " +
  "all processes of the cluster and of its bus per put, until they are idle. As in `almanac " +
  "cluster`, only the first node indexes the events of all nodes."

export const cluster: Suite = async ({ folder, rounds, seconds, onEnd }) => {
  const client = loadClient()
  onEnd(client.stop)
  const puts = new Map<number, Put>()
  for (const nodes of new Set(kinds.flatMap(({ clusters }) => clusters))) {
    const { put, stop } = await startCluster(folder, nodes)
    onEnd(stop)
    puts.set(nodes, put)
  }
  const { started: alone, pids } = await watched(() => startAlmanac(join(folder, "alone")))
  onEnd(alone.stop)
  const put_alone: Put = { port: alone.port, pids, request: (_, bytes) => alone.put(bytes) }
  const parts: Array<string> = []
  const all: Array<Awaited<ReturnType<typeof interleave>>> = []
  for (const { name, policy, blob_bytes, clients, clusters } of kinds) {
    for (const connections of clients) {
      const order = { policy, blob_bytes, connections }
      const seats = clusters.flatMap((nodes) => {
        const put = puts.get(nodes)
        return put ? [seat(`${name}, ${nodes} nodes`, put, client, order)] : []
      })
      seats.push(seat(alone_name, put_alone, client, order))
      const runs_max = Math.max(connections, Math.floor(round_bytes_max / blob_bytes))
      const effort = { in_flight: connections, seconds, runs_max }
      const warm_up = {
        ...effort,
        seconds: warm_up_seconds,
        runs_max: warm_up_rounds * runs_max,
      }
      const measured = await interleave(seats, effort, rounds, folder, warm_up)
      all.push(measured)
      const size = blob_bytes < mib ? `${blob_bytes / kib} KiB` : `${blob_bytes / mib} MiB`
      const heading = `### ${name}, ${size}, ${connections} at once`
      parts.push(`${heading}\n\n${aligned([heads, ...rowsOf(measured.series)])}`)
    }
  }
  return [await machine(folder, all, []), spentIn(rounds, seconds), ...parts].join("\n\n")
}
