/**
 * Rounds of a cluster of real processes: nodes are killed, stand still or leave in the middle of
 * puts, gets and deletes, and come back. Then nothing that was acknowledged may be lost, and
 * nothing that was deleted everywhere may be there.
 */
import assert from "node:assert/strict"
import { createHash, randomBytes } from "node:crypto"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { noise } from "../contract/blob-store-bytes.ts"
import { hashed } from "./blob-client.ts"
import { type Client, connect, NoAnswer, shown } from "./client.ts"
import { countCopies, getRaw, putAs, statesOf } from "./cluster-run.ts"
import { startNats } from "./outside-nats.ts"
import { type Seeded, seeded } from "./seeded.ts"
import { end, newFolder, type Server, startServer, told, until } from "./server.ts"

export const happenings = ["killed", "two killed", "stood still", "left", "bus killed"] as const
export type Happening = (typeof happenings)[number]

/** Copies or shards of each policy. */
const policies = { NONE: 1, REPLICA2: 2, REPLICA3: 3, EC42: 6, EC82: 10 } as const
type Policy = keyof typeof policies
const six = ["NONE", "REPLICA2", "REPLICA3", "REPLICA3", "EC42", "EC42"] as const
const ten = [...six, "EC82", "EC82"] as const

/** Acknowledged puts before something happens, and while it lasts. */
const acknowledged_min = 30
const acknowledged_max = 80
const writers = 4
const size_max = 400_000
/** One in so many operations deletes a blob everywhere. */
const deletes_in = 8
/** How long the load may take to come that far, and a cluster to be whole again. */
const load_ms_max = 120_000
const whole_ms_max = 180_000
const retry_ms = 100

interface Kept {
  readonly seed: number
  readonly size: number
  readonly policy: Policy
}

interface Node {
  readonly number: number
  readonly data_dir: string
  server: Server
  client: Client
  is_up: boolean
}

interface World {
  readonly random: Seeded
  readonly nodes: ReadonlyArray<Node>
  readonly start: (number: number, data_dir: string) => Promise<Server>
  readonly token: string
  /** By identifier: what was acknowledged. */
  readonly kept: Map<string, Kept>
  readonly deleted: Set<string>
  /** What may be there or not: its answer was lost, or it was deleted while a node was away. */
  readonly doubtful: Set<string>
  next: number
}

const bytesOf = ({ seed, size }: Kept) =>
  Buffer.concat([Buffer.from(`${seed} `), noise(seed, size)])

const up = ({ nodes }: World) => nodes.filter(({ is_up }) => is_up)

/** An answer, or undefined where a node went away in the middle of it. */
const answered = async <A>(asking: Promise<A>) => {
  try {
    return await asking
  } catch (cause) {
    if (cause instanceof NoAnswer) return undefined
    throw cause
  }
}

const put = async (world: World, client: Client) => {
  const { random, kept, doubtful } = world
  const policy: Policy = random.pick(world.nodes.length >= policies.EC82 ? ten : six)
  const blob = { seed: world.next++, size: random.between(0, size_max), policy }
  const bytes = bytesOf(blob)
  const { id } = hashed(bytes)
  const answer = await answered(putAs(client, bytes, policy))
  if (answer?.status === 200) kept.set(id, blob)
  else {
    doubtful.add(id)
    // Too few nodes for shards, or shards that could not be placed: said so, and nothing stored.
    const is_refusal = answer === undefined || [412, 500, 503].includes(answer.status)
    assert.ok(is_refusal, answer && shown(answer))
    await pause(retry_ms)
  }
}

const deleteEverywhere = async (world: World, client: Client) => {
  const { random, kept, deleted, doubtful } = world
  const id = [...kept.keys()][random.between(0, kept.size - 1)]
  if (id === undefined) return
  kept.delete(id)
  const answer = await answered(client.ask("DELETE", `/v1/blobs/${id}?scope=cluster`))
  if (answer?.status === 200) deleted.add(id)
  else doubtful.add(id)
}

