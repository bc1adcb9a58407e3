/**
 * The faults of a simulated cluster. Nodes crash at any time and the network is unreliable, but
 * bytes are destroyed only where every blob stays readable without them. Any lost blob is therefore
 * a fault of the software.
 */
import { nodes_needed } from "#schemas/blob-storage/replication.ts"
import { checkNow, isReadableWithout, readDisks } from "./invariants.ts"
import { log_id } from "./membership.ts"
import { good_network, type NetworkFaults } from "./network.ts"
import type { SimulatedNode } from "./node.ts"
import type { Scene } from "./work.ts"

const second_ms = 1000
const minute_ms = 60_000

/** Time between two destructions of bytes, so that the first is repaired before the next. */
const quiet_ms = 60_000
const full_bytes = 1
const capacity_bytes = 2 ** 40

const rough: NetworkFaults = { delay_ms_max: 20, slow: 0.02, cut: 0.01, lost: 0.01 }
const bad_network: NetworkFaults = { delay_ms_max: 200, slow: 0.1, cut: 0.05, lost: 0.05 }

/** Repeats an action at random intervals between these bounds until the calm phase. */
const often = async (
  { cluster: { world } }: Scene,
  [least_ms, most_ms]: readonly [number, number],
  act: () => Promise<void> | void,
) => {
  for (;;) {
    await world.pause(least_ms + world.random.next() * (most_ms - least_ms))
    if (world.isCalm()) return
    await act()
  }
}

const anyOf = ({ cluster: { world } }: Scene, nodes: ReadonlyArray<SimulatedNode>) => {
  const [first, ...rest] = nodes
  return first && world.random.pick([first, ...rest])
}

const crash = ({ model }: Scene, node: SimulatedNode) => {
  node.crash()
  model.endProcess(node.node_id)
}

/** A process crashes and restarts: soon, or once its node was removed. */
const crashes = (scene: Scene) => {
  const { world, nodes, membership } = scene.cluster
  return often(scene, [5 * second_ms, 90 * second_ms], async () => {
    const up = nodes.filter((node) => node.isUp())
    const node = anyOf(scene, up)
    const is_alone = membership.current().nodes.length === 1
    if (node === undefined || (!is_alone && 2 * up.length <= nodes.length)) return
    crash(scene, node)
    const is_long = !is_alone && world.happens("a node is away for long", 0.15)
    world.count("a node crashes")
    const away_ms = world.random.next() * (is_long ? 3 * minute_ms : 40 * second_ms)
    const back = world.pause(away_ms).then(() => {
      if (world.isCalm() || node.isUp()) return
      node.start()
      if (membership.stateOf(node.node_id) !== undefined) return
      world.count("a node is back with an old disk")
      membership.join(node.node_id, scene.cluster.weightOf(node.node_id))
    })
    if (!is_long) await back
  })
}

/** Cuts links in one or both directions, including those to the log. */
const cuts = (scene: Scene) => {
  const { world, network, nodes } = scene.cluster
  return often(scene, [5 * second_ms, 60 * second_ms], async () => {
    const one = anyOf(scene, nodes)
    if (one === undefined) return
    const draw = world.random.next()
    const others = [log_id, ...nodes.map(({ node_id }) => node_id)]
    const [first = log_id, ...rest] = others.filter((node_id) => node_id !== one.node_id)
    const lost = draw < 0.3 ? [first, ...rest] : [world.random.pick([first, ...rest])]
    const is_one_way = world.random.next() < 0.3
    world.count(lost.length > 1 ? "a node is cut off" : "two nodes are cut off")
    if (is_one_way) world.count("a cut is one way")
    world.note(`${one.node_id} is cut off from ${lost.join(", ")}${is_one_way ? " one way" : ""}`)
    for (const other of lost) {
      network.block(one.node_id, other)
      if (!is_one_way) network.block(other, one.node_id)
    }
    await world.pause(world.random.next() * 60 * second_ms)
    for (const other of lost) {
      network.unblock(one.node_id, other)
      network.unblock(other, one.node_id)
    }
  })
}

const changeNetwork = (scene: Scene) => {
  const { world, network } = scene.cluster
  return often(scene, [10 * second_ms, 60 * second_ms], () => {
    network.setFaults(world.random.pick([good_network, good_network, rough, rough, bad_network]))
  })
}

const fullDisks = (scene: Scene) => {
  const { world, nodes } = scene.cluster
  return often(scene, [20 * second_ms, 200 * second_ms], async () => {
    const node = anyOf(scene, nodes)
    if (node === undefined) return
    world.count("a disk is full")
    node.disk().limit(full_bytes)
    await world.pause(world.random.next() * 30 * second_ms)
    node.disk().limit(capacity_bytes)
  })
}

/** A disk hangs: an operation decided before may run when the cluster has changed. */
const stalls = (scene: Scene) => {
  const { world, nodes } = scene.cluster
  return often(scene, [10 * second_ms, minute_ms], () => {
    world.count("a disk stalls")
    anyOf(scene, nodes)?.stall(world.random.next() * 30 * second_ms)
  })
}

/** Whether bytes may be destroyed: no node is moving copies on the basis of an older ring. */
const isSteady = ({ cluster: { membership, nodes } }: Scene) => {
  const { ring_version, nodes: members } = membership.current()
  if (members.some(({ state }) => state === "leaving")) return false
  return nodes.every(
    (node) => !node.isUp() || membership.membersOf(node.node_id).ring_version === ring_version,
  )
}

