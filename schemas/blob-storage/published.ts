/**
 * The published events of blob storage.
 *
 * Types, fields and their meanings never change and are never removed. Source: DECISIONS "published
 * events".
 */
import { Schema } from "effect"
import { BlobLabels, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { VnodesPerNode } from "#schemas/blob-storage/cluster.ts"
import { NodeAddress, NodeId, Uint64Digits } from "#schemas/blob-storage/node.ts"
import { FactShard } from "#schemas/blob-storage/shard.ts"
import { Instant } from "#schemas/instant.ts"
import type { PublishedTypes } from "#schemas/published.ts"

const described = (description: string) => ({ description })

const node_id = NodeId.annotateKey(described("The node."))

/** A node's address and capacity. */
const node = {
  node_id,
  address: NodeAddress.annotateKey(described("Address of the node, `host:port`.")),
  capacity_bytes: Uint64Digits.annotateKey(
    described("Capacity of the node in bytes, as decimal digits."),
  ),
  weight_percent: Schema.Int.annotateKey(
    described("Number of its points on the ring, in percent of `vnodes_per_node`."),
  ),
}

const copy = {
  node_id: NodeId.annotateKey(described("ID of the node that has the copy.")),
  size: Schema.Int.annotateKey(described("Size of the blob in bytes.")),
  checksum: Schema.String.annotateKey(described("BLAKE3-256 of the bytes, in base64.")),
  policy: ReplicationPolicy.annotateKey(described("Replication policy of the blob.")),
  shard: Schema.optionalKey(FactShard).annotateKey(
    described("Shard of the blob that the copy contains; absent: the copy is the whole blob."),
  ),
}

/** The number of blobs that the node cannot store with their full policy. */
const shortfall = {
  node_id: NodeId.annotateKey(described("ID of the node that has the blobs.")),
  active_nodes: Schema.Int.annotateKey(
    described("Number of active nodes in the cluster, including this one."),
  ),
  under_replicated: Schema.Int.annotateKey(
    described("Number of the node's blobs whose policy needs more active nodes."),
  ),
}

const cluster = { aggregate: "cluster", subject: "the cluster" } as const
const volume = { aggregate: "volume", subject: "the node" } as const
const blob = { aggregate: "blob", subject: "the blob, in hex" } as const

export const published = {
  ring_configured: {
    ...cluster,
    when: "The cluster was formed, or the parameters of its ring changed.",
    data: Schema.Struct({
      vnodes_per_node: VnodesPerNode.annotateKey(
        described("Number of points of a node with full weight."),
      ),
      capacity_unit_bytes: Uint64Digits.annotateKey(
        described("Capacity with full weight in bytes, as decimal digits."),
      ),
    }),
  },
  node_joined: {
    ...cluster,
    when: "A node joined the cluster; it is not on the ring yet.",
    data: Schema.Struct(node),
  },
  node_activated: {
    ...cluster,
    when: "A node was placed on the ring; it now receives blobs.",
    data: Schema.Struct({ node_id }),
  },
  node_changed: {
    ...cluster,
    when: "The address or the capacity of a node changed.",
    data: Schema.Struct(node),
  },
  node_went_offline: {
    ...cluster,
    when: "A node's heartbeats stopped; it receives no new blobs.",
    data: Schema.Struct({
      node_id,
      remove_at: Instant.annotateKey(
        described("Time at which the node is removed if it stays offline, RFC 3339 in UTC."),
      ),
    }),
  },
  node_revived: {
    ...cluster,
    when: "An offline node's heartbeats resumed before it was removed.",
    data: Schema.Struct({ node_id }),
  },
  node_leave_started: {
    ...cluster,
    when: "A node started to leave; it receives no new blobs, and its blobs move to other nodes.",
    data: Schema.Struct({ node_id }),
  },
  node_left: {
    ...cluster,
    when: "A node left the cluster; all its blobs are on other nodes.",
    data: Schema.Struct({ node_id }),
  },
  node_removed: {
    ...cluster,
    when: "A node was removed from the cluster; its blobs were not moved first.",
    data: Schema.Struct({
      node_id,
      reason: Schema.Literals(["left_at_once", "offline_too_long"]).annotateKey(
        described(
          "Reason: an immediate leave was requested, or the node was offline until `remove_at`.",
        ),
      ),
    }),
  },
  blob_stored: {
    ...blob,
    when: "A blob was stored on a node's disk.",
    data: Schema.Struct({
      ...copy,
      labels: Schema.optionalKey(BlobLabels).annotateKey(
        described("Labels of the blob from the put request."),
      ),
    }),
  },
  blob_deleted: {
    ...blob,
    when: "A client deleted a node's copy of a blob.",
    data: Schema.Struct(copy),
  },
  blob_quarantined: {
    ...blob,
    when: "A node's copy of a blob did not match its checksum and was quarantined.",
    data: Schema.Struct(copy),
  },
  blob_lost: {
    ...blob,
    when: "The file of a node's copy was missing.",
    data: Schema.Struct(copy),
  },
  blob_released: {
    ...blob,
    when: "A node discarded its copy of a blob, because the nodes responsible for it have copies.",
    data: Schema.Struct(copy),
  },
  replication_shortfall_started: {
    ...volume,
    when: "Some of a node's blobs now have fewer copies than their policy requires.",
    data: Schema.Struct(shortfall),
  },
  replication_shortfall_ended: {
    ...volume,
    when: "The cluster again has enough nodes for all of the node's blobs.",
    data: Schema.Struct(shortfall),
  },
} as const satisfies PublishedTypes
