/**
 * Rounds of a cluster of real processes. During puts, gets and deletes, nodes are killed, paused or
 * cut off, return with an older disk, join, or leave. Afterwards, no acknowledged blob may be lost,
 * and no blob that was deleted everywhere may exist.
 */
import assert from "node:assert/strict"
import { setTimeout as pause } from "node:timers/promises"
import { seeded } from "../../world/seeded.ts"
import { responseText } from "../../world/server/client.ts"
import {
  startWorld,
  untilActive,
  untilSeen,
  type World,
  type WorldNode,
} from "../../world/server/cluster-world.ts"
import { checkAll, type Ledger, newLedger, startLoad } from "./load.ts"
import { skewed } from "./skewed-clock.ts"

/** Acknowledged puts before and during a fault. */
const acknowledged_min = 30
const acknowledged_max = 80
/** One-way delay of the slow network, in milliseconds. */
const delay_ms = 40
/** Clock skew between nodes in rounds that have one, in milliseconds. */
const skew_ms_max = 30_000
/** Longer than the heartbeat deadline in these rounds. */
const offline_ms = 7000

interface Scene {
  readonly world: World
  /** Waits for some more acknowledged puts. */
  readonly more: () => Promise<void>
  /** The nodes in random order. */
  readonly drawn: readonly [WorldNode, WorldNode, ...ReadonlyArray<WorldNode>]
}

/** Sends no requests to these nodes while the function runs. */
const without = async (nodes: ReadonlyArray<WorldNode>, meanwhile: () => Promise<void>) => {
  for (const node of nodes) node.is_up = false
  await meanwhile()
  for (const node of nodes) node.is_up = true
}

const killSome = async ({ world, more }: Scene, nodes: ReadonlyArray<WorldNode>) => {
  await Promise.all(nodes.map(world.kill))
  await more()
  await Promise.all(nodes.map((node) => world.comeBack(node)))
}

const standStill = ({ more }: Scene, nodes: ReadonlyArray<WorldNode>) => {
  for (const { server } of nodes) server.signal("SIGSTOP")
  return without(nodes, more).finally(() => {
    for (const { server } of nodes) server.signal("SIGCONT")
  })
}

/** Clients still use the nodes that are cut off: blobs that these accept must exist in the end. */
const cutOff = async ({ world, more }: Scene, cut: () => void) => {
  cut()
  await more()
  await pause(offline_ms)
  await more()
  world.heal()
}

const leave = async ({ world, more }: Scene, node: WorldNode) => {
  const { node_id } = node
  // Writers use other nodes: a leaving node rejects puts.
  node.is_up = false
  const headers = { "content-type": "application/json" }
  const body = JSON.stringify({ node_id, graceful: true })
  const { client } = world.some()
  const answer = await client.ask("POST", "/v1/cluster/leave", { headers, body })
  assert.equal(answer.status, 200, responseText(answer))
  await untilSeen(client, node_id, undefined).catch(async (cause: unknown) => {
    const { body: metrics } = await client.ask("GET", "/v1/cluster/metrics")
    throw new Error(`${cause}: ${metrics}`, { cause })
  })
  await more()
  node.client.close()
  await node.server.stop()
  await world.comeBack(node)
}

const comeBackOld = async ({ world, more }: Scene, node: WorldNode) => {
  await world.kill(node)
  world.saveDisk(node)
  // Clients do not use the node, because the disk swap would lose blobs that only this node stored.
  await world.comeBack(node, false)
  await untilActive(world)
  await more()
  await world.kill(node)
  world.exchangeDisk(node)
  await world.comeBack(node)
}