/** Corrupts a copy, which a read or at the latest the scrub detects. */
const corruptCopy = (scene: Scene) => {
  const { world, nodes } = scene.cluster
  const node = anyOf(scene, nodes)
  if (node === undefined) return
  const disks = readDisks([node])
  // Not for a policy of one copy, because another node may release its copy relying on the corrupt
  // one; and not for blobs with a put in progress, which relies on copies that it has just written
  // or read.
  const here = scene.model.blobs.filter(
    ({ content, puts }) =>
      puts.every(({ is_over }) => is_over) &&
      disks.of(content.id).some(({ copy }) => nodes_needed[copy.policy] > 1),
  )
  const [first, ...rest] = here
  if (first === undefined) return
  const { id, name } = world.random.pick([first, ...rest]).content
  if (
    !isReadableWithout(
      scene.cluster,
      scene.model,
      (node_id, other) => node_id === node.node_id && other === id,
    )
  )
    return
  const [copy] = disks.of(id)
  const size = copy?.copy.shard === undefined ? (copy?.copy.size ?? 0) : 1
  node.disk().corrupt(id, size === 0 ? 0 : world.random.between(0, size - 1))
  world.count("a copy rots")
  world.note(`${name} rots at ${node.node_id}`)
}

/** Replaces the disk, or removes the node permanently and adds a new one in its place. */
const wipe = async (scene: Scene) => {
  const { world, nodes, membership, weightOf } = scene.cluster
  const node = anyOf(scene, nodes)
  if (node === undefined) return
  const { node_id } = node
  if (!isReadableWithout(scene.cluster, scene.model, (other) => other === node_id)) return
  if (node.isUp()) crash(scene, node)
  node.wipe()
  scene.model.loseDisk(node_id)
  world.count("a disk is exchanged")
  if (world.happens("a node leaves at once", 0.4)) membership.leave(node_id, false)
  await world.pause(world.random.next() * 60 * second_ms)
  if (world.isCalm() || node.isUp()) return
  node.start()
  if (membership.stateOf(node_id) === undefined) membership.join(node_id, weightOf(node_id))
}

const losses = (scene: Scene) =>
  often(scene, [quiet_ms, 2 * quiet_ms], async () => {
    if (!isSteady(scene)) return
    if (scene.cluster.world.random.next() < 0.7) corruptCopy(scene)
    else await wipe(scene)
    checkNow(scene.cluster, scene.model)
  })

/** Reads everything on a disk, which detects corrupt copies. */
const runScrubs = async (scene: Scene) => {
  const { world, nodes } = scene.cluster
  for (;;) {
    await world.pause(minute_ms)
    for (const node of nodes) {
      if (!node.isUp()) continue
      for (const { content } of scene.model.blobs) {
        const [stored] = readDisks([node]).of(content.id)
        if (stored?.is_corrupt !== true) continue
        world.count("a rotten copy is found by the scrub")
        const read = async () => {
          const { windows } = await node.disk().read(content.id, {}, node.now())
          const all = windows()
          while (!(await all.next()).done);
        }
        await read().catch(() => undefined)
      }
    }
  }
}

/** A node leaves gracefully, and is shut down once it has left. */
const leaves = (scene: Scene) => {
  const { world, nodes, membership, weightOf } = scene.cluster
  return often(scene, [minute_ms, 5 * minute_ms], async () => {
    const active = nodes.filter((node) => membership.stateOf(node.node_id) === "active")
    const node = anyOf(
      scene,
      active.filter((one) => one.isUp()),
    )
    if (node === undefined || 2 * active.length <= nodes.length) return
    membership.leave(node.node_id, true)
    world.count("a node leaves")
    if (!(await waitUntilLeft(scene, node))) return
    await world.pause(world.random.next() * minute_ms)
    if (world.isCalm()) return
    node.start()
    membership.join(node.node_id, weightOf(node.node_id))
  })
}

/** Waits until the node has left, and shuts it down; false if the calm phase begins before. */
const waitUntilLeft = async (scene: Scene, node: SimulatedNode) => {
  const { world, membership } = scene.cluster
  while (membership.stateOf(node.node_id) !== undefined) {
    await world.pause(second_ms)
    if (world.isCalm()) return false
  }
  shutDown(scene, node)
  return true
}

/** Shuts down a node that has left; its copies are not needed any more. */
export const shutDown = (scene: Scene, node: SimulatedNode) => {
  crash(scene, node)
  node.wipe()
  scene.model.loseDisk(node.node_id)
  scene.cluster.world.count("a node has left")
  checkNow(scene.cluster, scene.model)
}

/** Adds the nodes that are not members at first, sometimes two at once. */
const joins = (scene: Scene) => {
  const { world, nodes, membership, weightOf } = scene.cluster
  return often(scene, [20 * second_ms, 2 * minute_ms], () => {
    const out = nodes.filter(({ starts }) => starts() === 0)
    const count = world.happens("two nodes join at once", 0.3) ? 2 : 1
    for (const node of out.slice(0, count)) {
      node.start()
      membership.join(node.node_id, weightOf(node.node_id))
      world.count("a node joins")
    }
  })
}

/** Runs all faults until the calm phase; the scrub continues. */
export const begin = (scene: Scene) => [
  ...[crashes(scene), cuts(scene), changeNetwork(scene), fullDisks(scene), stalls(scene)],
  ...[losses(scene), leaves(scene), joins(scene), runScrubs(scene)],
]

/** Ends all faults: all nodes run, the network is complete, and disks have space. */
export const heal = (scene: Scene) => {
  const { world, network, nodes, membership, weightOf } = scene.cluster
  world.calm()
  network.heal()
  network.setFaults(good_network)
  for (const node of nodes) {
    node.disk().limit(capacity_bytes)
    node.start()
    if (membership.stateOf(node.node_id) === undefined) {
      membership.join(node.node_id, weightOf(node.node_id))
    }
  }
}
