/**
 * One run of a simulated cluster: some minutes of faults and clients, then a calm phase, in which
 * every blob must reach its place. The seed determines everything.
 */

import type { ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { isErasureCode, nodes_needed } from "#schemas/blob-storage/replication.ts"
import { begin, heal, shutDown } from "./faults.ts"
import { checkLoad, checkNow, deviationsOf, heldBy, isNeeded, readDisks } from "./invariants.ts"
import { isDue, makeContent, makeModel } from "./model.ts"
import { makeCluster } from "./node.ts"
import { real } from "./real.ts"
import type { MakeSoftware } from "./software.ts"
import { client, get, put, type Scene } from "./work.ts"
import { makeWorld, type World } from "./world.ts"

const minute_ms = 60_000
const second_ms = 1000

/** First number of the blobs that are put at the end. */
const fresh_names = 100

/** The chance that a blob's policy needs more nodes than there are. */
const ambitious_chance = 0.05

/** The chance that a cluster starts with one node, which others join. */
const alone = 0.15

/** Every fifth node has twice the capacity. */
const heavy_every = 5

/** Lines of the story printed for a violation. */
const printed_lines = 40

export interface Play {
  readonly make: MakeSoftware
  readonly policies: readonly [ReplicationPolicy, ...ReadonlyArray<ReplicationPolicy>]
  /** Minimum and maximum number of nodes. */
  readonly nodes: readonly [number, number]
  /** Duration of the faults, in minutes. */
  readonly faults_minutes: number
  /** Maximum duration of the calm phase until nothing is left to do, in minutes. */
  readonly calm_minutes_max: number
}

const replicas = [
  ...(["REPLICATION_POLICY_NONE", "REPLICATION_POLICY_REPLICA2"] as const),
  "REPLICATION_POLICY_REPLICA3",
] as const

const minutes = { faults_minutes: 3, calm_minutes_max: 60 }

/** The real software, with all policies. */
export const real_play: Play = {
  ...{ make: real, nodes: [3, 11], ...minutes },
  policies: [...replicas, "REPLICATION_POLICY_EC42", "REPLICATION_POLICY_EC82"],
}

/** Replicas only, for software without erasure codes. */
export const plain_play = (make: MakeSoftware): Play => ({
  ...{ make, nodes: [3, 6], ...minutes, policies: replicas },
})

export interface Outcome {
  readonly seed: number
  /** The violation; undefined if there is none. */
  readonly violation: string | undefined
  readonly tally: ReadonlyMap<string, number>
  readonly fingerprint: string
  readonly story: ReadonlyArray<string>
  readonly events: number
  /** Minutes of calm until every copy was in place. */
  readonly calm_minutes: number
}

/** The violation and the events before it, as text. */
export const describeViolation = ({ seed, violation, story }: Outcome) =>
  [
    ...story.slice(-printed_lines),
    `seed ${seed}: ${violation}`,
    `repeat it: node test/soak.ts --only cluster-simulation --seed ${seed}`,
  ].join("\n")

const sizeOf = ({ random }: World) => {
  const draw = random.next()
  if (draw < 0.1) return random.between(0, 1)
  if (draw < 0.85) return random.between(2, 2000)
  return draw < 0.97 ? random.between(60_000, 140_000) : random.between(200_000, 600_000)
}

/** A policy that this many nodes support, or occasionally one that they do not. */
const policyOf = ({ random }: World, policies: Play["policies"], nodes: number) => {
  const [first, ...rest] = policies.filter((policy) => nodes_needed[policy] <= nodes)
  if (first === undefined || random.next() < ambitious_chance) return random.pick(policies)
  return random.pick([first, ...rest])
}

const sceneOf = (world: World, { make, policies, nodes: [least, most] }: Play): Scene => {
  const { random } = world
  const count = random.between(least, most)
  const weights = new Map(
    Array.from({ length: count }, (_, at): [string, bigint] => [
      `n${String(at + 1).padStart(2, "0")}`,
      at % heavy_every === heavy_every - 1 ? 2n : 1n,
    ]),
  )
  const blobs = random.between(4, 16)
  const contents = Array.from({ length: blobs }, (_, at) =>
    makeContent(world, { at, size: sizeOf(world), policy: policyOf(world, policies, count) }),
  )
  return { cluster: makeCluster(world, weights, make), model: makeModel(world, contents) }
}

/** Shuts down nodes that have left during the calm phase. */
const leftInCalm = (scene: Scene, leaving: Set<string>) => {
  for (const node of scene.cluster.nodes) {
    const state = scene.cluster.membership.stateOf(node.node_id)
    if (state === "leaving") leaving.add(node.node_id)
    else if (state === undefined && leaving.delete(node.node_id)) shutDown(scene, node)
  }
}

/** Waits for the final state. Returns the remaining deviations, and the time it took. */
const rest = async (scene: Scene, calm_minutes_max: number) => {
  const { world } = scene.cluster
  const leaving = new Set<string>()
  for (let minutes = 0; ; minutes++) {
    for (let second = 0; second < 60; second += 10) {
      leftInCalm(scene, leaving)
      await world.pause(10 * second_ms)
    }
    checkNow(scene.cluster, scene.model)
    const bound = [...leaving].filter((node_id) => !isNeeded(scene.cluster, scene.model, node_id))
    const staying = bound.map((node_id) => heldBy(scene.cluster, scene.model, node_id))
    const left = [...deviationsOf(scene.cluster, scene.model), ...staying]
    if (left.length === 0) return minutes
    world.check(minutes < calm_minutes_max, `still not idle: ${left.slice(0, 3).join("; ")}`)
  }
}

/** Checks that in the end every node returns each blob that must exist, and no other. */
const readAll = async (scene: Scene) => {
  const { world, nodes } = scene.cluster
  for (const known of scene.model.blobs) {
    const exists = nodes.some((node) => node.disk().image().held.has(known.content.id))
    for (const node of nodes) {
      const software = node.software()
      if (software === undefined) continue
      const fault = await get(scene, known, node, software)
      const what = `${known.content.name} at ${node.node_id}`
      if (isDue(known)) world.check(fault === undefined, `${what} cannot be read: ${fault}`)
      if (!exists) world.check(fault === "BlobNotFound", `${what}, which is nowhere: ${fault}`)
    }
  }
}

/** Checks that in a healthy cluster a put responds once every copy is in place. */
const putAll = async (scene: Scene, { policies }: Play) => {
  const { cluster, model } = scene
  const { world, nodes, membership } = cluster
  // A node that cannot leave stays.
  const up = nodes.filter(({ node_id }) => membership.stateOf(node_id) === "active")
  const fresh = up.map((_, at) => {
    const policy = policyOf(world, policies, up.length)
    return makeContent(world, { at: fresh_names + at, size: sizeOf(world), policy })
  })
  const later: Scene = { cluster, model: makeModel(world, fresh) }
  for (const [at, known] of later.model.blobs.entries()) {
    const { content } = known
    const node = up[at]
    const software = node?.software()
    // A blob that may exist already proves nothing.
    const is_old = model.blobs.some((old) => old.content.id === content.id)
    if (node === undefined || software === undefined || is_old) continue
    await put(later, known, node, software)
    const wanted = nodes_needed[content.policy]
    if (isErasureCode(content.policy) && wanted > up.length) continue
    const { length } = readDisks(nodes).of(content.id)
    const what = `${content.name} was put at ${node.node_id} when all was well`
    world.check(isDue(known), `${what}, and refused`)
    world.check(length >= Math.min(wanted, up.length), `${what}, and has ${length} copies`)
  }
}

const live = async (scene: Scene, play: Play) => {
  const { faults_minutes, calm_minutes_max } = play
  const { world, nodes, membership, weightOf } = scene.cluster
  const part = 0.6 + 0.4 * world.random.next()
  const is_alone = world.happens("a node is alone at first", alone)
  const first = is_alone ? 1 : Math.max(1, Math.ceil(nodes.length * part))
  for (const node of nodes.slice(0, first)) {
    node.start()
    membership.join(node.node_id, weightOf(node.node_id))
  }
  const clients = Array.from({ length: world.random.between(1, 4) }, () => client(scene))
  // Clients start at once and faults later, so that faults do not prevent the start.
  await world.pause(2 * second_ms)
  const faults = begin(scene)
  for (const work of [...clients, ...faults]) {
    work.catch((cause: unknown) => world.check(false, `the simulation fails: ${String(cause)}`))
  }
  await world.pause(faults_minutes * minute_ms)
  heal(scene)
  await Promise.all(clients)
  const minutes = await rest(scene, calm_minutes_max)
  checkLoad(scene.cluster)
  await readAll(scene)
  await putAll(scene, play)
  return minutes
}

/** Stack traces are of no use here, and creating them takes more time than anything else. */
const withoutStacks = async <A>(work: () => Promise<A>): Promise<A> => {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return await work()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

/** Runs one simulation. */
export const simulate = async (seed: number, play: Play): Promise<Outcome> => {
  const world = makeWorld(seed)
  const scene = sceneOf(world, play)
  const outcome = (calm_minutes: number, violation: string | undefined): Outcome => ({
    ...{ seed, violation, tally: world.tally, fingerprint: world.fingerprint() },
    ...{ story: world.story(), events: world.events(), calm_minutes },
  })
  try {
    const calm_minutes = await withoutStacks(() => world.until(live(scene, play)))
    return outcome(calm_minutes, world.violation())
  } catch (cause) {
    return outcome(0, world.violation() ?? String(cause))
  }
}
