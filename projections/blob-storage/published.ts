/**
 * What blob storage tells subscribers, in the words of its published types.
 *
 * A blob's events are told under the aggregate `blob` with the blob's id as their subject, though
 * the log keeps them in the node's volume: that is what a subscriber looks for.
 */
import { ClusterEvent } from "#events/blob-storage/cluster.ts"
import { happenedAt, VolumeEvent } from "#events/blob-storage/volume.ts"
import { publication, type ToldOf } from "#projections/published-events.ts"
import type { published as types } from "#schemas/blob-storage/published.ts"

type Told = ToldOf<typeof types>

const cluster = publication({
  part: "blob-storage.cluster",
  event: ClusterEvent,
  tell: (event): Told =>
    ClusterEvent.match(event, {
      RingConfigured: ({ type: _, ...data }): Told => ({ type: "ring_configured", data }),
      NodeJoined: ({ type: _, ...data }): Told => ({ type: "node_joined", data }),
      NodeActivated: ({ node_id }): Told => ({ type: "node_activated", data: { node_id } }),
      NodeChanged: ({ type: _, ...data }): Told => ({ type: "node_changed", data }),
      // The fence is between us and our watchdogs.
      NodeWentOffline: ({ node_id, remove_at }): Told => ({
        type: "node_went_offline",
        data: { node_id, remove_at },
      }),
      NodeRevived: ({ node_id }): Told => ({ type: "node_revived", data: { node_id } }),
      NodeLeaveStarted: ({ node_id }): Told => ({ type: "node_leave_started", data: { node_id } }),
      NodeLeft: ({ node_id }): Told => ({ type: "node_left", data: { node_id } }),
      NodeRemoved: ({ node_id, reason }): Told => ({
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
  tell: (event, { id: node_id }): Told => {
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
