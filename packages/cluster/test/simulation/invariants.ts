/** The invariants of a simulated cluster: at any time, and once it is idle. */
import type { HeldCopy } from "#actors/blob-storage/ports/node-engine.ts"
import type { MemoryImage } from "#adapters/blob-storage/memory/state.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { isErasureCode, nodes_needed } from "#schemas/blob-storage/replication.ts"
import { tableOf } from "./membership.ts"
import { type Content, isDue, isGone, type Known, type Model } from "./model.ts"
import type { SimulatedCluster, SimulatedNode } from "./node.ts"
import { ms_ns } from "./world.ts"

/**
 * With 4,096 partitions and few nodes, a node exceeds its share by a partition at most, far below a
 * twentieth.
 */
const load_max = 1.05

/** A copy as stored on a disk. */
export interface StoredCopy {
  readonly node_id: string
  readonly copy: HeldCopy
  readonly is_corrupt: boolean
}

/** The contents of all disks, including those of offline nodes. */
export interface Disks {
  readonly of: (id: BlobId) => ReadonlyArray<StoredCopy>
  readonly deletionAt: (node_id: string, id: BlobId) => bigint | undefined
  /** The last cluster-wide deletion that these disks know; -1: none. */
  readonly deletedAt: (id: BlobId, isIncluded?: (node_id: string) => boolean) => bigint
}

export const readDisks = (nodes: ReadonlyArray<SimulatedNode>): Disks => {
  const images = new Map<string, MemoryImage>()
  for (const node of nodes) images.set(node.node_id, node.disk().image())
  return {
    of: (id) =>
      [...images].flatMap(([node_id, { held }]) => {
        const one = held.get(id)
        if (one === undefined) return []
        return [{ node_id, copy: one.copy, is_corrupt: one.corrupt_at !== undefined }]
      }),
    deletionAt: (node_id, id) => images.get(node_id)?.deletions.get(id)?.deleted_at,
    deletedAt: (id, isIncluded = () => true) => {
      let last = -1n
      for (const [node_id, { deletions }] of images) {
        const { cluster_at = -1n } = deletions.get(id) ?? {}
        if (cluster_at > last && isIncluded(node_id)) last = cluster_at
      }
      return last
    },
  }
}

/** Whether the blob is readable from these copies, even if `spare` of them are lost. */
export const isReadable = (copies: ReadonlyArray<StoredCopy>, spare = 0) => {
  const sound = copies.filter(({ is_corrupt }) => !is_corrupt)
  const whole = sound.filter(({ copy }) => copy.shard === undefined)
  if (whole.length > spare) return true
  const shards = sound.flatMap(({ copy }) => copy.shard ?? [])
  const wanted = shards[0]?.data_shards ?? Infinity
  return new Set(shards.map(({ index }) => index)).size + whole.length - spare >= wanted
}

/** Shards that do not make a blob: left by an unacknowledged put, or by deletions. */
const isOrphan = (copies: ReadonlyArray<StoredCopy>) =>
  copies.every(({ copy }) => copy.shard !== undefined) && !isReadable(copies)

const describe = (copies: ReadonlyArray<StoredCopy>) =>
  copies
    .map(({ node_id, copy, is_corrupt }) => {
      const what = copy.shard === undefined ? "whole" : `shard ${copy.shard.index}`
      return `${node_id} ${what}${is_corrupt ? " (rotten)" : ""}`
    })
    .join(", ")

/** Checks the invariants that hold at any time. */
export const checkNow = ({ world, nodes }: SimulatedCluster, { blobs }: Model) => {
  const disks = readDisks(nodes)
  for (const known of blobs) {
    const { content, local_deletions, puts } = known
    const copies = disks.of(content.id)
    if (isDue(known) && !isReadable(copies)) {
      world.check(false, `${content.name} is lost: left are [${describe(copies)}]`)
    }
    for (const { node_id, from, is_acknowledged } of local_deletions) {
      // A later put restores it, and then an older copy of the same bytes is equally valid.
      if (puts.some(({ put_at }) => put_at === undefined || put_at > from)) continue
      const back = copies.find((copy) => copy.node_id === node_id)
      const is_back = is_acknowledged && back !== undefined && back.copy.put_at <= from
      world.check(!is_back, `${content.name} is back on ${node_id}, where it was deleted`)
    }
  }
}

export interface PutResult {
  /** The put's time, with which deletions are compared; Unix nanoseconds. */
  readonly put_at: bigint
  /** Duration of the put, in milliseconds. */
  readonly took_ms: number
  readonly durable_on: ReadonlyArray<string>
}

/**
 * Each node in a put's response has a copy of that put. It need not have one any more, but an older
 * one must be renewed; another may have replaced a corrupt one.
 */
export const checkPut = (
  { world, nodes }: SimulatedCluster,
  { name, id }: Content,
  { put_at, took_ms, durable_on }: PutResult,
) => {
  for (const node of nodes) {
    const copy = node.disk().image().held.get(id)?.copy
    if (copy === undefined || !durable_on.includes(node.node_id)) continue
    const began_at = node.now() - BigInt(Math.ceil(took_ms)) * ms_ns
    const is_current = copy.put_at >= put_at || copy.stored_at > began_at
    world.check(
      is_current,
      `${name} is of an older put at ${node.node_id}, which answers for this one`,
    )
  }
}

