/**
 * Rounds of a cluster of real processes: in the middle of puts, gets and deletes nodes are killed,
 * stand still, are cut off, come back with an older disk, join or leave. Then nothing that was
 * acknowledged may be lost, and nothing that was deleted everywhere may be there.
 */
import assert from "node:assert/strict"
import { setTimeout as pause } from "node:timers/promises"
import { seeded } from "../../world/seeded.ts"
import { shown } from "../../world/server/client.ts"
import {
  startWorld,
  untilActive,
  untilSeen,
  type World,
  type WorldNode,
} from "../../world/server/cluster-world.ts"
import { checkAll, type Ledger, newLedger, startLoad } from "./load.ts"
import { skewed } from "./skewed-clock.ts"

/** Acknowledged puts before something happens, and while it lasts. */
const acknowledged_min = 30
const acknowledged_max = 80
/** One way through the slow network, in milliseconds. */
const delay_ms = 40
/** Clocks of the cluster differ by this much, in milliseconds, where they are to. */
const skew_ms_max = 30_000
/** Longer than the deadline of a heartbeat in these rounds. */
const offline_ms = 7000

interface Scene {
  readonly world: World
  /** Waits for some more acknowledged puts. */
  readonly more: () => Promise<void>
  /** Nodes in an order of chance. */
  readonly drawn: readonly [WorldNode, WorldNode, ...ReadonlyArray<WorldNode>]
}

/** What is not asked for as long as it is away. */
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

/** Cut off it goes on to be asked: what it takes alone has to be there in the end. */
const cutOff = async ({ world, more }: Scene, cut: () => void) => {
  cut()
  await more()
  await pause(offline_ms)
  await more()
  world.heal()
}

const leave = async ({ world, more }: Scene, node: WorldNode) => {
  const { node_id } = node
  // Writers go elsewhere: a node that leaves refuses puts.
  node.is_up = false
  const headers = { "content-type": "application/json" }
  const body = JSON.stringify({ node_id, graceful: true })
  const { client } = world.some()
  const answer = await client.ask("POST", "/v1/cluster/leave", { headers, body })
  assert.equal(answer.status, 200, shown(answer))
  await untilSeen(client, node_id, undefined).catch(async (cause: unknown) => {
    const { body: told } = await client.ask("GET", "/v1/cluster/metrics")
    throw new Error(`${cause}: ${told}`, { cause })
  })
  await more()
  node.client.close()
  await node.server.stop()
  await world.comeBack(node)
}

const comeBackOld = async ({ world, more }: Scene, node: WorldNode) => {
  await world.kill(node)
  world.saveDisk(node)
  // What it had to itself in between would be gone with the newer disk: it is not asked.
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
  "stood still": (scene) => standStill(scene, scene.drawn.slice(0, 1)),
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
  "heard by nobody": (scene) =>
    cutOff(scene, () => scene.world.cutFromPeers(scene.drawn[0], "from")),
  "hears nobody": (scene) => cutOff(scene, () => scene.world.cutFromPeers(scene.drawn[0], "to")),
  "slow network, one killed": async (scene) => {
    scene.world.delay(delay_ms)
    await killSome(scene, scene.drawn.slice(0, 1))
    scene.world.heal()
  },
} satisfies { readonly [what: string]: (scene: Scene) => Promise<void> }

type Happening = keyof typeof scenes | "two joined"

/** Two come at once, and are there from then on: it happens once, after everything else. */
const happenings: ReadonlyArray<Happening> = [
  // Every name of an object's own keys is one of its type, of which nothing else is made.
  ...(Object.keys(scenes) as Array<keyof typeof scenes>),
  "two joined",
]

/**
 * Where clocks are wrong, a deletion that a node did not hear of at once may be older than what is
 * there: documented, and so nothing is expected of it.
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
  /** Six, or ten, which have EC82 too. */
  readonly count: number
  readonly seed: number
  readonly rounds: number
  /** Begins with this one of what can happen. */
  readonly first?: string
  /** Whether some clocks are half a minute ahead, and others behind. */
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

/** Lives through these rounds; the first thing that is wrong fails with the seed. */
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
    throw new Error(`seed ${seed}: ${cause}\n${world.told()}`, { cause })
  } finally {
    await world.stop()
  }
}
