/** The nodes of a simulated cluster: each has a persistent disk, and successive lives. */
import { type MemoryEngine, memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { diskOf } from "./disk.ts"
import { type Membership, makeMembership } from "./membership.ts"
import { makeNetwork, type Network } from "./network.ts"
import type { MakeSoftware, Software } from "./software.ts"
import { ms_ns, type World } from "./world.ts"

/** Maximum clock skew of a node, in milliseconds. */
const skew_ms_max = 5000

interface Life {
  readonly software: Software
  readonly isUp: () => boolean
  readonly end: () => void
}

export interface SimulatedNode {
  readonly node_id: string
  /** The persistent disk; replaced by `wipe`. */
  readonly disk: () => MemoryEngine
  readonly isUp: () => boolean
  /** The running software; undefined if the node is down. */
  readonly software: () => Software | undefined
  /** This node's clock, in Unix nanoseconds. */
  readonly now: () => bigint
  /** Number of starts: work of an earlier life is invalid. */
  readonly starts: () => number
  readonly start: () => void
  readonly crash: () => void
  /** Makes the disk hang for this many milliseconds; pending operations run afterwards. */
  readonly stall: (ms: number) => void
  /** Replaces the disk with an empty one, while the node is down. */
  readonly wipe: () => void
}

export interface SimulatedCluster {
  readonly world: World
  readonly network: Network
  readonly membership: Membership
  readonly nodes: ReadonlyArray<SimulatedNode>
  readonly nodeOf: (node_id: string) => SimulatedNode | undefined
  /** Capacity of a node, in TiB. */
  readonly weightOf: (node_id: string) => bigint
}

interface Parts {
  readonly world: World
  readonly network: Network
  readonly membership: Membership
  readonly make: MakeSoftware
}

/** The clock and timers of a node. Timers end with it. */
const timingOf = (world: World, now: () => bigint, isUp: () => boolean) => ({
  now,
  after: (ms: number, run: () => void) =>
    world.after(ms, () => {
      if (isUp()) run()
    }),
})

const makeNode = (node_id: string, { world, network, membership, make }: Parts): SimulatedNode => {
  const skew_ns = BigInt(world.random.between(-skew_ms_max, skew_ms_max)) * ms_ns
  const now = () => world.now() + skew_ns
  let disk = memoryEngine({ clock: now })
  let life: Life | undefined
  let lives = 0
  let stalled_until = 0
  const stalledUntil = () => stalled_until

  const begin = (): Life => {
    let is_up = true
    const isUp = () => is_up
    const local = diskOf(world, { isUp, stalledUntil }, disk, (what) =>
      world.note(`${node_id} ${what}`),
    )
    const timing = timingOf(world, now, isUp)
    const software = make({
      ...{ local, timing, peers: network.peersOf({ node_id, isUp }) },
      members: () => membership.membersOf(node_id),
      isCurrent: () => membership.isCurrent(node_id),
      confirmLeave: () => is_up && membership.confirmLeave(node_id),
      report: (problem) => world.note(`${node_id} says: ${problem}`),
    })
    const { guard, keeps } = software
    network.attach({
      ...{ node_id, engine: local, isUp, now },
      ringVersion: () => membership.membersOf(node_id).ring_version,
      ...(guard === undefined ? {} : { guard }),
      ...(keeps === undefined ? {} : { keeps }),
    })
    const end = () => {
      is_up = false
    }
    return { software, isUp, end }
  }
  return {
    ...{ node_id, now },
    disk: () => disk,
    isUp: () => life?.isUp() === true,
    software: () => (life?.isUp() ? life.software : undefined),
    starts: () => lives,
    start: () => {
      if (life?.isUp()) return
      lives += 1
      life = begin()
      membership.begin(node_id)
      world.note(`${node_id} starts`)
      life.software.start()
    },
    crash: () => {
      if (!life?.isUp()) return
      life.end()
      disk.crash()
      network.drop(node_id)
      world.note(`${node_id} crashes`)
    },
    stall: (ms) => {
      stalled_until = world.ms() + ms
    },
    wipe: () => {
      disk = memoryEngine({ clock: now })
      world.note(`${node_id} has an empty disk`)
    },
  }
}

/** Nodes that are all running members. */
export const makeCluster = (
  world: World,
  weights: ReadonlyMap<string, bigint>,
  make: MakeSoftware,
): SimulatedCluster => {
  const network = makeNetwork(world)
  const found = new Map<string, SimulatedNode>()
  const membership = makeMembership({
    ...{ world, network },
    isUp: (node_id) => found.get(node_id)?.isUp() === true,
  })
  for (const node_id of weights.keys()) {
    found.set(node_id, makeNode(node_id, { world, network, membership, make }))
  }
  return {
    ...{ world, network, membership, nodes: [...found.values()] },
    nodeOf: (node_id) => found.get(node_id),
    weightOf: (node_id) => weights.get(node_id) ?? 1n,
  }
}
