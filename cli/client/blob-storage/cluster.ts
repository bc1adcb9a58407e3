/** Operations of `almanac cluster`. Source: document 1 §4 ClusterService. */
import { boolean, type CommandGroup, integer, needed, text } from "#cli/client/operation.ts"

const columns = [
  "node_id",
  "state",
  "used_bytes",
  "capacity_bytes",
  "blob_count",
  "ring_share",
  "address",
  "pending_migrations",
  "repairs",
  "replication_failures",
  "under_replicated",
  "bytes_moved",
]

export const cluster: CommandGroup = {
  name: "cluster",
  operations: [
    {
      command: "status",
      method: "GET",
      path: "/v1/cluster/state",
      items: "nodes",
      columns,
      what: "The nodes and the version of the ring",
    },
    {
      command: "metrics",
      method: "GET",
      path: "/v1/cluster/metrics",
      items: "nodes",
      columns,
      what: "What each node holds, moves and repairs",
    },
    {
      command: "join",
      method: "POST",
      path: "/v1/cluster/join",
      items: "nodes",
      columns,
      what: "Take a node into the cluster",
      body: [
        text("node_id", "Its name", needed),
        text("address", "Where others reach it, host:port", needed),
        integer("capacity_bytes", "What it may store", needed),
      ],
    },
    {
      command: "leave",
      method: "POST",
      path: "/v1/cluster/leave",
      what: "Take a node out of the cluster",
      example: "almanac cluster leave --node-id node-3 --graceful",
      body: [
        text("node_id", "Its name", needed),
        boolean("graceful", "Move its blobs to others first"),
      ],
    },
    {
      command: "sync-ring",
      method: "POST",
      path: "/v1/cluster/sync-ring",
      what: "Have the node look whether the ring is newer than this",
      body: [integer("ring_version", "A version of the ring", needed)],
    },
  ],
}
