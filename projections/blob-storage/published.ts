/**
 * Published events of blob storage.
 *
 * Blob events are published under the aggregate `blob` with the blob's id as their subject,
 * although the log keeps them in the node's volume: subscribers look for the blob.
 */
import { ClusterEvent } from "#events/blob-storage/cluster.ts"
import { happenedAt, VolumeEvent } from "#events/blob-storage/volume.ts"
import { type EventDraftOf, publication } from "#projections/published-events.ts"
import type { published as types } from "#schemas/blob-storage/published.ts"

type Draft = EventDraftOf<typeof types>

const cluster = publication({
  part: "blob-storage.cluster",
  event: ClusterEvent,
  toDraft: (event): Draft =>
    ClusterEvent.match(event, {
      RingConfigured: ({ type: _, ...data }): Draft => ({ type: "ring_configured", data }),
      NodeJoined: ({ type: _, ...data }): Draft => ({ type: "node_joined", data }),
      NodeActivated: ({ node_id }): Draft => ({ type: "node_activated", data: { node_id } }),
      NodeChanged: ({ type: _, ...data }): Draft => ({ type: "node_changed", data }),
      // The fence stays internal, between the cluster and its watchdogs.
      NodeWentOffline: ({ node_id, remove_at }): Draft => ({
        type: "node_went_offline",
        data: { node_id, remove_at },
      }),
      NodeRevived: ({ node_id }): Draft => ({ type: "node_revived", data: { node_id } }),
      NodeLeaveStarted: ({ node_id }): Draft => ({ type: "node_leave_started", data: { node_id } }),
      NodeLeft: ({ node_id }): Draft => ({ type: "node_left", data: { node_id } }),
      NodeRemoved: ({ node_id, reason }): Draft => ({
        type: "node_removed",
        data: { node_id, reason },
      }),
    }),
})

const blob_types = {
  BlobStored: "blob_stored",
  BlobDeleted: "blob_deleted",
  BlobQuarantined: "blob_quarantined",
  BlobLost: "blob_lost",
  BlobReleased: "blob_released",
} as const

const shortfall_types = {
  ReplicationShortfallStarted: "replication_shortfall_started",
  ReplicationShortfallEnded: "replication_shortfall_ended",
} as const

const volume = publication({
  part: "blob-storage.volume",
  event: VolumeEvent,
  toDraft: (event, { id: node_id }): Draft => {
    if (!("cursor" in event)) {
      const { active_nodes, under_replicated } = event
      return {
        type: shortfall_types[event.type],
        data: { node_id, active_nodes, under_replicated },
      }
    }
    const { type, id, size, checksum, policy, actor, request_id, correlation_id } = event
    const labels = event.type === "BlobStored" && event.labels ? { labels: event.labels } : {}
    const shard = event.shard ? { shard: event.shard } : {}
    return {
      type: blob_types[type],
      aggregate: "blob",
      subject: id,
      data: { node_id, size, checksum, policy, ...shard, ...labels },
      origin: { actor, request_id, correlation_id, at: happenedAt(event) },
    }
  },
})

export const published = [cluster, volume]
