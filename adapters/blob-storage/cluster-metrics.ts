/** Prometheus metrics of a node's part in its cluster. */
import type { NodeProgress } from "#actors/blob-storage/ports/repair-progress.ts"
import { plainText } from "#schemas/metric.ts"

export interface ClusterMeasures {
  readonly progress: NodeProgress
  readonly active_nodes: number
  /** Open connections from other nodes. */
  readonly links: number
}

export const clusterMetrics = ({ progress, active_nodes, links }: ClusterMeasures) => {
  const { pending_migrations, under_replicated, bytes_moved, repairs } = progress
  const { replication_failures } = progress
  return plainText("almanac_cluster_", [
    ["gauge", "active_nodes", "Nodes that are active, as this one knows it.", active_nodes],
    ["gauge", "links", "Connections of other nodes to this one.", links],
    ["gauge", "pending_migrations", pending, pending_migrations],
    ["gauge", "under_replicated_blobs", missing, under_replicated],
    ["counter", "moved_bytes_total", "Bytes of copies that others took from here.", bytes_moved],
    ["counter", "repairs_total", "Copies and shards that were made or given.", repairs],
    ["counter", "replication_failures_total", failures, replication_failures],
  ])
}

const pending = "Copies here that have their place elsewhere."
const missing = "Blobs that this node found to lack copies, by its last two complete sweeps."
const failures = "Copies of this node's puts that others could not take."