const scenes = {
  killed: (scene) => killSome(scene, scene.drawn.slice(0, 1)),
  "cut from the others": (scene) => cutOff(scene, () => scene.world.cutFromPeers(scene.drawn[0])),
  "two killed": (scene) => killSome(scene, scene.drawn.slice(0, 2)),
  paused: (scene) => standStill(scene, scene.drawn.slice(0, 1)),
  "cut from the log": (scene) => cutOff(scene, () => scene.world.cutFromLog(scene.drawn[0])),
  left: (scene) => leave(scene, scene.drawn[0]),
  "cut from both": (scene) =>
    cutOff(scene, () => {
      scene.world.cutFromPeers(scene.drawn[0])
      scene.world.cutFromLog(scene.drawn[0])
    }),
  "bus killed": async ({ world, more }) => {
    await world.killBus()
    await more()
  },
  "back with an old disk": (scene) => comeBackOld(scene, scene.drawn[0]),
  "heard by none": (scene) => cutOff(scene, () => scene.world.cutFromPeers(scene.drawn[0], "from")),
  "hears none": (scene) => cutOff(scene, () => scene.world.cutFromPeers(scene.drawn[0], "to")),
  "slow network, one killed": async (scene) => {
    scene.world.delay(delay_ms)
    await killSome(scene, scene.drawn.slice(0, 1))
    scene.world.heal()
  },
} satisfies { readonly [what: string]: (scene: Scene) => Promise<void> }

type Happening = keyof typeof scenes | "two joined"

/** Two nodes join at once and stay, so this occurs only once, after all other faults. */
const happenings: ReadonlyArray<Happening> = [
  // The keys of an object literal are exactly the keys of its type.
  ...(Object.keys(scenes) as Array<keyof typeof scenes>),
  "two joined",
]

/**
 * With skewed clocks, a deletion that a node did not receive immediately may be older than its
 * copy. This is documented, so the checks expect nothing of such a blob.
 */
const happen = async (scene: Scene, ledger: Ledger, what: Happening, is_skewed: boolean) => {
  ledger.is_sure = true
  await scene.more()
  ledger.is_sure = !is_skewed
  if (what !== "two joined") return scenes[what](scene)
  await scene.world.addTwo()
  await scene.more()
}

export interface ClusterRound {
  readonly what: Happening
  readonly blobs: number
  readonly deleted: number
  readonly doubtful: number
  readonly reads: string
  readonly took_ms: number
}

export interface ClusterRounds {
  /** Six nodes, or ten, which also support EC82. */
  readonly count: number
  readonly seed: number
  readonly rounds: number
  /** The fault to begin with. */
  readonly first?: string
  /** Whether some clocks are half a minute ahead and others behind. */
  readonly is_skewed?: boolean
  readonly onRound: (round: ClusterRound) => void
}

const round = async (world: World, ledger: Ledger, what: Happening, is_skewed: boolean) => {
  const { random } = ledger
  const load = startLoad(world, ledger)
  const [one, other, ...rest] = world.nodes.toSorted(() => random.next() - 0.5)
  if (!(one && other)) throw new Error("there are not two nodes")
  const more = () => load.more(random.between(acknowledged_min, acknowledged_max))
  try {
    const scene: Scene = { world, more, drawn: [one, other, ...rest] }
    await happen(scene, ledger, what, is_skewed)
  } finally {
    await load.stop()
  }
  await checkAll(world, ledger)
}

/** Runs these rounds; the first violation fails with the seed. */
export const clusterRounds = async (options: ClusterRounds) => {
  const { count, seed, rounds, first, is_skewed = false, onRound } = options
  const random = seeded(seed)
  const skewOf = (number: number) => (is_skewed ? ((number % 3) - 1) * skew_ms_max : 0)
  const world = await startWorld({ count, own: (number) => skewed(skewOf(number)) })
  const ledger = newLedger(random)
  const offset = Math.max(0, happenings.map(String).indexOf(first ?? ""))
  try {
    for (let done = 0; done < rounds; done++) {
      const since = performance.now()
      const what = happenings[(offset + done) % happenings.length] ?? "killed"
      await round(world, ledger, what, is_skewed)
      const { kept, deleted, doubtful, reads } = ledger
      const took_ms = performance.now() - since
      const counts = { blobs: kept.size, deleted: deleted.size, doubtful: doubtful.size }
      onRound({
        what,
        ...counts,
        reads: `${reads.answered} of ${reads.answered + reads.refused}`,
        took_ms,
      })
    }
    const ended = await world.stop()
    assert.deepEqual(
      ended,
      ended.map(() => ({ code: 0, signal: null })),
    )
  } catch (cause) {
    throw new Error(`seed ${seed}: ${cause}\n${world.output()}`, { cause })
  } finally {
    await world.stop()
  }
}
