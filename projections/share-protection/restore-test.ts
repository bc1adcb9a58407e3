/**
 * Restore tests: the last verified backup of each share, and failures since then.
 *
 * Source: beyond the document; docs/decisions/0066-restore-plans-and-undelete.md.
 */
import { Schema, Struct } from "effect"
import { BackupEvent } from "#events/share-protection/backup.ts"
import { projection } from "#projections/projection.ts"
import { history, type Version } from "#projections/share-protection/history.ts"
import { type Stored, table } from "#projections/table.ts"
import { nullsOf } from "#schemas/fields.ts"
import { Instant } from "#schemas/instant.ts"
import { BackupId, ShareId } from "#schemas/share-protection/id.ts"
import { Reason } from "#schemas/share-protection/text.ts"

const fields = {
  /** The share's id. */
  id: ShareId,
  /** These three are null until a backup of the share is verified. */
  proven_backup_id: Schema.NullOr(BackupId),
  proven_taken_at: Schema.NullOr(Instant),
  proven_at: Schema.NullOr(Instant),
  /** These three are null unless the last test failed. */
  failed_backup_id: Schema.NullOr(BackupId),
  failed_at: Schema.NullOr(Instant),
  failure: Schema.NullOr(Reason),
}
export type RestoreTestRow = Schema.Struct<typeof fields>["Type"]

export interface RestoreTestTables {
  readonly share_protection_restore_test: Stored<RestoreTestRow>
  readonly share_protection_restore_test_history: Version<RestoreTestRow>
}

const tests = table({ name: "share_protection_restore_test", fields })

const past = history({
  name: "share_protection_restore_test_history",
  of: tests,
  by: "id",
  keeps: Struct.keys(fields),
  indexes: [["valid_to"]],
})

const faultless = { failed_backup_id: null, failed_at: null, failure: null }

export const restoreTest = projection<RestoreTestTables, BackupEvent>({
  part: "share-protection.backup",
  event: BackupEvent,
  create: ({ schema }) => [...tests.create(schema), ...past.create(schema)],
  project: (event, { id, commit: { at } }) => {
    if (event.type !== "BackupRestoreTested" && event.type !== "BackupRestoreTestFailed") return []
    const { share_id, taken_at } = event
    // The stream's own id.
    const backup_id = id as BackupId
    const change: Partial<RestoreTestRow> =
      event.type === "BackupRestoreTested"
        ? {
            proven_backup_id: backup_id,
            proven_taken_at: taken_at,
            proven_at: at,
            ...faultless,
          }
        : { failed_backup_id: backup_id, failed_at: at, failure: event.reason }
    return [
      tests.ensure({ id: share_id, ...nullsOf(fields) }),
      tests.update(share_id, change),
      ...past.record(share_id, at),
    ]
  },
})
