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
    ["gauge", "active_nodes", "Active nodes of the cluster, as known to this node.", active_nodes],
    ["gauge", "links", "Open connections from other nodes.", links],
    ["gauge", "pending_migrations", pending, pending_migrations],
    ["gauge", "under_replicated_blobs", missing, under_replicated],
    [
      "counter",
      "moved_bytes_total",
      "Bytes of copies moved from this node to others.",
      bytes_moved,
    ],
    ["counter", "repairs_total", "Copies and shards created or sent by repair.", repairs],
    ["counter", "replication_failures_total", failures, replication_failures],
  ])
}

const pending = "Copies on this node that belong on other nodes."
const missing = "Blobs with too few copies, found by this node's last two complete sweeps."
const failures = "Copies of this node's puts that other nodes failed to store."
