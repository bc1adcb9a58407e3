/** A cluster of real processes, started as a user starts it: `almanac cluster`. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { type Client, connect } from "./client.ts"
import { isRunning, newFolder, program, startScript, told, until } from "./server.ts"

/** Six starts on a machine that does several things at once; alone they take seven seconds. */
const ready_ms_max = 120_000
/** From a signal to the end of a process, or to what others make of it. */
const soon_ms = 30_000

export interface ClusterNode {
  readonly node_id: string
  readonly url: string
  readonly pid: number
}

/** What it wrote down for whoever comes with `curl`. */
interface ClusterFile {
  readonly token: string
  readonly nodes: ReadonlyArray<ClusterNode>
}

/** Small files, and heartbeats that tell soon of a node that is gone: in seconds. */
const set = [
  "blob.segment_bytes=8388608",
  "cluster.heartbeat_interval_seconds=1",
  "cluster.heartbeat_deadline_seconds=4",
]

/** Starts it, and waits until each node sees all. */
export const startCluster = async (nodes: number, settings: ReadonlyArray<string> = []) => {
  const dir = join(newFolder(), "cluster")
  const flags = [...set, ...settings].flatMap((one) => ["--set", one])
  const args = [program, "cluster", "--nodes", String(nodes), "--dir", dir, ...flags]
  const one = startScript(newFolder(), args)
  const stop = async () => {
    one.child.kill("SIGTERM")
    return await one.ended
  }
  try {
    await one.said(/^cluster ready$/m, ready_ms_max)
  } catch (cause) {
    // What it has started goes with it, and not with what cleans up behind a failed test.
    await stop()
    throw cause
  }
  const read: ClusterFile = JSON.parse(readFileSync(join(dir, "cluster.json"), "utf8"))
  const clients = read.nodes.map(({ url }) => connect(url, read.token))
  const clientOf = (number: number): Client => {
    const client = clients[number - 1]
    if (client === undefined) throw new Error(`there is no node ${number}`)
    return client
  }
  return {
    dir,
    pid: one.pid,
    token: read.token,
    nodes: read.nodes,
    clients,
    clientOf,
    printed: one.printed,
    told: () => told(one),
    /** SIGKILL for the process of a node. */
    kill: async (number: number) => {
      const pid = read.nodes[number - 1]?.pid ?? 0
      process.kill(pid, "SIGKILL")
      await until(`node ${number} to be gone`, soon_ms, () => !isRunning(pid))
    },
    /** SIGKILL for the process that started the nodes. */
    killParent: () => {
      for (const client of clients) client.close()
      one.child.kill("SIGKILL")
    },
    /** Has a node stand still, and go on. */
    signal: (number: number, signal: "SIGSTOP" | "SIGCONT") =>
      process.kill(read.nodes[number - 1]?.pid ?? 0, signal),
    stop: async () => {
      for (const client of clients) client.close()
      return await stop()
    },
  }
}

export type Cluster = Awaited<ReturnType<typeof startCluster>>

/** A put of plain bytes under a policy: whatever was answered. */
export const putAs = (client: Client, bytes: Uint8Array, policy: string) =>
  client.ask("POST", `/v1/blobs/stream?policy=REPLICATION_POLICY_${policy}`, {
    headers: { "content-type": "application/octet-stream" },
    body: bytes,
  })

/** A get of plain bytes: whatever was answered. */
export const getRaw = (client: Client, id: string, headers = {}) =>
  client.ask("GET", `/v1/blobs/${id}`, {
    headers: { accept: "application/octet-stream", ...headers },
  })

interface Stat {
  readonly exists: boolean
}

/** How many of these nodes have a copy or a shard of the blob. */
export const countCopies = async (clients: ReadonlyArray<Client>, id: string) => {
  const stats = await Promise.all(
    clients.map((client) => client.json<Stat>("GET", `/v1/blobs/${id}/stat`)),
  )
  return stats.filter(({ exists }) => exists).length
}

interface State {
  readonly nodes: ReadonlyArray<{ readonly node_id: string; readonly state: string }>
}

/** The states that a node shows of all, by name. */
export const statesOf = async (client: Client) => {
  const { nodes } = await client.json<State>("GET", "/v1/cluster/state")
  return nodes.map(({ node_id, state }) => `${node_id} ${state}`)
}
