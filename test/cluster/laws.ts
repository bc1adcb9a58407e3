/** What has to be so of a simulated cluster: at any moment, and when it has come to rest. */
import type { HeldCopy } from "#actors/blob-storage/node-engine.ts"
import { isErasureCode, nodes_needed } from "#actors/blob-storage/replication.ts"
import type { MemoryImage } from "#adapters/blob-memory-state.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { tableOf } from "./membership.ts"
import { isDue, isGone, type Known, type Model } from "./model.ts"
import type { SimulatedCluster, SimulatedNode } from "./node.ts"

/** Of 4,096 partitions and a few nodes a share is met but for a partition: never a twentieth. */
const load_max = 1.05

/** A copy as it lies on a disk. */
export interface Lying {
  readonly node_id: string
  readonly copy: HeldCopy
  readonly is_rotten: boolean
}

/** What all disks have, also those of nodes that are down. */
export interface Disks {
  readonly of: (id: BlobId) => ReadonlyArray<Lying>
  readonly deletionAt: (node_id: string, id: BlobId) => bigint | undefined
}

export const readDisks = (nodes: ReadonlyArray<SimulatedNode>): Disks => {
  const images = new Map<string, MemoryImage>()
  for (const node of nodes) images.set(node.node_id, node.disk().image())
  return {
    of: (id) =>
      [...images].flatMap(([node_id, { held }]) => {
        const one = held.get(id)
        if (one === undefined) return []
        return [{ node_id, copy: one.copy, is_rotten: one.rotten_at !== undefined }]
      }),
    deletionAt: (node_id, id) => images.get(node_id)?.deletions.get(id)?.deleted_at,
  }
}

/** Whether the blob can be read from these copies; `spare` of them may be lost besides. */
export const isReadable = (copies: ReadonlyArray<Lying>, spare = 0) => {
  const sound = copies.filter(({ is_rotten }) => !is_rotten)
  const whole = sound.filter(({ copy }) => copy.shard === undefined)
  if (whole.length > spare) return true
  const shards = sound.flatMap(({ copy }) => copy.shard ?? [])
  const wanted = shards[0]?.data_shards ?? Infinity
  return new Set(shards.map(({ index }) => index)).size + whole.length - spare >= wanted
}

/** Shards that make no blob: a put left them that was not acknowledged, or deletions did. */
const isOrphan = (copies: ReadonlyArray<Lying>) =>
  copies.every(({ copy }) => copy.shard !== undefined) && !isReadable(copies)

const told = (copies: ReadonlyArray<Lying>) =>
  copies
    .map(({ node_id, copy, is_rotten }) => {
      const what = copy.shard === undefined ? "whole" : `shard ${copy.shard.index}`
      return `${node_id} ${what}${is_rotten ? " (rotten)" : ""}`
    })
    .join(", ")

/** Laws that hold at any moment. */
export const lookNow = ({ world, nodes }: SimulatedCluster, { blobs }: Model) => {
  const disks = readDisks(nodes)
  for (const known of blobs) {
    const { content, local_deletions, puts } = known
    const copies = disks.of(content.id)
    if (isDue(known) && !isReadable(copies)) {
      world.law(false, `${content.name} is lost: left are [${told(copies)}]`)
    }
    for (const { node_id, from, is_acknowledged } of local_deletions) {
      // A newer put brings it back, and then an older copy of the same bytes is as good.
      if (puts.some(({ created_at }) => created_at === undefined || created_at > from)) continue
      const back = copies.find((copy) => copy.node_id === node_id)
      const is_back = is_acknowledged && back !== undefined && back.copy.created_at <= from
      world.law(!is_back, `${content.name} is back on ${node_id}, where it was deleted`)
    }
  }
}

/**
 * Whether it is of a later put of the same bytes than an owner's. It may not be let go for that
 * one, which a deletion may still reach; and nobody makes room for it yet: the open end of decision
 * 0125. Nothing is lost by it.
 */
const staysYounger = (
  { copy }: Lying,
  copies: ReadonlyArray<Lying>,
  owners: ReadonlyArray<string>,
) =>
  copies.some((other) => owners.includes(other.node_id) && other.copy.created_at < copy.created_at)