/** Writes until it is told to stop; answers how to wait for so many more acknowledged puts. */
const startLoad = (world: World) => {
  let is_over = false
  let failed: unknown
  const work = async () => {
    while (!is_over && failed === undefined) {
      const [first, ...more] = up(world)
      if (first === undefined) throw new Error("no node is up")
      const { client } = world.random.pick([first, ...more])
      if (world.random.between(1, deletes_in) === 1) await deleteEverywhere(world, client)
      else await put(world, client)
    }
  }
  const working = Array.from({ length: writers }, () =>
    work().catch((cause: unknown) => {
      failed ??= cause
    }),
  )
  const done = () => world.kept.size + world.deleted.size
  return {
    more: async (count: number) => {
      const wanted = done() + count
      await until(`${count} more puts`, load_ms_max, () => {
        if (failed !== undefined) throw failed
        return done() >= wanted
      })
    },
    stop: async () => {
      is_over = true
      await Promise.all(working)
      if (failed !== undefined) throw failed
    },
  }
}

const kill = async (node: Node) => {
  node.is_up = false
  node.client.close()
  await node.server.killAlone()
}

const comeBack = async ({ start, token }: World, node: Node) => {
  node.server = await start(node.number, node.data_dir)
  node.client = connect(node.server.url, token)
  node.is_up = true
}

/** What is asked of any node about all of them. */
const someClient = (world: World) => {
  const [node] = up(world)
  if (node === undefined) throw new Error("no node is up")
  return node.client
}

const leave = async (world: World, node: Node) => {
  const node_id = `node-${node.number}`
  // Writers go elsewhere: a node that leaves refuses puts.
  node.is_up = false
  const body = JSON.stringify({ node_id, graceful: true })
  const headers = { "content-type": "application/json" }
  const answer = await someClient(world).ask("POST", "/v1/cluster/leave", { headers, body })
  assert.equal(answer.status, 200, shown(answer))
  await until(`${node_id} to have left`, whole_ms_max, async () => {
    const states = await statesOf(someClient(world))
    return states.every((state) => !state.startsWith(`${node_id} `))
  })
  node.client.close()
  await node.server.stop()
}

interface Happened {
  readonly load: ReturnType<typeof startLoad>
  readonly killBus: () => Promise<void>
}

const happen = async (world: World, what: Happening, { load, killBus }: Happened) => {
  const { random, nodes } = world
  const victims = nodes.toSorted(() => random.next() - 0.5).slice(0, what === "two killed" ? 2 : 1)
  const more = () => load.more(random.between(acknowledged_min, acknowledged_max))
  await more()
  if (what === "bus killed") {
    await killBus()
    return await more()
  }
  if (what === "stood still") {
    for (const { server } of victims) server.signal("SIGSTOP")
    for (const node of victims) node.is_up = false
    await more().finally(() => {
      for (const { server } of victims) server.signal("SIGCONT")
    })
    for (const node of victims) node.is_up = true
    return
  }
  await Promise.all(victims.map((node) => (what === "left" ? leave(world, node) : kill(node))))
  await more()
  await Promise.all(victims.map((node) => comeBack(world, node)))
}

/** Waits until each blob has the copies that it wants, and reads all of them everywhere. */
const checkAll = async (world: World) => {
  const { nodes, kept, deleted } = world
  const clients = nodes.map(({ client }) => client)
  await until("all nodes to be active", whole_ms_max, async () => {
    const states = await Promise.all(clients.map(statesOf))
    const active = states.map((of) => of.filter((state) => state.endsWith(" active")))
    return active.every(({ length }) => length === nodes.length)
  })
  for (const [id, blob] of kept) {
    const copies = policies[blob.policy]
    const said = `${id} (${blob.policy}, ${blob.size} bytes) to have ${copies} copies`
    await until(said, whole_ms_max, async () => (await countCopies(clients, id)) >= copies)
    const client = clients[world.random.between(0, clients.length - 1)]
    const answer = client && (await getRaw(client, id))
    assert.ok(answer?.status === 200, `${id}: ${answer && shown(answer)}`)
    assert.ok(answer.body.equals(bytesOf(blob)), `${id} has other bytes`)
  }
  for (const id of deleted) {
    await until(`${id} to be deleted`, whole_ms_max, async () => {
      return (await countCopies(clients, id)) === 0
    })
  }
}

