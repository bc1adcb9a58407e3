/** A cluster of real processes, started as a user starts it: `almanac cluster`. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { type Client, connect } from "./client.ts"
import { isRunning, newFolder, outputOf, program, startScript, until } from "./server.ts"

/**
 * Six starts on a machine that runs several tasks at once; on an idle machine they take seven
 * seconds.
 */
const ready_ms_max = 120_000
/** The time from a signal to the end of a process, or to its detection by others. */
const soon_ms = 30_000

export interface ClusterNode {
  readonly node_id: string
  readonly url: string
  readonly pid: number
}

/** The file that the command writes for users of `curl`. */
interface ClusterFile {
  readonly token: string
  readonly nodes: ReadonlyArray<ClusterNode>
}

/** Small files, and heartbeats that detect a failed node within seconds. */
const set = [
  "blob.segment_bytes=8388608",
  "cluster.heartbeat_interval_seconds=1",
  "cluster.heartbeat_deadline_seconds=4",
]

/** Starts it, and waits until each node lists all of them. */
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
    await one.waitFor(/^cluster ready$/m, ready_ms_max)
  } catch (cause) {
    // Stops its nodes too; the cleanup after a failed test would not.
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
    output: () => outputOf(one),
    /** Kills the process of a node with SIGKILL. */
    kill: async (number: number) => {
      const pid = read.nodes[number - 1]?.pid ?? 0
      process.kill(pid, "SIGKILL")
      await until(`node ${number} to be gone`, soon_ms, () => !isRunning(pid))
    },
    /** Kills the process that started the nodes with SIGKILL. */
    killParent: () => {
      for (const client of clients) client.close()
      one.child.kill("SIGKILL")
    },
    /** Pauses or resumes a node. */
    signal: (number: number, signal: "SIGSTOP" | "SIGCONT") =>
      process.kill(read.nodes[number - 1]?.pid ?? 0, signal),
    stop: async () => {
      for (const client of clients) client.close()
      return await stop()
    },
  }
}

export type Cluster = Awaited<ReturnType<typeof startCluster>>

/** Puts plain bytes under a policy; returns any response. */
export const putAs = (client: Client, bytes: Uint8Array, policy: string) =>
  client.ask("POST", `/v1/blobs/stream?policy=REPLICATION_POLICY_${policy}`, {
    headers: { "content-type": "application/octet-stream" },
    body: bytes,
  })

/** Gets plain bytes; returns any response. */
export const getRaw = (client: Client, id: string, headers = {}) =>
  client.ask("GET", `/v1/blobs/${id}`, {
    headers: { accept: "application/octet-stream", ...headers },
  })

interface Stat {
  readonly exists: boolean
}

/** The number of these nodes that have a copy or a shard of the blob. */
export const countCopies = async (clients: ReadonlyArray<Client>, id: string) => {
  const stats = await Promise.all(
    clients.map((client) => client.json<Stat>("GET", `/v1/blobs/${id}/stat`)),
  )
  return stats.filter(({ exists }) => exists).length
}

interface State {
  readonly nodes: ReadonlyArray<{ readonly node_id: string; readonly state: string }>
}

/** The state of every node according to one node, by name. */
export const statesOf = async (client: Client) => {
  const { nodes } = await client.json<State>("GET", "/v1/cluster/state")
  return nodes.map(({ node_id, state }) => `${node_id} ${state}`)
}
