/** The clients of a simulated cluster: each sends one request after the other to random nodes. */

import type { BlobRange, PutOrder } from "#actors/blob-storage/ports/engine.ts"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { BlobOrigin } from "#actors/blob-storage/ports/origin.ts"
import { checkNow, checkPut, isReadableWithOneLess, readDisks } from "./invariants.ts"
import { isDue, type Known, type Model } from "./model.ts"
import type { SimulatedCluster, SimulatedNode } from "./node.ts"
import type { Software } from "./software.ts"

const origin: BlobOrigin = { actor: "simulation", request_id: "r-1", correlation_id: "c-1" }

/** Timeout of a client, in milliseconds: its request may still be executed. */
const patience_ms = 60_000
/** The chance that unacknowledged copies are corrupted before their blob is put again. */
const corruption_chance = 0.3
/** Pause between two requests of a client. */
const pause_ms_max = 8000

export interface Scene {
  readonly cluster: SimulatedCluster
  readonly model: Model
}

const orderOf = ({ content }: Known): PutOrder => ({
  ...{ labels: { name: content.name }, policy: content.policy, origin },
  ...{ expected_id: undefined, if_none_match: false },
})

/** A random running node, if any. */
const anyUp = ({ world, nodes }: SimulatedCluster) => {
  const [first, ...rest] = nodes.filter((node) => node.software() !== undefined)
  return first && world.random.pick([first, ...rest])
}

/** The client's result: a response, a fault's tag, or nothing. */
const resultOf = <A>({ cluster: { world } }: Scene, work: Promise<A>) =>
  Promise.race([
    work.then(
      (answer) => ({ answer }),
      (cause: unknown) => ({ fault: faultOf(cause)._tag }),
    ),
    world.pause(patience_ms).then(() => ({ fault: "silence" as const })),
  ])

/**
 * Corrupts all unacknowledged copies of a blob before its next put relies on them: those of failed
 * puts, and those with a deletion in transit. Only while no put of it is in progress, which may
 * have read them already.
 */
const corruptUnacknowledged = ({ cluster: { world, nodes } }: Scene, known: Known) => {
  const { id, name } = known.content
  if (isDue(known) || known.puts.some(({ is_over }) => !is_over)) return
  const holding = nodes.filter((node) => readDisks([node]).of(id).length > 0)
  if (holding.length === 0 || !world.happens("unacknowledged data rots", corruption_chance)) return
  for (const node of holding) {
    if (world.random.next() < 0.5) continue
    node.disk().corrupt(id)
    world.note(`${name} rots at ${node.node_id}, unpromised`)
  }
}

/** Puts a blob on a node, and checks that it is stored. */
export const put = async (scene: Scene, known: Known, node: SimulatedNode, software: Software) => {
  const { cluster, model } = scene
  const { world } = cluster
  const { content } = known
  corruptUnacknowledged(scene, known)
  const pending = model.beginPut(known, node.node_id)
  const at = node.now()
  const began_ms = world.ms()
  const working = software.put(orderOf(known), [content.bytes.slice()], at)
  // A client that has timed out does not learn that the blob was stored.
  const result = await resultOf(scene, working)
  if (pending.is_over) return
  if ("fault" in result) {
    model.endPut(pending, undefined)
    world.count(`put: ${result.fault}`)
    world.note(`put ${content.name} at ${node.node_id}: ${result.fault}`)
    return
  }
  const { answer } = result
  const { created_at } = answer.meta
  // From now on existing copies belong to this put too: only a later deletion may remove them.
  const put_at = answer.created || created_at > at ? created_at : at
  model.endPut(pending, put_at)
  const { durable_on = [node.node_id] } = answer
  // The metadata has the latest copy's time, which may be that of a concurrent put.
  const expected_at = answer.created ? put_at : at
  checkPut(cluster, content, { put_at: expected_at, took_ms: world.ms() - began_ms, durable_on })
  world.count(answer.created ? "put: stored" : "put: exists")
  world.note(`put ${content.name} at ${node.node_id}: ${answer.created ? "stored" : "was there"}`)
  world.check(answer.id === content.id, `${content.name} was stored as ${answer.id}`)
  checkNow(cluster, model)
}

const joined = async (windows: AsyncIterable<Uint8Array>) => {
  const parts: Array<Uint8Array> = []
  for await (const window of windows) parts.push(window.slice())
  return Buffer.concat(parts)
}

const rangeOf = ({ cluster: { world } }: Scene, size: number): BlobRange => {
  if (world.random.next() < 0.6) return {}
  const offset = world.random.between(0, size)
  return { offset, length: world.random.between(1, size + 1) }
}

/** Reads a blob from a node and compares each byte; returns the fault's tag, if any. */
export const get = async (scene: Scene, known: Known, node: SimulatedNode, software: Software) => {
  const { world } = scene.cluster
  const { content } = known
  const range = rangeOf(scene, content.bytes.length)
  const { offset = 0, length = content.bytes.length } = range
  const reading = async () => {
    const { data, meta, windows } = await software.get(content.id, range, node.now())
    return { meta, bytes: data === undefined ? await joined(windows()) : Buffer.from(data) }
  }
  const result = await resultOf(scene, reading())
  if ("fault" in result) {
    world.count(`get: ${result.fault}`)
    return result.fault
  }
  world.count("get: right")
  const { meta, bytes } = result.answer
  const expected = content.bytes.subarray(offset, offset + length)
  const what = `${content.name} (${bytes.length} of ${expected.length})`
  world.check(
    bytes.equals(expected) && Number(meta.size) === content.bytes.length,
    `${node.node_id} answers wrong bytes of ${what}`,
  )
  return undefined
}

const remove = async (scene: Scene, known: Known, node: SimulatedNode, software: Software) => {
  const { cluster, model } = scene
  const { world } = cluster
  const { name, id } = known.content
  const at = node.now()
  const is_wide = world.random.next() < 0.6
  if (!is_wide) {
    const disks = readDisks(cluster.nodes)
    // A deletion that a node remembers is in transit to older copies.
    const deleted_at = disks.deletedAt(id)
    const others = disks
      .of(id)
      .filter(({ node_id, copy }) => node_id !== node.node_id && copy.put_at > deleted_at)
    const enough = isReadableWithOneLess(others)
    for (const one of known.puts) if (!enough || !one.is_over) one.is_void = true
  }
  const pending = is_wide
    ? model.beginDeletion(known, node.node_id, at)
    : model.beginLocalDeletion(known, node.node_id, at)
  const working = is_wide
    ? software.deleteClusterWide(id, origin, at)
    : software.delete(id, origin, at)
  const result = await resultOf(scene, working)
  model.endDeletion(known, pending, !("fault" in result))
  const where = is_wide ? "everywhere" : `at ${node.node_id}`
  world.count(is_wide ? "a blob is deleted everywhere" : "a blob is deleted at one node")
  world.note(`delete ${name} ${where}: ${"fault" in result ? result.fault : "done"}`)
}

/** Runs one client until it is stopped. */
export const client = async (scene: Scene) => {
  const { cluster, model } = scene
  const { world } = cluster
  const [first, ...rest] = model.blobs
  if (first === undefined) return
  while (!world.isCalm()) {
    await world.pause(world.random.next() * pause_ms_max)
    const node = anyUp(cluster)
    const software = node?.software()
    if (node === undefined || software === undefined) continue
    const known = world.random.pick([first, ...rest])
    const draw = world.random.next()
    if (draw < 0.5) await put(scene, known, node, software)
    else if (draw < 0.88) await get(scene, known, node, software)
    else await remove(scene, known, node, software)
  }
}