export interface ClusterRound {
  readonly what: Happening
  readonly blobs: number
  readonly deleted: number
  readonly doubtful: number
  readonly took_ms: number
}

export interface ClusterRounds {
  /** Six, or ten, which have EC82 too. */
  readonly count: number
  readonly seed: number
  readonly rounds: number
  readonly onRound: (round: ClusterRound) => void
}

const token = randomBytes(24).toString("base64url")

/** What each of the nodes is told. */
const environment = (nats: string) => ({
  ALMANAC_SERVICES: "blob-storage",
  ALMANAC_NATS__URL: nats,
  ALMANAC_BLOB__SEGMENT_BYTES: String(8 * 2 ** 20),
  ALMANAC_CLUSTER__SECRET: randomBytes(32).toString("base64url"),
  ALMANAC_CLUSTER__CAPACITY_BYTES: String(2 ** 33),
  ALMANAC_CLUSTER__HEARTBEAT_INTERVAL_SECONDS: "1",
  ALMANAC_CLUSTER__HEARTBEAT_DEADLINE_SECONDS: "5",
  ALMANAC_CLUSTER__SWEEP_SECONDS: "10",
  ALMANAC_AUTH__TOKENS: JSON.stringify([
    {
      name: "soak",
      sha256: createHash("sha256").update(token).digest("hex"),
      scopes: ["blobs:read", "blobs:write", "cluster:admin"],
    },
  ]),
})

/** Lives through these rounds; the first thing that is wrong fails with the seed. */
export const clusterRounds = async ({ count, seed, rounds, onRound }: ClusterRounds) => {
  const random = seeded(seed)
  const bus = newFolder()
  let nats = await startNats(bus)
  const given = environment(nats.url)
  const start = (number: number, data_dir: string) =>
    startServer(data_dir, { ...given, ALMANAC_CLUSTER__NODE_ID: `node-${number}` })
  const nodes: ReadonlyArray<Node> = await Promise.all(
    Array.from({ length: count }, async (_, n) => {
      const number = n + 1
      const data_dir = join(newFolder(), `node-${number}`)
      const server = await start(number, data_dir)
      return { number, data_dir, server, client: connect(server.url, token), is_up: true }
    }),
  )
  const world: World = {
    ...{ random, nodes, start, token, next: random.between(0, 1_000_000) },
    ...{ kept: new Map(), deleted: new Set<string>(), doubtful: new Set<string>() },
  }
  const killBus = async () => {
    end(nats.pid)
    nats = await startNats(bus, new URL(nats.url).port)
  }
  try {
    for (let done = 0; done < rounds; done++) {
      const since = performance.now()
      const what = happenings[done % happenings.length] ?? "killed"
      const load = startLoad(world)
      try {
        await happen(world, what, { load, killBus })
      } finally {
        await load.stop()
      }
      await checkAll(world)
      const [blobs, deleted] = [world.kept.size, world.deleted.size]
      const took_ms = performance.now() - since
      onRound({ what, blobs, deleted, doubtful: world.doubtful.size, took_ms })
    }
    for (const { client, server } of nodes) {
      client.close()
      assert.deepEqual(await server.stop(), { code: 0, signal: null })
    }
  } catch (cause) {
    const said = nodes.map(({ number, server }) => `node-${number}:\n${told(server)}`)
    throw new Error(`seed ${seed}: ${cause}\n${said.join("\n")}`, { cause })
  } finally {
    await nats.stop()
  }
}
