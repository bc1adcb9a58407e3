/**
 * Restore tests: the backup of each share that was proven last, and what failed since.
 *
 * Source: beyond the document; docs/decisions/0066-beyond.md.
 */
import { BackupEvent } from "#events/share-protection/backup.ts"
import { projection } from "#projections/projection.ts"
import { history, type Version } from "#projections/share-protection/history.ts"
import { type Stored, table } from "#projections/share-protection/table.ts"
import type { BackupId, ShareId } from "#schemas/share-protection/id.ts"

export interface RestoreTestRow {
  /** The share's. */
  readonly id: ShareId
  /** These three are null while no backup of the share was proven. */
  readonly proven_backup_id: BackupId | null
  readonly proven_taken_at: string | null
  readonly proven_at: string | null
  /** These three are null unless the last test failed. */
  readonly failed_backup_id: BackupId | null
  readonly failed_at: string | null
  readonly failure: string | null
}

export interface RestoreTestTables {
  readonly share_protection_restore_test: Stored<RestoreTestRow>
  readonly share_protection_restore_test_history: Version<RestoreTestRow>
}

const tests = table<RestoreTestRow>({
  name: "share_protection_restore_test",
  columns: {
    id: "text",
    proven_backup_id: "text?",
    proven_taken_at: "text?",
    proven_at: "text?",
    failed_backup_id: "text?",
    failed_at: "text?",
    failure: "text?",
  },
})

const past = history({
  name: "share_protection_restore_test_history",
  of: tests,
  by: "id",
  keeps: [
    "id",
    "proven_backup_id",
    "proven_taken_at",
    "proven_at",
    "failed_backup_id",
    "failed_at",
    "failure",
  ],
  indexes: [["valid_to"]],
})

const unproven = { proven_backup_id: null, proven_taken_at: null, proven_at: null }
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
      tests.ensure({ id: share_id, ...unproven, ...faultless }),
      tests.update(share_id, change),
      ...past.record(share_id, at),
    ]
  },
})
