/**
 * What the parts of the cluster engine have in common: this node's store, the others', who there
 * is, and what is done with what goes wrong on the way.
 */

import { hostOf } from "#actors/blob-storage/failure-domain.ts"
import type { Members, Peer } from "#actors/blob-storage/peers.ts"
import { owners_max } from "#actors/blob-storage/placement.ts"
import { nodes_needed } from "#actors/blob-storage/replication.ts"
import type { BlobId, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import type { ErasureParts } from "../erasure/layout.ts"
import type { Hint } from "../repair/hint.ts"

export interface ClusterParts extends ErasureParts {
  readonly hint: Hint
  /** Told of copies that could not be made: at most once a minute. */
  readonly report: (problem: string) => void
  /** The members as gets and lists ask them; all of them unless given. */
  readonly asked?: () => Members
  /** Whether no other can be in a cluster with this node: it has nothing to prove itself by. */
  readonly is_closed?: boolean
}

/** A node that takes no bytes, or gives none, for so long is not waited for. Milliseconds. */
export const silence_ms_max = 5000

/** Whether there is nobody but this node. */
export const isAlone = ({ active, leaving, node_id }: Members) =>
  leaving.length === 0 &&
  (active.length === 0 || (active.length === 1 && active[0]?.node_id === node_id))

/**
 * Whether this node is the cluster for certain: no deletion can be on its way. One that only knows
 * of no other may be cut off from the log, or have just begun.
 */
export const isSingle = ({ is_closed, members }: Pick<ClusterParts, "is_closed" | "members">) =>
  is_closed === true && isAlone(members())

/** All other nodes: a blob's owners in their order, others that are active, those that leave. */
export const othersFor = (members: Members, id: BlobId): ReadonlyArray<Peer> => {
  const { active, leaving, node_id, placement } = members
  const rank = new Map(
    placement.ownersOf(placement.partitionOf(id), owners_max).map((owner, at) => [owner, at]),
  )
  const rankOf = (peer: Peer) => rank.get(peer.node_id) ?? owners_max
  return [...active]
    .sort((one, other) => rankOf(one) - rankOf(other))
    .concat(leaving)
    .filter((peer) => peer.node_id !== node_id)
}

/** The first peers whose hosts have no copy yet, this node's neither, and then the others. */
const apartFirst = (own: Peer | undefined, peers: ReadonlyArray<Peer>) => {
  const hosts = new Set(own && [hostOf(own.address)])
  const apart = peers.filter(({ address }) => {
    const host = hostOf(address)
    const is_first = !hosts.has(host)
    hosts.add(host)
    return is_first
  })
  return [...apart, ...peers.filter((peer) => !apart.includes(peer))]
}

/**
 * The nodes that a put of full copies sends one to: on other hosts than this node's and one
 * another's, as far as there are. A node that is no member in full, or leaves, keeps its copy for
 * now only: one more is made.
 */
export const receiversOf = (
  { active, node_id, placement }: Members,
  policy: ReplicationPolicy,
  id: BlobId,
): ReadonlyArray<Peer> => {
  const own = active.find((peer) => peer.node_id === node_id)
  const copies = nodes_needed[policy] - (own === undefined ? 0 : 1)
  const owners = placement
    .ownersOf(placement.partitionOf(id), nodes_needed[policy] + 1)
    .flatMap((owner) => active.filter((peer) => peer.node_id === owner && owner !== node_id))
  return apartFirst(own, owners).slice(0, copies)
}

/** Whether this node is one of those that the blob's policy wants. */
export const isOwner = ({ node_id, placement }: Members, policy: ReplicationPolicy, id: BlobId) =>
  placement.ownersOf(placement.partitionOf(id), nodes_needed[policy]).includes(node_id)
