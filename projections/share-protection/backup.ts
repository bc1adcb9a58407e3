/**
 * Backups as tenants see them, and which of them were restorable at any time.
 *
 * Source: document 2 §2 Backup, §3 Backup, §4 rules 1 and 3; DECISIONS, document 2, backup status.
 */
import { Effect, type Schema } from "effect"
import { type Kysely, sql } from "kysely"
import { BackupEvent } from "#events/share-protection/backup.ts"
import { type Place, projection } from "#projections/projection.ts"
import { history, type Version } from "#projections/share-protection/history.ts"
import { findRow, listRows, type Page } from "#projections/share-protection/listing.ts"
import { statement } from "#projections/statement.ts"
import { type Stored, table } from "#projections/table.ts"
import { type BackupStatus, backup_row } from "#schemas/share-protection/backup.ts"
import type {
  BackupId,
  PolicyId,
  ProjectId,
  ShareId,
  TargetId,
} from "#schemas/share-protection/id.ts"

export type BackupRow = Schema.Struct<typeof backup_row>["Type"]

/** Fields of a backup used by usage and coverage. */
type Restorable = Pick<
  BackupRow,
  "id" | "project_id" | "share_id" | "target_id" | "domain_id" | "bytes" | "taken_at"
>

export interface BackupTables {
  readonly share_protection_backup: Stored<BackupRow>
  readonly share_protection_backup_history: Version<Restorable>
}

const is_shown_by_default = "status <> 'expired'"

const backups = table({
  name: "share_protection_backup",
  fields: backup_row,
  indexes: [["share_id"], ["policy_id"], ["target_id"], ["project_id"]],
  usual: is_shown_by_default,
})

/** Versions while a backup is available. */
const past = history({
  name: "share_protection_backup_history",
  of: backups,
  by: "id",
  keeps: ["id", "project_id", "share_id", "target_id", "domain_id", "bytes", "taken_at"],
  indexes: [
    ["project_id", "valid_to"],
    ["domain_id", "valid_to"],
    ["share_id", "valid_to"],
  ],
})

const setDomain = statement<{
  share_protection_backup: Pick<BackupRow, "id" | "domain_id">
}>()<Pick<BackupRow, "id" | "target_id">>((db, { id, target_id }) =>
  db
    .updateTable("share_protection_backup")
    .where("id", "=", id)
    .set({
      domain_id: sql`(select domain_id from share_protection_target where id = ${target_id})`,
    }),
)

/** Deleting a policy keeps its finished backups. Source: document 2 §4 rule 3. */
export const detachBackups = statement<{
  share_protection_backup: Pick<BackupRow, "policy_id">
}>()<{ readonly policy_id: PolicyId }>((db, { policy_id }) =>
  db
    .updateTable("share_protection_backup")
    .where("policy_id", "=", policy_id)
    .set({ policy_id: null }),
)

/** Every available backup of a target is locked at least as long as its repository. */
export const extendProtection = statement<{
  share_protection_backup: Pick<BackupRow, "target_id" | "status" | "protected_until">
}>()<{ readonly target_id: TargetId; readonly protected_until: string }>(
  (db, { target_id, protected_until }) =>
    db
      .updateTable("share_protection_backup")
      .where("target_id", "=", target_id)
      .where("status", "=", "available")
      .where(sql<boolean>`coalesce(protected_until, '') < ${protected_until}`)
      .set({ protected_until }),
)

/** The lock state at expiry applies to the deleted data. */
const noteRecoverable = statement<{
  share_protection_backup: Pick<BackupRow, "id" | "protected_until" | "recoverable_until">
}>()<Pick<BackupRow, "id">>((db, { id }) =>
  db
    .updateTable("share_protection_backup")
    .where("id", "=", id)
    .set({ recoverable_until: sql`protected_until` }),
)

const unmade = {
  recoverable_until: null,
  kept: false,
  engine_snapshot_id: null,
  crash_consistent: null,
  partial: null,
  protected_until: null,
  bytes: null,
  stored_bytes: null,
  files: null,
  reason: null,
  taken_at: null,
  completed_at: null,
  expired_at: null,
}