/** Why one blob is not as it is to be in the end; undefined where it is. */
const unsettled = (
  { membership }: SimulatedCluster,
  disks: Disks,
  known: Known,
): string | undefined => {
  const { content } = known
  const copies = disks.of(content.id)
  if (copies.length === 0) return isDue(known) ? `${content.name} is nowhere` : undefined
  if (isGone(known)) return `${content.name} was deleted and is there: ${told(copies)}`
  if (isOrphan(copies) && !isDue(known)) return undefined
  const { policy } = copies[0]?.copy ?? content
  const context = membership.truth()
  const table = tableOf(context)
  const wanted = nodes_needed[policy]
  const owners = table.ownersOf(table.partitionOf(content.id), wanted)
  const refusing = owners.filter((node_id) => {
    const deleted_at = disks.deletionAt(node_id, content.id)
    return deleted_at !== undefined && copies.some(({ copy }) => copy.created_at <= deleted_at)
  })
  const missing = owners.filter(
    (owner) => !refusing.includes(owner) && !copies.some(({ node_id }) => node_id === owner),
  )
  const where = `${content.name} of [${owners.join(", ")}] is at [${told(copies)}]`
  if (isErasureCode(policy) && owners.length < wanted) {
    return isReadable(copies) ? undefined : `${where}: not enough`
  }
  if (missing.length > 0) return `${where}: missing at ${missing.join(", ")}`
  if (copies.some(({ is_rotten }) => is_rotten)) return `${where}: rotten`
  const more = copies.filter(
    (copy) => !owners.includes(copy.node_id) && !staysYounger(copy, copies, owners),
  )
  if (more.length > 0 && refusing.length === 0) return `${where}: ${told(more)} is nobody's`
  if (!isErasureCode(policy) || refusing.length > 0) return undefined
  const indexes = new Set(copies.map(({ copy }) => copy.shard?.index))
  return indexes.size < copies.length ? `${where}: a shard twice` : undefined
}

/** Why a node does not leave: what is on its disk, and where else that is. */
export const heldBy = ({ nodes }: SimulatedCluster, { blobs }: Model, node_id: string) => {
  const disks = readDisks(nodes)
  const here = blobs.flatMap(({ content }) => {
    const copies = disks.of(content.id)
    const is_here = copies.some((copy) => copy.node_id === node_id)
    return is_here ? [`${content.name} at [${told(copies)}]`] : []
  })
  return `${node_id} does not leave, with ${here.join(" and ") || "nothing"}`
}

/** What is not yet as it is to be when all is calm. */
export const unsettledOf = (cluster: SimulatedCluster, { blobs }: Model) => {
  const disks = readDisks(cluster.nodes)
  return blobs.flatMap((known) => unsettled(cluster, disks, known) ?? [])
}

/** No node has more than its part of the copies. */
export const lookAtLoad = ({ world, membership, weightOf }: SimulatedCluster) => {
  const table = tableOf(membership.truth())
  const members = membership.truth().nodes.filter(({ state }) => state === "active")
  const total = members.reduce((sum, { weight_percent }) => sum + weight_percent, 0)
  for (const { node_id, weight_percent } of members) {
    const fair = weight_percent / total
    const share = table.share(node_id, 1)
    const what = `${node_id} of weight ${weightOf(node_id)} has ${share} of the blobs`
    world.law(share <= load_max * fair, `${what}, and ${fair} is its share`)
  }
}

/**
 * Whether the blobs stay readable without these copies, and even if all that lie where they are not
 * wanted were let go at this moment.
 */
export const bears = (
  { membership, nodes }: SimulatedCluster,
  { blobs }: Model,
  isTaken: (node_id: string, id: BlobId) => boolean,
) => {
  const disks = readDisks(nodes)
  const table = tableOf(membership.truth())
  return blobs.every((known) => {
    const { id } = known.content
    const copies = disks.of(id)
    if (isGone(known) && copies.length > 0) {
      // Whoever was away learns of the deletion from somebody who remembers it.
      return nodes.some(({ node_id }) => !isTaken(node_id, id) && disks.deletionAt(node_id, id))
    }
    // Whoever puts it again is told that it is there, whether or not it has to be.
    if (!isReadable(copies) || !copies.some(({ node_id }) => isTaken(node_id, id))) return true
    const policy = copies[0]?.copy.policy ?? known.content.policy
    const owners = table.ownersOf(table.partitionOf(id), nodes_needed[policy])
    return isReadable(
      copies.filter(({ node_id }) => owners.includes(node_id) && !isTaken(node_id, id)),
    )
  })
}

/** Whether it stays readable though one more of these is lost. */
export const bearsOneLess = (copies: ReadonlyArray<Lying>) => isReadable(copies, 1)

/** Whether a blob can be read with what the node has, and not without: it cannot leave. */
export const isNeeded = ({ nodes }: SimulatedCluster, { blobs }: Model, node_id: string) => {
  const disks = readDisks(nodes)
  return blobs.some(({ content }) => {
    const copies = disks.of(content.id)
    const others = copies.filter((copy) => copy.node_id !== node_id)
    return isReadable(copies) && !isReadable(others)
  })
}
