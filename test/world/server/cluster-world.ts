/**
 * A cluster of real processes, each with one gate in front of its address and another in front of
 * its bus, so that any of them can be cut off from the others, from the log, or from both.
 */
import { createHash, randomBytes } from "node:crypto"
import { cpSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import { type Client, connect } from "./client.ts"
import { statesOf } from "./cluster-run.ts"
import { type Gate, type Network, network, openGate } from "./gate.ts"
import { startNats } from "./outside-nats.ts"
import { end, newFolder, outputOf, type Server, startServer, until } from "./server.ts"

/** Maximum time until a cluster is stable, on a busy machine. */
export const whole_ms_max = 240_000

/** The bus's name in the gates. */
const bus_name = "bus"

export const token = randomBytes(24).toString("base64url")

const sha256 = createHash("sha256").update(token).digest("hex")

export interface WorldNode {
  readonly number: number
  readonly node_id: string
  readonly data_dir: string
  readonly gate: Gate
  readonly bus_gate: Gate
  readonly environment: Readonly<Record<string, string>>
  server: Server
  client: Client
  /** Whether clients use it: not while it is down, leaving, or isolated. */
  is_up: boolean
}

export interface WorldOptions {
  readonly count: number
  /** Time until a silent node is offline, in seconds. */
  readonly deadline_s?: number
  readonly environment?: Readonly<Record<string, string>>
  /** Settings of single nodes, by their number. */
  readonly own?: (number: number) => Readonly<Record<string, string>>
}

/** The settings of each node. */
const common = (deadline_s: number) => ({
  ALMANAC_SERVICES: "blob-storage",
  ALMANAC_LOG__LEVEL: "warning",
  ALMANAC_BLOB__SEGMENT_BYTES: String(8 * 2 ** 20),
  ALMANAC_CLUSTER__SECRET: randomBytes(32).toString("base64url"),
  ALMANAC_CLUSTER__CAPACITY_BYTES: String(2 ** 33),
  ALMANAC_CLUSTER__HEARTBEAT_INTERVAL_SECONDS: "1",
  ALMANAC_CLUSTER__HEARTBEAT_DEADLINE_SECONDS: String(deadline_s),
  ALMANAC_CLUSTER__SWEEP_SECONDS: "10",
  ALMANAC_AUTH__TOKENS: JSON.stringify([
    { name: "soak", sha256, scopes: ["blobs:read", "blobs:write", "cluster:admin"] },
  ]),
})

/** Cuts between a node and all others, and between a node and the log. */
const cutsOf = (net: Network, nodes: ReadonlyArray<WorldNode>) => ({
  cutFromPeers: (node: WorldNode, ways: Ways = "both") => {
    for (const { node_id } of nodes) {
      if (node_id === node.node_id) continue
      if (ways !== "from") net.cut(node_id, node.node_id)
      if (ways !== "to") net.cut(node.node_id, node_id)
    }
    // Also cuts callers that have not identified themselves.
    if (ways !== "from") net.cut("", node.node_id)
  },
  cutFromLog: ({ node_id }: WorldNode) => {
    net.cut(node_id, bus_name)
    net.cut(bus_name, node_id)
  },
})

/** A bus that can be killed and restarts with the same port and folder. */
const startBus = async () => {
  const folder = newFolder()
  let nats = await startNats(folder)
  const { port } = new URL(nats.url)
  return {
    port,
    kill: async () => {
      end(nats.pid)
      nats = await startNats(folder, port)
    },
    stop: () => nats.stop(),
  }
}

/** Starts a node on its current folder. */
const startOf = async ({ data_dir, gate, environment }: Omit<WorldNode, Running>) => {
  // Up to ten of them start at once.
  const server = await startServer(data_dir, environment, whole_ms_max)
  gate.aim(Number(new URL(server.url).port))
  return { server, client: connect(server.url, token) }
}

const kill = async (node: WorldNode) => {
  node.is_up = false
  node.client.close()
  await node.server.killAlone()
}

/** Operations on a node and its folder. */
const lives = {
  kill,
  comeBack: async (node: WorldNode, is_up = true) => {
    Object.assign(node, await startOf(node), { is_up })
  },
  /** Saves the folder of a stopped node, so that it can be restored later. */
  saveDisk: ({ data_dir }: WorldNode) => cpSync(data_dir, `${data_dir}.old`, { recursive: true }),
  /** Replaces the current folder with the saved one. */
  exchangeDisk: ({ data_dir }: WorldNode) => {
    rmSync(data_dir, { recursive: true })
    renameSync(`${data_dir}.old`, data_dir)
  },
}

const stopAll = async (nodes: ReadonlyArray<WorldNode>) => {
  const ended = await Promise.all(
    nodes.map(({ client, server }) => {
      client.close()
      return server.stop()
    }),
  )
  for (const { gate, bus_gate } of nodes) {
    gate.close()
    bus_gate.close()
  }
  return ended
}

/** Starts the bus and the nodes, and waits until each is ready. */
export const startWorld = async (options: WorldOptions) => {
  const { count, deadline_s = 5, environment = {}, own = () => ({}) } = options
  const bus = await startBus()
  const net = network()
  const given = { ...common(deadline_s), ...environment }
  const nodes: Array<WorldNode> = []

  /** Starts another node, which joins by itself. */
  const add = async (number = nodes.length + 1) => {
    const node_id = `node-${number}`
    const gate = await openGate({ network: net, name: node_id })
    const bus_gate = await openGate({ network: net, name: bus_name, caller: node_id })
    bus_gate.aim(Number(bus.port))
    const node = {
      number,
      node_id,
      gate,
      bus_gate,
      data_dir: join(newFolder(), node_id),
      environment: {
        ...given,
        ...own(number),
        ALMANAC_CLUSTER__NODE_ID: node_id,
        ALMANAC_CLUSTER__ADVERTISE_ADDRESS: `127.0.0.1:${gate.port}`,
        ALMANAC_NATS__URL: `nats://127.0.0.1:${bus_gate.port}`,
      },
    }
    nodes.push({ ...node, ...(await startOf(node)), is_up: true })
    nodes.sort((one, other) => one.number - other.number)
  }
  await Promise.all(Array.from({ length: count }, (_, n) => add(n + 1)))
  const up = () => nodes.filter(({ is_up }) => is_up)
  return {
    nodes,
    up,
    ...lives,
    ...cutsOf(net, nodes),
    heal: net.heal,
    delay: net.delay,
    /** Two more nodes that join at once. */
    addTwo: () => Promise.all([nodes.length + 1, nodes.length + 2].map(add)),
    clients: () => nodes.map(({ client }) => client),
    /** Any node that is up. */
    some: () => {
      const [node] = up()
      if (node === undefined) throw new Error("no node is up")
      return node
    },
    killBus: bus.kill,
    output: () => nodes.map(({ node_id, server }) => `${node_id}:\n${outputOf(server)}`).join("\n"),
    stop: async () => {
      net.heal()
      const ended = await stopAll(nodes)
      await bus.stop()
      return ended
    },
  }
}

type Running = "server" | "client" | "is_up"

/** Direction of a cut: to the node, from it, or both. */
export type Ways = "to" | "from" | "both"

export type World = Awaited<ReturnType<typeof startWorld>>

/** Waits until one node lists another in this state; undefined: not listed. */
export const untilSeen = (client: Client, node_id: string, state: string | undefined) =>
  until(`${node_id} to be ${state ?? "gone"}`, whole_ms_max, async () => {
    const found = (await statesOf(client)).find((text) => text.startsWith(`${node_id} `))
    return found === (state && `${node_id} ${state}`)
  })

/** Waits until every node lists all nodes as active. */
export const untilActive = (world: World) =>
  until("all nodes to be active", whole_ms_max, async () => {
    const states = await Promise.all(world.clients().map(statesOf))
    return states.every(
      (of) => of.filter((state) => state.endsWith(" active")).length === world.nodes.length,
    )
  })