/** Why a blob is not in its final state; undefined if it is. */
const deviationOf = (
  { membership }: SimulatedCluster,
  disks: Disks,
  known: Known,
): string | undefined => {
  const { content } = known
  const copies = disks.of(content.id)
  if (copies.length === 0) return isDue(known) ? `${content.name} is nowhere` : undefined
  if (isGone(known)) return `${content.name} was deleted and exists: ${describe(copies)}`
  if (isOrphan(copies) && !isDue(known)) return undefined
  const { policy } = copies[0]?.copy ?? content
  const context = membership.current()
  const table = tableOf(context)
  const wanted = nodes_needed[policy]
  const owners = table.ownersOf(table.partitionOf(content.id), wanted)
  const refusing = owners.filter((node_id) => {
    const deleted_at = disks.deletionAt(node_id, content.id)
    return deleted_at !== undefined && copies.some(({ copy }) => copy.put_at <= deleted_at)
  })
  const missing = owners.filter(
    (owner) => !refusing.includes(owner) && !copies.some(({ node_id }) => node_id === owner),
  )
  const where = `${content.name} of [${owners.join(", ")}] is at [${describe(copies)}]`
  if (isErasureCode(policy) && owners.length < wanted) {
    return isReadable(copies) ? undefined : `${where}: not enough`
  }
  if (missing.length > 0) return `${where}: missing at ${missing.join(", ")}`
  if (copies.some(({ is_corrupt }) => is_corrupt)) return `${where}: rotten`
  const more = copies.filter(({ node_id }) => !owners.includes(node_id))
  if (more.length > 0 && refusing.length === 0) return `${where}: ${describe(more)} has no owner`
  if (!isErasureCode(policy) || refusing.length > 0) return undefined
  const indexes = new Set(copies.map(({ copy }) => copy.shard?.index))
  return indexes.size < copies.length ? `${where}: a shard twice` : undefined
}

/** Why a node has not left: its copies, and the other holders of each. */
export const heldBy = ({ nodes }: SimulatedCluster, { blobs }: Model, node_id: string) => {
  const disks = readDisks(nodes)
  const here = blobs.flatMap(({ content }) => {
    const copies = disks.of(content.id)
    const is_here = copies.some((copy) => copy.node_id === node_id)
    return is_here ? [`${content.name} at [${describe(copies)}]`] : []
  })
  return `${node_id} does not leave, with ${here.join(" and ") || "nothing"}`
}

/** The deviations from the final state. */
export const deviationsOf = (cluster: SimulatedCluster, { blobs }: Model) => {
  const disks = readDisks(cluster.nodes)
  return blobs.flatMap((known) => deviationOf(cluster, disks, known) ?? [])
}

/** Checks that no node has more than its share of the copies. */
export const checkLoad = ({ world, membership, weightOf }: SimulatedCluster) => {
  const table = tableOf(membership.current())
  const members = membership.current().nodes.filter(({ state }) => state === "active")
  const total = members.reduce((sum, { weight_percent }) => sum + weight_percent, 0)
  for (const { node_id, weight_percent } of members) {
    const fair = weight_percent / total
    const share = table.share(node_id, 1)
    const what = `${node_id} of weight ${weightOf(node_id)} has ${share} of the blobs`
    world.check(share <= load_max * fair, `${what}, and ${fair} is its share`)
  }
}

/**
 * Whether all blobs stay readable without these copies, even if all misplaced copies were released
 * now.
 */
export const isReadableWithout = (
  { membership, nodes }: SimulatedCluster,
  { blobs }: Model,
  isRemoved: (node_id: string, id: BlobId) => boolean,
) => {
  const disks = readDisks(nodes)
  const table = tableOf(membership.current())
  return blobs.every((known) => {
    const { id } = known.content
    const copies = disks.of(id)
    if (isGone(known) && copies.length > 0) {
      // A node that was offline learns of the deletion from one that remembers it.
      const deleted_at = disks.deletedAt(id, (node_id) => !isRemoved(node_id, id))
      return copies.every(({ copy }) => copy.put_at <= deleted_at)
    }
    if (!copies.some(({ node_id }) => isRemoved(node_id, id))) return true
    // A put in progress relies on everything that it has stored, and cannot know what is lost
    // since.
    if (!isReadable(copies)) return known.puts.every(({ is_over }) => is_over)
    // A repeated put of it reports it as existing, whether or not it must exist.
    const policy = copies[0]?.copy.policy ?? known.content.policy
    const owners = table.ownersOf(table.partitionOf(id), nodes_needed[policy])
    // A deletion that a node remembers is in transit to the others.
    const current = copies.filter(({ copy }) => copy.put_at > disks.deletedAt(id))
    // A local deletion in progress removes that node's copy in the end.
    const pending_deletions = known.local_deletions.filter(({ until }) => until === undefined)
    const isBeingDeleted = (node_id: string) =>
      pending_deletions.some((deletion) => deletion.node_id === node_id)
    return isReadable(
      current
        .filter(({ node_id }) => owners.includes(node_id) && !isRemoved(node_id, id))
        .filter(({ node_id }) => !isBeingDeleted(node_id)),
    )
  })
}

/** Whether it stays readable if one more of these is lost. */
export const isReadableWithOneLess = (copies: ReadonlyArray<StoredCopy>) => isReadable(copies, 1)

/** Whether a blob is readable only with the node's copy, so that the node cannot leave. */
export const isNeeded = ({ nodes }: SimulatedCluster, { blobs }: Model, node_id: string) => {
  const disks = readDisks(nodes)
  return blobs.some(({ content }) => {
    const copies = disks.of(content.id)
    const others = copies.filter((copy) => copy.node_id !== node_id)
    return isReadable(copies) && !isReadable(others)
  })
}
