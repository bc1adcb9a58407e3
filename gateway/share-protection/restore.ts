/** Restores: who handles their endpoints. Source: document 2 §4 rule 5; DECISIONS, restore. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { requestRestore } from "#actors/share-protection/requests.ts"
import { answer, begun, page } from "#gateway/share-protection/answer.ts"
import type { ShareProtectionApi } from "#gateway/share-protection/apis/api.ts"
import { ownedBackup } from "#gateway/share-protection/backup.ts"
import { owned, ownProject } from "#gateway/share-protection/checks/ownership.ts"
import { type Asked, pageOf } from "#gateway/share-protection/page.ts"
import { once, send } from "#gateway/share-protection/sending.ts"
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
  return yield* owned("restore", RestoreId, text, (id) => findRestore(db, id))
})

interface ListAsked extends Asked {
  readonly backup_id?: BackupId
}

const list = Effect.fnUntraced(function* (query: ListAsked) {
  const { db } = yield* ShareProtectionModel
  const asked = yield* pageOf(query)
  const filter = { project_id: yield* ownProject, backup_id: query.backup_id }
  const listed = yield* listRestores(db, filter, asked)
  return yield* page("restores", listed, asked.limit, Effect.succeed)
})

const requested = Effect.fnUntraced(function* (restore_id: RestoreId, asked: NewRestore) {
  const { mode = "new_share", sub_path = null, force = false } = asked
  const { dry_run = false, plan_hash = null } = asked
  if (mode !== "in_place" && (dry_run || plan_hash !== null)) {
    const detail = "body.mode: Only a restore in place is planned: it needs in_place."
    return yield* new ValidationError({ detail })
  }
  if (dry_run && plan_hash !== null) {
    const detail = "body.plan_hash: A plan is made anew, or kept to, not both."
    return yield* new ValidationError({ detail })
  }
  if (mode === "in_place" && !force && !dry_run) {
    const detail = "A restore in place writes over the share's files: it needs force=true."
    return yield* new ForceRequired({ detail })
  }
  const { id: backup_id, project_id, share_id, target_id } = yield* ownedBackup(asked.backup_id)
  const job_id = JobId.make((yield* Transport).newId())
  const about = { project_id, backup_id, share_id, target_id, job_id }
  return requestRestore(restore_id, { ...about, mode, sub_path, force, dry_run, plan_hash })
})

const create = Effect.fnUntraced(function* (asked: NewRestore) {
  const made = yield* once("restore", (id) =>
    Effect.flatMap(requested(RestoreId.make(id), asked), (batch) =>
      send(batch, [NotFound, Conflict, RepositoryLocked]),
    ),
  )
  const row = yield* ownedRestore(made.id)
  return yield* begun("restore", row, row.job_id, made)
})

export const restoreHandlers = (api: ShareProtectionApi) =>
  HttpApiBuilder.group(api, "restores", (handlers) =>
    handlers.handleAll({
      list: ({ query }) => list(query),
      create: ({ payload }) => create(payload),
      get: ({ params }) => Effect.map(ownedRestore(params.id), (row) => answer(row)),
    }),
  )
