/** Dependencies and membership helpers shared by the parts of the cluster engine. */

import type { Members, Peer } from "#actors/blob-storage/ports/peers.ts"
import { hostOf, owners_max } from "#placement"
import type { BlobId, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { nodes_needed } from "#schemas/blob-storage/replication.ts"
import type { ErasureParts } from "../erasure/layout.ts"
import type { Hint } from "../repair/hint.ts"

export interface ClusterParts extends ErasureParts {
  readonly hint: Hint
  /** Receives a warning about failed copies, at most once a minute. */
  readonly report: (problem: string) => void
  /** The members that gets and lists use; default: `members`. */
  readonly readMembers?: () => Members
  /** Whether no other node can join this one, because it has no credentials. */
  readonly is_closed?: boolean
}

/** A transfer without progress for this time has failed, in milliseconds. */
export const idle_ms_max = 5000

/** Whether this node knows no other node. */
export const isAlone = ({ active, leaving, node_id }: Members) =>
  leaving.length === 0 &&
  (active.length === 0 || (active.length === 1 && active[0]?.node_id === node_id))

/**
 * Whether this node certainly is the whole cluster, so that no deletion can be in transit. A node
 * that merely knows no other node may be cut off from the log, or have just started.
 */
export const isSingle = ({ is_closed, members }: Pick<ClusterParts, "is_closed" | "members">) =>
  is_closed === true && isAlone(members())

/** All other nodes: the blob's owners in order, then other active nodes, then leaving ones. */
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

/** Orders peers so that those on hosts without a copy come first. */
const newHostsFirst = (own: Peer | undefined, peers: ReadonlyArray<Peer>) => {
  const hosts = new Set(own && [hostOf(own.address)])
  const on_new_hosts = peers.filter(({ address }) => {
    const host = hostOf(address)
    const is_first = !hosts.has(host)
    hosts.add(host)
    return is_first
  })
  return [...on_new_hosts, ...peers.filter((peer) => !on_new_hosts.includes(peer))]
}

/**
 * The nodes that receive a replica of a put, on different hosts as far as possible. If this node is
 * leaving or not yet a full member, its own copy is temporary, so one more replica is made.
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
  return newHostsFirst(own, owners).slice(0, copies)
}

/** Whether this node is one of the owners that the policy requires. */
export const isOwner = ({ node_id, placement }: Members, policy: ReplicationPolicy, id: BlobId) =>
  placement.ownersOf(placement.partitionOf(id), nodes_needed[policy]).includes(node_id)
