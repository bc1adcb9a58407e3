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
      what: "List the nodes of the cluster",
    },
    {
      command: "metrics",
      method: "GET",
      path: "/v1/cluster/metrics",
      items: "nodes",
      columns,
      what: "List the metrics of each node: blobs, migrations and repairs",
    },
    {
      command: "join",
      method: "POST",
      path: "/v1/cluster/join",
      items: "nodes",
      columns,
      what: "Add a node to the cluster",
      example:
        "almanac cluster join --node-id node-7 --address 10.0.0.7:9797 " +
        "--capacity-bytes 1000000000000",
      body: [
        text("node_id", "ID of the node", needed),
        text("address", "Address of the node for the others, host:port", needed),
        integer("capacity_bytes", "Capacity of the node in bytes", needed),
      ],
    },
    {
      command: "leave",
      method: "POST",
      path: "/v1/cluster/leave",
      what: "Remove a node from the cluster",
      example: "almanac cluster leave --node-id node-3 --graceful",
      body: [
        text("node_id", "ID of the node", needed),
        boolean("graceful", "Move its blobs to other nodes first"),
      ],
    },
    {
      command: "sync-ring",
      method: "POST",
      path: "/v1/cluster/sync-ring",
      example: "almanac cluster sync-ring --ring-version 12",
      what: "Let the node fetch the ring if its version is older than this",
      body: [integer("ring_version", "Version of the ring", needed)],
    },
  ],
}
