/** What each node holds by the log: how far its journal is in it, blobs and bytes. */
import { Effect } from "effect"
import { type Kysely, sql } from "kysely"
import { VolumeEvent } from "#events/blob-storage/volume.ts"
import { projection } from "#projections/projection.ts"
import { statement } from "#projections/statement.ts"

export interface VolumeRow {
  readonly node_id: string
  /** The journal's last fact that the log holds. */
  readonly cursor: number
  readonly blobs: number
  readonly bytes: number
}

export interface VolumeTables {
  readonly blob_storage_volume: VolumeRow
}

/** One fact: `blobs` and `bytes` are what it adds, below zero what it takes away. */
const count = statement<VolumeTables>()<VolumeRow>((db, { node_id, cursor, blobs, bytes }) =>
  db
    .insertInto("blob_storage_volume")
    .values({ node_id, cursor, blobs, bytes })
    .onConflict((same) =>
      same.column("node_id").doUpdateSet({
        cursor: sql`excluded.cursor`,
        blobs: sql`blobs + excluded.blobs`,
        bytes: sql`bytes + excluded.bytes`,
      }),
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
  ],
  project: (event, { id }) => {
    const sign = event.type === "BlobStored" ? 1 : -1
    const { cursor, size } = event
    return [count({ node_id: id, cursor, blobs: sign, bytes: sign * size })]
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
