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
  address: NodeAddress.annotateKey(described("Where the node is reached, `host:port`.")),
  capacity_bytes: Uint64Digits.annotateKey(
    described("Bytes that it contributes, as decimal digits."),
  ),
  weight_percent: Schema.Int.annotateKey(
    described("Its points on the ring, as percent of `vnodes_per_node`."),
  ),
}

const copy = {
  node_id: NodeId.annotateKey(described("The node whose copy it is.")),
  size: Schema.Int.annotateKey(described("Bytes of the blob.")),
  checksum: Schema.String.annotateKey(described("BLAKE3-256 of the bytes, in base64.")),
  policy: ReplicationPolicy.annotateKey(described("How it is replicated.")),
  shard: Schema.optionalKey(FactShard).annotateKey(
    described("Which shard of the blob the copy is; absent: the copy is the whole blob."),
  ),
}

/** The number of blobs that the node cannot store with their full policy. */
const shortfall = {
  node_id: NodeId.annotateKey(described("The node whose blobs are meant.")),
  active_nodes: Schema.Int.annotateKey(
    described("How many nodes of the cluster were active, this one included."),
  ),
  under_replicated: Schema.Int.annotateKey(
    described("Blobs of the node whose policy asks for more nodes than that."),
  ),
}

const cluster = { aggregate: "cluster", subject: "the cluster" } as const
const volume = { aggregate: "volume", subject: "the node" } as const
const blob = { aggregate: "blob", subject: "the blob, in hex" } as const

export const published = {
  ring_configured: {
    ...cluster,
    when: "The cluster was formed, or its ring is drawn in another way from now on.",
    data: Schema.Struct({
      vnodes_per_node: VnodesPerNode.annotateKey(described("Points of a node of full weight.")),
      capacity_unit_bytes: Uint64Digits.annotateKey(
        described("The capacity that has the full weight, as decimal digits."),
      ),
    }),
  },
  node_joined: {
    ...cluster,
    when: "A node became a member; it is not on the ring yet.",
    data: Schema.Struct(node),
  },
  node_activated: {
    ...cluster,
    when: "A member is on the ring from here on: it gets blobs.",
    data: Schema.Struct({ node_id }),
  },
  node_changed: {
    ...cluster,
    when: "A member is reached elsewhere, or contributes another capacity.",
    data: Schema.Struct(node),
  },
  node_went_offline: {
    ...cluster,
    when: "A member's heartbeats stopped: it gets no new blobs.",
    data: Schema.Struct({
      node_id,
      remove_at: Instant.annotateKey(
        described("When it is removed if it stays away, RFC 3339 in UTC."),
      ),
    }),
  },
  node_revived: {
    ...cluster,
    when: "An offline member's heartbeats resumed before it was removed.",
    data: Schema.Struct({ node_id }),
  },
  node_leave_started: {
    ...cluster,
    when: "A member leaves: it gets no new blobs, and those it has move away.",
    data: Schema.Struct({ node_id }),
  },
  node_left: {
    ...cluster,
    when: "A leaving member's blobs are all elsewhere, and it is a member no more.",
    data: Schema.Struct({ node_id }),
  },
  node_removed: {
    ...cluster,
    when: "A node is a member no more, and its blobs were not moved before.",
    data: Schema.Struct({
      node_id,
      reason: Schema.Literals(["left_at_once", "offline_too_long"]).annotateKey(
        described("Why: it was asked to leave at once, or was away until `remove_at`."),
      ),
    }),
  },
  blob_stored: {
    ...blob,
    when: "A blob's bytes are on a node's disk.",
    data: Schema.Struct({
      ...copy,
      labels: Schema.optionalKey(BlobLabels).annotateKey(
        described("The labels that it was put with."),
      ),
    }),
  },
  blob_deleted: {
    ...blob,
    when: "A caller deleted a node's copy.",
    data: Schema.Struct(copy),
  },
  blob_quarantined: {
    ...blob,
    when: "A node's copy did not match its checksum and was set aside.",
    data: Schema.Struct(copy),
  },
  blob_lost: {
    ...blob,
    when: "The file of a node's copy was gone.",
    data: Schema.Struct(copy),
  },
  blob_released: {
    ...blob,
    when: "A node let its copy go: other nodes are to have it, and do.",
    data: Schema.Struct(copy),
  },
  replication_shortfall_started: {
    ...volume,
    when: "From here on some of a node's blobs have fewer copies than their policy asks for.",
    data: Schema.Struct(shortfall),
  },
  replication_shortfall_ended: {
    ...volume,
    when: "From here on there are nodes enough for each of the node's blobs.",
    data: Schema.Struct(shortfall),
  },
} as const satisfies PublishedTypes
