/** Suite: puts into a cluster of six nodes on this machine, beside puts into a node alone. */
import { existsSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { startAlmanac } from "./blob-almanac.ts"
import { type LoadClient, loadClient } from "./blob-load.ts"
import type { BlobRequest } from "./blob-request.ts"
import { plainPut, startProgram } from "./blob-server.ts"
import { freePort } from "./free-port.ts"
import { machine } from "./machine.ts"
import type { Round } from "./round.ts"
import { type Contender, interleave } from "./series.ts"
import type { Suite } from "./suite.ts"
import { table } from "./table.ts"

const nodes = 6
const kib = 1024
const mib = 1024 * kib
/** Most bytes of one round, for the disk's sake. */
const round_bytes_max = 512 * mib

/** What is put, by how many clients at once, and what is compared. */
const kinds = [
  { name: "EC42", policy: "REPLICATION_POLICY_EC42", blob_bytes: 16 * mib, clients: [1, 4] },
  {
    name: "REPLICA2",
    policy: "REPLICATION_POLICY_REPLICA2",
    blob_bytes: 4 * kib,
    clients: [1, 32],
  },
]

interface Put {
  readonly port: number
  readonly request: (policy: string, blob_bytes: number) => BlobRequest
}

const putTo = (port: number, token: string): Put => ({
  port,
  request: (policy, blob_bytes) =>
    plainPut("POST", `/v1/blobs/stream?policy=${policy}`, {
      authorization: `Bearer ${token}`,
      "content-type": "application/octet-stream",
    })(blob_bytes),
})

/** Six processes, the first of which is given the blobs. */
const startCluster = async (folder: string) => {
  const dir = join(folder, "cluster")
  const described = join(dir, "cluster.json")
  // Its nodes listen at this port and those that follow.
  const port = await freePort()
  const main = join(import.meta.dirname, "../main.ts")
  const args = [main, "cluster", "--nodes", String(nodes), "--dir", dir, "--port", String(port)]
  const stop = await startProgram({
    ...{ folder: join(folder, "log"), name: "cluster", command: process.execPath, args },
    environment: process.env,
    isReady: async () => existsSync(described),
  })
  // `almanac cluster` writes it, and this is the part of it that is needed here.
  const { token } = JSON.parse(await readFile(described, "utf8")) as { token: string }
  return { put: putTo(port, token), stop }
}

/** No two rounds put the same bytes. */
let rounds_begun = 0

const seat = (
  name: string,
  { port, request }: Put,
  client: LoadClient,
  { policy, blob_bytes, connections }: { policy: string; blob_bytes: number; connections: number },
): Contender<Round> => ({
  name,
  round: async ({ seconds }) => {
    const { round } = await client.load({
      ...{ protocol: "http", port, connections, seconds, is_kept: false, round: ++rounds_begun },
      requests: [request(policy, blob_bytes)],
      runs_max: Math.max(connections, Math.floor(round_bytes_max / blob_bytes)),
    })
    return round
  },
})

export const cluster: Suite = async ({ folder, rounds, seconds, onEnd }) => {
  const client = loadClient()
  onEnd(client.stop)
  const { put, stop } = await startCluster(folder)
  onEnd(stop)
  const alone = await startAlmanac(join(folder, "alone"))
  onEnd(alone.stop)
  const parts: Array<string> = []
  const all: Array<Awaited<ReturnType<typeof interleave>>> = []
  for (const { name, policy, blob_bytes, clients } of kinds) {
    for (const connections of clients) {
      const ours = `${name}, ${nodes} nodes`
      const order = { policy, blob_bytes, connections }
      const put_alone = { port: alone.port, request: () => alone.put(blob_bytes) }
      const seats = [seat(ours, put, client, order), seat("a node alone", put_alone, client, order)]
      const effort = { in_flight: connections, seconds, runs_max: Number.MAX_SAFE_INTEGER }
      const measured = await interleave(seats, effort, rounds, folder)
      all.push(measured)
      const columns = { rate: "puts/s", per_run: 1, ours, latency: true }
      const size = blob_bytes < mib ? `${blob_bytes / kib} KiB` : `${blob_bytes / mib} MiB`
      parts.push(`### ${name}, ${size}, ${connections} at once\n\n${table(measured, columns)}`)
    }
  }
  const spent =
    `${rounds} rounds of ${seconds} s each, interleaved, after one discarded. All nodes, ` +
    "the node alone and the client share this machine's cores and its one disk: a put that six " +
    "nodes take part in is all their work here, and on machines of their own it is not."
  return [await machine(folder, all, []), spent, ...parts].join("\n\n")
}