const project = (event: BackupEvent, { id: backup_id, commit: { at } }: Place) => {
  // The stream's own id.
  const id = backup_id as BackupId
  const update = (values: Partial<BackupRow>) => backups.update(id, { ...values, updated_at: at })
  const insert = (row: Omit<BackupRow, "id" | "domain_id" | "created_at" | "updated_at">) => [
    backups.insert({ id, ...row, domain_id: null, created_at: at, updated_at: at }),
    setDomain({ id, target_id: row.target_id }),
  ]
  return BackupEvent.match(event, {
    BackupRequested: ({ type: _, crash_consistent_wanted: _wanted, ...request }) =>
      insert({ ...unmade, ...request, status: "creating" }),
    BackupQueued: () => [update({ status: "queued" })],
    BackupStarted: () => [update({ status: "running" })],
    BackupCompleted: ({ type: _, unread: _unread, ...snapshot }) => [
      update({ ...snapshot, status: "available", completed_at: at }),
      ...past.record(id, at),
    ],
    BackupFailed: ({ reason }) => [update({ status: "error", reason })],
    BackupRetried: () => [update({ status: "queued", reason: null })],
    BackupExpired: () => [
      update({ status: "expired", expired_at: at }),
      noteRecoverable({ id }),
      ...past.end(id, at),
    ],
    BackupDeleted: () => [backups.remove(id), ...past.end(id, at)],
    BackupAdopted: ({ type: _, ...adopted }) => [
      ...insert({ ...unmade, ...adopted, job_id: null, status: "available", completed_at: at }),
      ...past.record(id, at),
    ],
    BackupLost: ({ reason }) => [
      update({ ...unmade, status: "error", reason }),
      ...past.end(id, at),
    ],
    BackupUndeleted: ({ protected_until }) => [
      update({
        status: "available",
        kept: true,
        protected_until,
        expired_at: null,
        recoverable_until: null,
      }),
      ...past.record(id, at),
    ],
    // It stays expired until it is restored.
    BackupUndeleteStarted: () => [],
    BackupUndeleteFailed: () => [],
    // The share's coverage shows this.
    BackupRestoreTested: () => [],
    BackupRestoreTestFailed: () => [],
    // Internal between the backup and its restores.
    BackupRestoreStarted: () => [],
    BackupRestoreFinished: () => [],
  })
}

export const backup = projection<BackupTables, BackupEvent>({
  part: "share-protection.backup",
  event: BackupEvent,
  create: ({ schema }) => [...backups.create(schema), ...past.create(schema)],
  project,
})

export const findBackup = (db: Kysely<BackupTables>, id: BackupId) => findRow(db, backups, id)

/** The fields that a retention uses. */
export interface RetainableRow {
  readonly backup_id: BackupId
  readonly taken_at: string
  readonly kept: boolean
  readonly bytes: number | null
  readonly stored_bytes: number | null
}

/** The available backups of a policy, up to a limit, in no order. */
export const listRetainable = (
  db: Kysely<BackupTables>,
  policy_id: PolicyId,
  rows_max: number,
): Effect.Effect<ReadonlyArray<RetainableRow>> =>
  Effect.promise(async () => {
    const rows = await db
      .selectFrom("share_protection_backup")
      .select(["id as backup_id", "taken_at", "kept", "bytes", "stored_bytes"])
      .where("policy_id", "=", policy_id)
      .where("status", "=", "available")
      .limit(rows_max)
      .execute()
    return rows.map((row) => ({ ...row, taken_at: row.taken_at ?? "", kept: row.kept === 1 }))
  })

interface BackupFilter {
  readonly project_id?: ProjectId | undefined
  readonly share_id?: ShareId | undefined
  readonly target_id?: TargetId | undefined
  readonly policy_id?: PolicyId | undefined
  /** `expired` lists expired backups only. */
  readonly status?: BackupStatus | undefined
  /** Absent or false: expired backups are hidden, unless the status selects them. */
  readonly include_expired?: boolean | undefined
}

/** Newest first. */
export const listBackups = (
  db: Kysely<BackupTables>,
  { include_expired = false, ...filter }: BackupFilter,
  page: Page,
) => {
  const all = include_expired || filter.status === "expired"
  const also = all ? [] : [sql.raw(is_shown_by_default)]
  return listRows(db, backups, { filter, order: "desc", also }, page)
}
