/** The cluster and its nodes, as ClusterService reports them. Source: document 1 §2, §4. */
import { Effect, type Schema } from "effect"
import { type Kysely, sql } from "kysely"
import { ClusterEvent } from "#events/blob-storage/cluster.ts"
import { type Place, projection } from "#projections/projection.ts"
import { statement } from "#projections/statement.ts"
import { table } from "#projections/table.ts"
import {
  type NodeId,
  type NodeState,
  type node_fields,
  node_row,
} from "#schemas/blob-storage/node.ts"

interface ClusterRow {
  readonly name: string
  readonly ring_version: number
  readonly vnodes_per_node: number
}

export type NodeRow = Schema.Struct<typeof node_row>["Type"]

export interface NodeTables {
  readonly blob_storage_cluster: ClusterRow
  readonly blob_storage_node: NodeRow
}

const nodes = table({
  name: "blob_storage_node",
  fields: node_row,
  key: ["cluster", "node_id"],
})

type NodeKey = Pick<NodeRow, "cluster" | "node_id">
type NodeFields = Pick<NodeRow, "cluster" | keyof typeof node_fields>

const write = statement<NodeTables>()

const configure = write<ClusterRow>((db, { name, vnodes_per_node }) =>
  db
    .insertInto("blob_storage_cluster")
    .values({ name, ring_version: 0, vnodes_per_node })
    .onConflict((same) =>
      same.column("name").doUpdateSet({
        vnodes_per_node,
        // A ring without nodes stays the same, however many points each node would have.
        ring_version: sql`blob_storage_cluster.ring_version + case when exists(
          select 1 from blob_storage_node where cluster = ${name} and state = 'active'
        ) then 1 else 0 end`,
      }),
    ),
)

const enter = write<NodeKey & Pick<NodeRow, "state" | "state_changed_at">>(
  (db, { cluster, node_id, state, state_changed_at }) =>
    db
      .updateTable("blob_storage_node")
      .where("cluster", "=", cluster)
      .where("node_id", "=", node_id)
      .set({ state, state_changed_at }),
)

const change = write<NodeFields>(
  (db, { cluster, node_id, address, capacity_bytes, weight_percent }) =>
    db
      .updateTable("blob_storage_node")
      .where("cluster", "=", cluster)
      .where("node_id", "=", node_id)
      .set({ address, capacity_bytes, weight_percent }),
)

const remove = write<NodeKey>((db, { cluster, node_id }) =>
  db.deleteFrom("blob_storage_node").where("cluster", "=", cluster).where("node_id", "=", node_id),
)

const raise = write<Pick<NodeRow, "cluster">>((db, { cluster }) =>
  db
    .updateTable("blob_storage_cluster")
    .where("name", "=", cluster)
    .set({ ring_version: sql`ring_version + 1` }),
)

/** An inactive node is not on the ring: its changes leave the ring unchanged. */
const raiseIfActive = write<NodeKey>((db, { cluster, node_id }) =>
  db
    .updateTable("blob_storage_cluster")
    .where("name", "=", cluster)
    .set({
      ring_version: sql`ring_version + case when exists(
        select 1 from blob_storage_node
        where cluster = ${cluster} and node_id = ${node_id} and state = 'active'
      ) then 1 else 0 end`,
    }),
)

const raiseIfReweighted = write<NodeKey & Pick<NodeRow, "weight_percent">>(
  (db, { cluster, node_id, weight_percent }) =>
    db
      .updateTable("blob_storage_cluster")
      .where("name", "=", cluster)
      .set({
        ring_version: sql`ring_version + case when exists(
          select 1 from blob_storage_node
          where cluster = ${cluster} and node_id = ${node_id} and state = 'active'
            and weight_percent <> ${weight_percent}
        ) then 1 else 0 end`,
      }),
)

const project = (event: ClusterEvent, { id: cluster, commit: { at } }: Place) => {
  const enterState = (node_id: NodeId, state: NodeState) =>
    enter({ cluster, node_id, state, state_changed_at: at })
  return ClusterEvent.match(event, {
    RingConfigured: ({ vnodes_per_node }) => [
      configure({ name: cluster, ring_version: 0, vnodes_per_node }),
    ],
    NodeJoined: ({ type: _, ...node }) => [
      nodes.insert({ cluster, ...node, state: "joining", joined_at: at, state_changed_at: at }),
    ],
    NodeActivated: ({ node_id }) => [enterState(node_id, "active"), raise({ cluster })],
    NodeChanged: ({ type: _, ...node }) => [
      raiseIfReweighted({ cluster, ...node }),
      change({ cluster, ...node }),
    ],
    NodeWentOffline: ({ node_id }) => [enterState(node_id, "offline"), raise({ cluster })],
    NodeRevived: ({ node_id }) => [enterState(node_id, "active"), raise({ cluster })],
    NodeLeaveStarted: ({ node_id }) => [
      raiseIfActive({ cluster, node_id }),
      enterState(node_id, "leaving"),
    ],
    NodeLeft: ({ node_id }) => [remove({ cluster, node_id })],
    NodeRemoved: ({ node_id }) => [
      raiseIfActive({ cluster, node_id }),
      remove({ cluster, node_id }),
    ],
  })
}

export const node = projection<NodeTables, ClusterEvent>({
  part: "blob-storage.cluster",
  event: ClusterEvent,
  create: (db) => [
    db.schema
      .createTable("blob_storage_cluster")
      .addColumn("name", "text", (column) => column.primaryKey())
      .addColumn("ring_version", "integer", (column) => column.notNull())
      .addColumn("vnodes_per_node", "integer", (column) => column.notNull()),
    ...nodes.create(db.schema),
  ],
  project,
})

/** The cluster's ring; undefined before its first node joined. */
export const findCluster = (db: Kysely<NodeTables>, name: string) =>
  Effect.promise(() =>
    db.selectFrom("blob_storage_cluster").selectAll().where("name", "=", name).executeTakeFirst(),
  )

/** The cluster's members by id: at most `nodes_max` of them. */
export const listNodes = (db: Kysely<NodeTables>, cluster: string) =>
  Effect.promise(() =>
    db
      .selectFrom("blob_storage_node")
      .selectAll()
      .where("cluster", "=", cluster)
      .orderBy("node_id")
      .execute(),
  )
