/** Contents of each node according to the log: journal cursor, blobs by policy, and bytes. */
import { Effect } from "effect"
import { type Kysely, type RawBuilder, sql } from "kysely"
import { type BlobEvent, changeOf, VolumeEvent } from "#events/blob-storage/volume.ts"
import { type CommitPlace, commitProjection } from "#projections/projection.ts"
import { statement } from "#projections/statement.ts"
import { type ReplicationPolicy, storedPolicy } from "#schemas/blob-storage/blob.ts"

export interface VolumeRow {
  readonly node_id: string
  /** The journal's last fact in the log. */
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
 * Combined effect of several facts: adds `sum`, with a result of at least `floor`. As in the chart,
 * no count goes below zero after any fact, even if a fact reports an unknown copy.
 */
export interface Change {
  readonly sum: number
  readonly floor: number
}

const unchanged: Change = { sum: 0, floor: 0 }

/** Adds a fact: max(0, max(floor, x + sum) + by) is max(max(0, floor + by), x + sum + by). */
export const changedBy = ({ sum, floor }: Change, by: number): Change => ({
  sum: sum + by,
  floor: Math.max(0, floor + by),
})

interface Counted extends Pick<VolumeRow, "node_id" | "cursor"> {
  readonly blobs: number
  readonly blobs_min: number
  readonly bytes: number
  readonly bytes_min: number
}

/** The larger of two values, in SQL that every database supports. */
const larger = (floor: number, value: RawBuilder<number>) =>
  sql<number>`case when ${value} > cast(${floor} as bigint)
    then ${value} else cast(${floor} as bigint) end`

/** Adds a commit's facts; a missing count is 0. */
const count = statement<VolumeTables>()<Counted>(
  (db, { node_id, cursor, blobs, blobs_min, bytes, bytes_min }) =>
    db
      .insertInto("blob_storage_volume")
      .values({
        node_id,
        cursor,
        blobs: larger(blobs_min, sql`cast(${blobs} as bigint)`),
        bytes: larger(bytes_min, sql`cast(${bytes} as bigint)`),
      })
      .onConflict((same) =>
        same.column("node_id").doUpdateSet({
          cursor: sql`excluded.cursor`,
          blobs: larger(blobs_min, sql`blob_storage_volume.blobs + ${blobs}`),
          bytes: larger(bytes_min, sql`blob_storage_volume.bytes + ${bytes}`),
        }),
      ),
)

/** Adds a commit's facts of one policy. */
const countPolicy = statement<VolumeTables>()<VolumePolicyRow & { readonly blobs_min: number }>(
  (db, { node_id, policy, blobs, blobs_min }) =>
    db
      .insertInto("blob_storage_volume_policy")
      .values({ node_id, policy, blobs: larger(blobs_min, sql`cast(${blobs} as bigint)`) })
      .onConflict((same) =>
        same.columns(["node_id", "policy"]).doUpdateSet({
          blobs: larger(blobs_min, sql`blob_storage_volume_policy.blobs + ${blobs}`),
        }),
      ),
)

/** Few statements per commit, which may have hundreds of facts: every node counts all of them. */
const project = (events: ReadonlyArray<VolumeEvent>, { id: node_id }: CommitPlace) => {
  const policies = new Map<ReplicationPolicy, Change>()
  let blobs = unchanged
  let bytes = unchanged
  let last: BlobEvent | undefined
  for (const event of events) {
    // The number of active nodes is checked at query time instead.
    if (!("cursor" in event)) continue
    last = event
    const change = changeOf(event)
    const policy = storedPolicy(event.policy)
    blobs = changedBy(blobs, change.blobs)
    bytes = changedBy(bytes, change.bytes)
    policies.set(policy, changedBy(policies.get(policy) ?? unchanged, change.blobs))
  }
  if (last === undefined) return []
  return [
    count({
      node_id,
      cursor: last.cursor,
      blobs: blobs.sum,
      blobs_min: blobs.floor,
      bytes: bytes.sum,
      bytes_min: bytes.floor,
    }),
    ...[...policies].map(([policy, { sum, floor }]) =>
      countPolicy({ node_id, policy, blobs: sum, blobs_min: floor }),
    ),
  ]
}

export const volume = commitProjection<VolumeTables, VolumeEvent>({
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
  project,
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

/** Number of blobs per policy on each of these nodes; a missing row means none. */
export const listPolicies = (db: Kysely<VolumeTables>, node_ids: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    // PostgreSQL has no SQL for an empty list.
    if (node_ids.length === 0) return []
    return await db
      .selectFrom("blob_storage_volume_policy")
      .selectAll()
      .where("node_id", "in", node_ids)
      .where("blobs", ">", 0)
      .execute()
  })
