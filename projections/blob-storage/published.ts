/**
 * What blob storage tells subscribers. Types and fields are only ever added; docs/events.md lists
 * them.
 *
 * A blob's events are told under the aggregate `blob` with the blob's id as their subject, though
 * the log keeps them in the node's volume: that is what a subscriber looks for.
 */
import { DateTime } from "effect"
import { ClusterEvent } from "#events/blob-storage/cluster.ts"
import { VolumeEvent } from "#events/blob-storage/volume.ts"
import { publication, type Told } from "#projections/published-events.ts"

const nanoseconds_per_millisecond = 1_000_000n

const cluster = publication({
  part: "blob-storage.cluster",
  event: ClusterEvent,
  tell: (event): Told => {
    const { type: _, ...data } = event
    return ClusterEvent.match(event, {
      RingConfigured: () => ({ type: "ring_configured", data }),
      NodeJoined: () => ({ type: "node_joined", data }),
      NodeActivated: () => ({ type: "node_activated", data }),
      NodeChanged: () => ({ type: "node_changed", data }),
      NodeWentOffline: () => ({ type: "node_went_offline", data }),
      NodeRevived: () => ({ type: "node_revived", data }),
      NodeLeaveStarted: () => ({ type: "node_leave_started", data }),
      NodeLeft: () => ({ type: "node_left", data }),
      NodeRemoved: () => ({ type: "node_removed", data }),
    })
  },
})

const blob_types = {
  BlobStored: "blob_stored",
  BlobDeleted: "blob_deleted",
  BlobQuarantined: "blob_quarantined",
  BlobLost: "blob_lost",
} as const

const blob = publication({
  part: "blob-storage.volume",
  event: VolumeEvent,
  tell: (event, { id: node_id }): Told | undefined => {
    const { type, id, size, checksum, policy, at, actor, request_id, correlation_id } = event
    const labels = event.type === "BlobStored" && event.labels ? { labels: event.labels } : {}
    const milliseconds = Number(BigInt(at) / nanoseconds_per_millisecond)
    return {
      type: blob_types[type],
      aggregate: "blob",
      subject: id,
      data: { node_id, size, checksum, policy, ...labels },
      origin: {
        actor,
        request_id,
        correlation_id,
        at: DateTime.formatIso(DateTime.makeUnsafe(milliseconds)),
      },
    }
  },
})

export const published = [cluster, blob]
