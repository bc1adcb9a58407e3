/** Prometheus text of what a node does for its cluster: what an operator watches of it. */
import type { NodeProgress } from "#actors/blob-storage/repair-progress.ts"

const family = (type: "counter" | "gauge", name: string, help: string, value: bigint | number) => [
  `# HELP almanac_cluster_${name} ${help}`,
  `# TYPE almanac_cluster_${name} ${type}`,
  `almanac_cluster_${name} ${value}`,
]

export interface ClusterMeasures {
  readonly progress: NodeProgress
  readonly active_nodes: number
  /** Links that other nodes have open to this one. */
  readonly links: number
}

export const clusterMetrics = ({ progress, active_nodes, links }: ClusterMeasures) => {
  const { pending_migrations, bytes_moved, repairs, replication_failures } = progress
  const lines = [
    ...family(
      "gauge",
      "active_nodes",
      "Nodes that are active, as this one knows it.",
      active_nodes,
    ),
    ...family("gauge", "links", "Connections of other nodes to this one.", links),
    ...family(
      ...(["gauge", "pending_migrations", "Copies here that have their place elsewhere."] as const),
      pending_migrations,
    ),
    ...family(
      ...(["counter", "bytes_moved_total", "Bytes of copies that others took from here."] as const),
      bytes_moved,
    ),
    ...family("counter", "repairs_total", "Copies and shards that were made or given.", repairs),
    ...family(
      ...(["counter", "replication_failures_total"] as const),
      "Copies of this node's puts that others could not take.",
      replication_failures,
    ),
  ]
  return `${lines.join("\n")}\n`
}
