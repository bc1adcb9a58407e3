/** Restores as tenants see them. Source: document 2 §2 Restore; DECISIONS, document 2, restore. */
import type { Kysely } from "kysely"
import { RestoreEvent } from "#events/share-protection/restore.ts"
import { type Place, projection } from "#projections/projection.ts"
import { findRow, listRows, type Page } from "#projections/share-protection/listing.ts"
import { type Stored, table } from "#projections/share-protection/table.ts"
import type {
  BackupId,
  JobId,
  ProjectId,
  RestoreId,
  ShareId,
  TargetId,
} from "#schemas/share-protection/id.ts"
import type { RestoreMode, RestorePlan, RestoreStatus } from "#schemas/share-protection/restore.ts"

interface RestoreRow {
  readonly id: RestoreId
  readonly project_id: ProjectId
  readonly backup_id: BackupId
  /** The share that was backed up. */
  readonly share_id: ShareId
  readonly target_id: TargetId
  readonly mode: RestoreMode
  readonly sub_path: string | null
  readonly force: boolean
  /** Whether it only plans. */
  readonly dry_run: boolean
  readonly plan_hash: string | null
  readonly status: RestoreStatus
  /** These are null until it is available, the share in place too. */
  readonly new_share_id: ShareId | null
  readonly files: number | null
  readonly bytes: number | null
  /** Of one in place, what the backup could not read: that stays. */
  readonly left_alone: ReadonlyArray<string> | null
  /** What it would do, of one that only plans. */
  readonly plan: RestorePlan | null
  /** Why it is in error. */
  readonly reason: string | null
  readonly job_id: JobId
  readonly created_at: string
  readonly updated_at: string
}

export interface RestoreTables {
  readonly share_protection_restore: Stored<RestoreRow>
}

const restores = table<RestoreRow>({
  name: "share_protection_restore",
  columns: {
    id: "text",
    project_id: "text",
    backup_id: "text",
    share_id: "text",
    target_id: "text",
    mode: "text",
    sub_path: "text?",
    force: "boolean",
    dry_run: "boolean",
    plan_hash: "text?",
    status: "text",
    new_share_id: "text?",
    files: "integer?",
    bytes: "integer?",
    left_alone: "json?",
    plan: "json?",
    reason: "text?",
    job_id: "text",
    created_at: "text",
    updated_at: "text",
  },
  indexes: [["backup_id"], ["project_id"]],
})

const project = (event: RestoreEvent, { id: restore_id, commit: { at } }: Place) => {
  // The stream's own id.
  const id = restore_id as RestoreId
  const update = (values: Partial<RestoreRow>) => [
    restores.update(id, { ...values, updated_at: at }),
  ]
  return RestoreEvent.match(event, {
    RestoreRequested: ({ type: _, ...request }) => [
      restores.insert({
        id,
        ...request,
        status: "pending",
        reason: null,
        new_share_id: null,
        files: null,
        bytes: null,
        left_alone: null,
        plan: null,
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
