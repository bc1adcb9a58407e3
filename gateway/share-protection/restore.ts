/** Handlers of restores. Source: document 2 §4 rule 5; DECISIONS, restore. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { requestRestore } from "#actors/share-protection/requests.ts"
import type { ShareProtectionApi } from "#gateway/share-protection/apis/api.ts"
import { ownedBackup } from "#gateway/share-protection/backup.ts"
import { findOwned, ownProject } from "#gateway/share-protection/checks/ownership.ts"
import { createOnce, send } from "#gateway/share-protection/commands.ts"
import { type PageQuery, pageOf } from "#gateway/share-protection/page.ts"
import {
  acceptedResponse,
  jsonResponse,
  pageResponse,
} from "#gateway/share-protection/responses.ts"
import { Transport } from "#gateway/transport.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { findRestore, listRestores } from "#projections/share-protection/restore.ts"
import { type BackupId, JobId, RestoreId } from "#schemas/share-protection/id.ts"
import {
  Conflict,
  ForceRequired,
  NotFound,
  RepositoryLocked,
  ValidationError,
} from "#schemas/share-protection/rejection.ts"
import type { NewRestore } from "#schemas/share-protection/views/restore.ts"

const ownedRestore = Effect.fnUntraced(function* (text: string) {
  const { db } = yield* ShareProtectionModel
  return yield* findOwned("restore", RestoreId, text, (id) => findRestore(db, id))
})

interface ListQuery extends PageQuery {
  readonly backup_id?: BackupId
}

const list = Effect.fnUntraced(function* (query: ListQuery) {
  const { db } = yield* ShareProtectionModel
  const paging = yield* pageOf(query)
  const filter = { project_id: yield* ownProject, backup_id: query.backup_id }
  const listed = yield* listRestores(db, filter, paging)
  return yield* pageResponse("restores", listed, paging.limit, Effect.succeed)
})

const restoreBatch = Effect.fnUntraced(function* (restore_id: RestoreId, request: NewRestore) {
  const { mode = "new_share", sub_path = null, force = false } = request
  const { dry_run = false, plan_hash = null } = request
  if (mode !== "in_place" && (dry_run || plan_hash !== null)) {
    const detail = "body.mode: dry_run and plan_hash require in_place"
    return yield* new ValidationError({ detail })
  }
  if (dry_run && plan_hash !== null) {
    const detail = "body.plan_hash: not allowed together with dry_run"
    return yield* new ValidationError({ detail })
  }
  if (mode === "in_place" && !force && !dry_run) {
    const detail = "A restore in place overwrites the share's files, so it requires force=true."
    return yield* new ForceRequired({ detail })
  }
  const { id: backup_id, project_id, share_id, target_id } = yield* ownedBackup(request.backup_id)
  const job_id = JobId.make((yield* Transport).newId())
  const about = { project_id, backup_id, share_id, target_id, job_id }
  return requestRestore(restore_id, { ...about, mode, sub_path, force, dry_run, plan_hash })
})

const create = Effect.fnUntraced(function* (request: NewRestore) {
  const created = yield* createOnce("restore", (id) =>
    Effect.flatMap(restoreBatch(RestoreId.make(id), request), (batch) =>
      send(batch, [NotFound, Conflict, RepositoryLocked]),
    ),
  )
  const row = yield* ownedRestore(created.id)
  return yield* acceptedResponse("restore", row, row.job_id, created)
})

export const restoreHandlers = (api: ShareProtectionApi) =>
  HttpApiBuilder.group(api, "restores", (handlers) =>
    handlers.handleAll({
      list: ({ query }) => list(query),
      create: ({ payload }) => create(payload),
      get: ({ params }) => Effect.map(ownedRestore(params.id), (row) => jsonResponse(row)),
    }),
  )
