/** What each node holds by the log: how far its journal is in it, blobs by policy, and bytes. */
import { Effect } from "effect"
import { type Kysely, sql } from "kysely"
import { changeOf, VolumeEvent } from "#events/blob-storage/volume.ts"
import { projection } from "#projections/projection.ts"
import { statement } from "#projections/statement.ts"
import { type ReplicationPolicy, storedPolicy } from "#schemas/blob-storage/blob.ts"

export interface VolumeRow {
  readonly node_id: string
  /** The journal's last fact that the log holds. */
  readonly cursor: number
  readonly blobs: number
  readonly bytes: number
}

export interface VolumePolicyRow {
  readonly node_id: string
  readonly policy: ReplicationPolicy
  readonly blobs: number
}

export interface VolumeTables {
  readonly blob_storage_volume: VolumeRow
  readonly blob_storage_volume_policy: VolumePolicyRow
}

/**
 * One fact: `blobs` and `bytes` are what it adds, below zero what it takes away. As in the chart no
 * count goes below zero, whatever is told of a copy of which nothing is known.
 */
const count = statement<VolumeTables>()<VolumeRow>((db, { node_id, cursor, blobs, bytes }) =>
  db
    .insertInto("blob_storage_volume")
    .values({
      ...{ node_id, cursor },
      blobs: sql`max(0, ${blobs})`,
      bytes: sql`max(0, ${bytes})`,
    })
    .onConflict((same) =>
      same.column("node_id").doUpdateSet({
        cursor: sql`excluded.cursor`,
        blobs: sql`max(0, blobs + ${blobs})`,
        bytes: sql`max(0, bytes + ${bytes})`,
      }),
    ),
)

/** One fact: `blobs` is what it adds, below zero what it takes away. */
const countPolicy = statement<VolumeTables>()<VolumePolicyRow>((db, { node_id, policy, blobs }) =>
  db
    .insertInto("blob_storage_volume_policy")
    .values({ node_id, policy, blobs: sql`max(0, ${blobs})` })
    .onConflict((same) =>
      same.columns(["node_id", "policy"]).doUpdateSet({ blobs: sql`max(0, blobs + ${blobs})` }),
    ),
)

export const volume = projection<VolumeTables, VolumeEvent>({
  part: "blob-storage.volume",
  event: VolumeEvent,
  create: (db) => [
    db.schema
      .createTable("blob_storage_volume")
      .addColumn("node_id", "text", (column) => column.primaryKey())
      .addColumn("cursor", "integer", (column) => column.notNull())
      .addColumn("blobs", "integer", (column) => column.notNull())
      .addColumn("bytes", "integer", (column) => column.notNull()),
    db.schema
      .createTable("blob_storage_volume_policy")
      .addColumn("node_id", "text", (column) => column.notNull())
      .addColumn("policy", "text", (column) => column.notNull())
      .addColumn("blobs", "integer", (column) => column.notNull())
      .addPrimaryKeyConstraint("blob_storage_volume_policy_key", ["node_id", "policy"]),
  ],
  project: (event, { id: node_id }) => {
    // Whether there are nodes enough is asked of the nodes that are active when it is asked.
    if (!("cursor" in event)) return []
    const { blobs, bytes } = changeOf(event)
    return [
      count({ node_id, cursor: event.cursor, blobs, bytes }),
      countPolicy({ node_id, policy: storedPolicy(event.policy), blobs }),
    ]
  },
})

/** The volume of one node; undefined before its first fact. */
export const findVolume = (db: Kysely<VolumeTables>, node_id: string) =>
  Effect.promise(() =>
    db
      .selectFrom("blob_storage_volume")
      .selectAll()
      .where("node_id", "=", node_id)
      .executeTakeFirst(),
  )

/** How many blobs of which policy each of these nodes holds; what is not there is none. */
export const listPolicies = (db: Kysely<VolumeTables>, node_ids: ReadonlyArray<string>) =>
  Effect.promise(() =>
    db
      .selectFrom("blob_storage_volume_policy")
      .selectAll()
      .where("node_id", "in", node_ids)
      .where("blobs", ">", 0)
      .execute(),
  )
