/** Restores as tenants see them. Source: document 2 §2 Restore; DECISIONS, document 2, restore. */
import type { Kysely } from "kysely"
import { RestoreEvent } from "#events/share-protection/restore.ts"
import { type Place, projection } from "#projections/projection.ts"
import { findRow, listRows, type Page } from "#projections/share-protection/listing.ts"
import { type Stored, table } from "#projections/table.ts"
import { nullsOf } from "#schemas/fields.ts"
import type { BackupId, ProjectId, RestoreId } from "#schemas/share-protection/id.ts"
import { Restore } from "#schemas/share-protection/views/restore.ts"

export interface RestoreTables {
  readonly share_protection_restore: Stored<Restore>
}

const restores = table({
  name: "share_protection_restore",
  fields: Restore.fields,
  indexes: [["backup_id"], ["project_id"]],
})

const project = (event: RestoreEvent, { id: restore_id, commit: { at } }: Place) => {
  // The stream's own id.
  const id = restore_id as RestoreId
  const update = (values: Partial<Restore>) => [restores.update(id, { ...values, updated_at: at })]
  return RestoreEvent.match(event, {
    RestoreRequested: ({ type: _, ...request }) => [
      restores.insert({
        id,
        ...nullsOf(Restore.fields),
        ...request,
        status: "pending",
        created_at: at,
        updated_at: at,
      }),
    ],
    RestoreQueued: () => update({ status: "queued" }),
    RestoreStarted: () => update({ status: "running" }),
    RestoreCompleted: ({ type: _, ...restored }) => update({ ...restored, status: "available" }),
    RestoreFailed: ({ reason }) => update({ status: "error", reason }),
    RestoreRetried: () => update({ status: "queued", reason: null }),
  })
}

export const restore = projection<RestoreTables, RestoreEvent>({
  part: "share-protection.restore",
  event: RestoreEvent,
  create: ({ schema }) => restores.create(schema),
  project,
})

export const findRestore = (db: Kysely<RestoreTables>, id: RestoreId) => findRow(db, restores, id)

interface RestoreFilter {
  readonly project_id?: ProjectId | undefined
  readonly backup_id?: BackupId | undefined
}

/** Newest first. */
export const listRestores = (db: Kysely<RestoreTables>, filter: RestoreFilter, page: Page) =>
  listRows(db, restores, { filter: { ...filter }, order: "desc" }, page)
