/**
 * Handlers of backups.
 *
 * Source: document 2 §2 Backup, §4 rule 1; DECISIONS, document 2, backup create, DELETE backup.
 */
import { Clock, DateTime, Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { deleteBackup, requestBackup, undeleteBackup } from "#actors/share-protection/requests.ts"
import type { ShareProtectionApi } from "#gateway/share-protection/apis/api.ts"
import { findOwned, ownProject } from "#gateway/share-protection/checks/ownership.ts"
import { quotaOf } from "#gateway/share-protection/checks/quota.ts"
import {
  bucketOf,
  namedBy,
  namedShare,
  namedTarget,
} from "#gateway/share-protection/checks/reference.ts"
import { caughtUp, createOnce, send } from "#gateway/share-protection/commands.ts"
import { Deployment } from "#gateway/share-protection/deployment.ts"
import { type PageQuery, pageOf } from "#gateway/share-protection/page.ts"
import { ownedPolicy } from "#gateway/share-protection/policy.ts"
import {
  acceptedResponse,
  emptyResponse,
  jsonResponse,
  pageResponse,
} from "#gateway/share-protection/responses.ts"
import type { NewBackup } from "#gateway/share-protection/shapes/shape.ts"
import { Transport } from "#gateway/transport.ts"
import { type BackupRow, findBackup, listBackups } from "#projections/share-protection/backup.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import type { PolicyRow } from "#projections/share-protection/policy.ts"
import { findTarget } from "#projections/share-protection/target.ts"
import type { BackupStatus } from "#schemas/share-protection/backup.ts"
import {
  BackupId,
  JobId,
  type PolicyId,
  type ShareId,
  type TargetId,
} from "#schemas/share-protection/id.ts"
import {
  Conflict,
  NotFound,
  QuotaExceeded,
  RepositoryLocked,
  ValidationError,
} from "#schemas/share-protection/rejection.ts"

export const ownedBackup = Effect.fnUntraced(function* (text: string) {
  const { db } = yield* ShareProtectionModel
  return yield* findOwned("backup", BackupId, text, (id) => findBackup(db, id))
})

const toBackupView = (row: BackupRow) =>
  Effect.map(Deployment, ({ shape }) => shape.backup.toView(row))

interface ListQuery extends PageQuery {
  readonly share_id?: ShareId
  readonly target_id?: TargetId
  readonly target_bucket_id?: TargetId
  readonly policy_id?: PolicyId
  readonly status?: BackupStatus
  readonly include_expired?: boolean
}

const list = Effect.fnUntraced(function* (query: ListQuery) {
  const { db } = yield* ShareProtectionModel
  const paging = yield* pageOf(query)
  const { share_id, policy_id, status, include_expired } = query
  const target_id = query.target_id ?? query.target_bucket_id
  const project_id = yield* ownProject
  const filter = { project_id, share_id, target_id, policy_id, status, include_expired }
  return yield* pageResponse(
    "backups",
    yield* listBackups(db, filter, paging),
    paging.limit,
    toBackupView,
  )
})

const wrong = (detail: string) => new ValidationError({ detail })

/** The target of the backup: the one in the body, which must match the policy's. */
const destination = Effect.fnUntraced(function* (request: NewBackup, policy: PolicyRow | null) {
  const { target_id } = request
  if (policy !== null && policy.share_id !== request.share_id) {
    return yield* wrong("body.policy_id: The policy belongs to another share.")
  }
  if (policy?.target_template_id) {
    return yield* bucketOf(policy.target_template_id, policy.project_id)
  }
  const destination_id = target_id ?? policy?.target_id
  if (!destination_id) return yield* wrong("body.target_id: Missing key")
  if (policy !== null && policy.target_id !== destination_id) {
    return yield* wrong("body.target_id: The policy uses another target.")
  }
  return yield* namedTarget(destination_id)
})

const backupBatch = Effect.fnUntraced(function* (backup_id: BackupId, body: NewBackup) {
  const project_id = yield* ownProject
  const { share_id, crash_consistent } = body
  yield* namedShare(project_id, share_id)
  const policy =
    body.policy_id === null ? null : yield* ownedPolicy(body.policy_id).pipe(namedBy("policy_id"))
  const target = yield* destination(body, policy)
  const limit = yield* quotaOf(target.domain_id, "backups")
  const request = {
    backup_id,
    project_id,
    share_id,
    target_id: target.id,
    tick: null,
    job_id: JobId.make((yield* Transport).newId()),
    policy_id: policy?.id ?? null,
    crash_consistent_wanted: crash_consistent,
    max_retries: policy?.max_retries ?? 0,
  }
  return requestBackup(request, limit)
})

const create = Effect.fnUntraced(function* (request: NewBackup) {
  const created = yield* createOnce("backup", (id) =>
    Effect.flatMap(backupBatch(BackupId.make(id), request), (batch) =>
      send(batch, [Conflict, QuotaExceeded, RepositoryLocked, NotFound]).pipe(namedBy("target_id")),
    ),
  )
  const row = yield* ownedBackup(created.id)
  return yield* acceptedResponse("backup", yield* toBackupView(row), row.job_id ?? "", created)
})

const undelete_rejections = [NotFound, Conflict, QuotaExceeded, RepositoryLocked] as const

/** A job checks whether the snapshot is recoverable: until then the backup stays expired. */
const undelete = Effect.fnUntraced(function* (text: string) {
  const { db } = yield* ShareProtectionModel
  const { id: backup_id, project_id, share_id, target_id } = yield* ownedBackup(text)
  const target = yield* findTarget(db, target_id)
  const limit = yield* quotaOf(target?.domain_id ?? null, "backups")
  const about = { backup_id, project_id, share_id, target_id }
  const created = yield* createOnce("job", (id) =>
    send(undeleteBackup(JobId.make(id), about, limit), undelete_rejections),
  )
  const row = yield* ownedBackup(text)
  return yield* acceptedResponse("backup", yield* toBackupView(row), created.id, created)
})

/** A separate job forgets the snapshot of a restorable backup. */
const remove = Effect.fnUntraced(function* (text: string) {
  // It may have expired a moment ago.
  yield* caughtUp
  const row = yield* ownedBackup(text)
  const { id: backup_id, status, engine_snapshot_id } = row
  const has_snapshot = status === "available" && engine_snapshot_id !== null
  const job_id = JobId.make((yield* Transport).newId())
  const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
  const what = {
    expired: status === "expired",
    ...(has_snapshot ? { forget: { backup_id, engine_snapshot_id, job_id } } : {}),
  }
  return emptyResponse(yield* send(deleteBackup(backup_id, row, what, at), [NotFound, Conflict]))
})

export const backupHandlers = (api: ShareProtectionApi) =>
  HttpApiBuilder.group(api, "backups", (handlers) =>
    handlers.handleAll({
      list: ({ query }) => list(query),
      create: ({ payload }) => create(payload),
      get: ({ params }) =>
        Effect.flatMap(ownedBackup(params.id), toBackupView).pipe(
          Effect.map((body) => jsonResponse(body)),
        ),
      undelete: ({ params }) => undelete(params.id),
      delete: ({ params }) => remove(params.id),
    }),
  )
