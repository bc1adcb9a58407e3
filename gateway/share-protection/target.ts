/**
 * Targets: who handles their endpoints.
 *
 * Source: document 2 §3 Target, §4 rule 4; DECISIONS, document 2, target create, target Shape B.
 */
import { Effect, Struct } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { address } from "#actors/commands.ts"
import { createTarget, deleteTarget, restartEnrollment } from "#actors/share-protection/requests.ts"
import { Target } from "#actors/share-protection/target.ts"
import { answer, begun, nothing, page } from "#gateway/share-protection/answer.ts"
import type { ShareProtectionApi } from "#gateway/share-protection/apis/api.ts"
import {
  callerOf,
  ownDomain,
  ownedTarget,
  ownProject,
} from "#gateway/share-protection/checks/ownership.ts"
import { preflight } from "#gateway/share-protection/checks/preflight.ts"
import { quotaOf } from "#gateway/share-protection/checks/quota.ts"
import { registered, verified } from "#gateway/share-protection/checks/registration.ts"
import { Deployment } from "#gateway/share-protection/deployment.ts"
import { type Asked, pageOf } from "#gateway/share-protection/page.ts"
import { type Patch, unchanged } from "#gateway/share-protection/patch.ts"
import { caughtUp, once, send } from "#gateway/share-protection/sending.ts"
import type { NewTarget, TargetChanges } from "#gateway/share-protection/shapes/shape.ts"
import { Transport } from "#gateway/transport.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { listJobs } from "#projections/share-protection/job.ts"
import { listTargets, type TargetFilter } from "#projections/share-protection/target.ts"
import { JobId, type ProjectId, TargetId } from "#schemas/share-protection/id.ts"
import {
  Conflict,
  NotFound,
  QuotaExceeded,
  RepositoryLocked,
  TargetHasDependents,
  ValidationError,
} from "#schemas/share-protection/rejection.ts"
import { type TargetRow, UpdateTarget } from "#schemas/share-protection/target.ts"

/** A batch of the log has room for so many jobs beside the target's own streams. */
const waiting_jobs_max = 90

export const shownTarget = (row: TargetRow) =>
  Effect.map(Deployment, ({ shape }) => shape.target.shown(row))

interface ListAsked extends Asked {
  readonly status?: TargetRow["status"]
  readonly project_id?: ProjectId
  readonly as_of?: string
}

export const targetPage = Effect.fnUntraced(function* (query: ListAsked, filter: TargetFilter) {
  const { db } = yield* ShareProtectionModel
  const asked = yield* pageOf(query)
  const { status, as_of } = query
  const listed = yield* listTargets(db, { ...filter, status }, asked, as_of)
  return yield* page("targets", listed, asked.limit, shownTarget)
})

/** A project's own targets; those of a domain's templates for the domain's owner. */
const list = Effect.fnUntraced(function* (query: ListAsked) {
  const { project_id } = yield* callerOf
  const domain_id = yield* ownDomain
  if (project_id !== undefined || domain_id === null) {
    return yield* targetPage(query, { project_id: yield* ownProject })
  }
  return yield* targetPage(query, { domain_id })
})

const create = Effect.fnUntraced(function* (asked: NewTarget) {
  const { newId } = yield* Transport
  const made = yield* once("target", (id) =>
    Effect.gen(function* () {
      const target = { ...(yield* registered(asked)), job_id: JobId.make(newId()) }
      const limit = yield* quotaOf(target.domain_id, "targets")
      const batch = createTarget(TargetId.make(id), target, limit)
      return yield* send(batch, [Conflict, QuotaExceeded, NotFound])
    }),
  ).pipe(
    // The template went while it was asked for.
    Effect.catchIf(
      (error) => error instanceof NotFound,
      () => new ValidationError({ detail: "body.template_id: no such template" }),
    ),
  )
  const row = yield* ownedTarget(made.id)
  return yield* begun("target", yield* shownTarget(row), row.job_id, made)
})

/** Fields by which an enrollment may come out otherwise. */
const enrolling = [
  "endpoint",
  "bucket",
  "trust_id",
  "key_refs",
  "ca_cert_ref",
  "addressing_mode",
  "region",
] as const

const secretsOf = Effect.fnUntraced(function* (
  { access_key_ref, secret_key_ref }: TargetRow,
  { key_refs }: TargetChanges,
) {
  if (key_refs === undefined) return {}
  if (key_refs === null) return { vault_secret_map: null }
  const access_key = key_refs.access_key ?? access_key_ref
  const secret_key = key_refs.secret_key ?? secret_key_ref
  if (access_key === null || secret_key === null) {
    return yield* new ValidationError({ detail: "body: both keys' hrefs are needed" })
  }
  return { vault_secret_map: { access_key, secret_key } }
})

/** Changes the target; after a failed enrollment what bears on it begins another one. */
const update = Effect.fnUntraced(function* (text: string, patch: Patch<TargetChanges>) {
  const row = yield* ownedTarget(text)
  const { changes } = patch
  yield* unchanged(patch, yield* shownTarget(row))
  if (changes.trust_id !== row.trust_id) yield* verified(changes.trust_id, row.project_id)
  const secrets = yield* secretsOf(row, changes)
  const command = UpdateTarget.make({ ...Struct.omit(changes, ["key_refs"]), ...secrets })
  let position = yield* send([address(Target, row.id, command)], [NotFound, Conflict])
  if (row.status === "error" && enrolling.some((field) => field in changes)) {
    const job_id = JobId.make((yield* Transport).newId())
    const batch = restartEnrollment(row.id, row.project_id, job_id)
    position = yield* send(batch, [NotFound, Conflict], "-enroll")
  }
  return answer(yield* shownTarget(yield* ownedTarget(text)), { position })
})

const remove = Effect.fnUntraced(function* (text: string) {
  yield* caughtUp
  const row = yield* ownedTarget(text)
  const { db } = yield* ShareProtectionModel
  const filter = { target_id: row.id, state: "queued" } as const
  const waiting = yield* listJobs(db, filter, { limit: waiting_jobs_max })
  if (waiting.next_marker !== null) {
    const detail = `More than ${waiting_jobs_max} jobs of the target wait for a worker.`
    return yield* new Conflict({ detail })
  }
  const ids = waiting.rows.map(({ id }) => id)
  const batch = deleteTarget(row.id, row, ids)
  return nothing(yield* send(batch, [NotFound, Conflict, RepositoryLocked, TargetHasDependents]))
})

/** Enrolls again after an error; while the enrollment waits, its job is answered. */
const enroll = Effect.fnUntraced(function* (text: string) {
  const before = yield* ownedTarget(text)
  const { position } = yield* ShareProtectionModel
  const made = yield* before.status === "pending"
    ? Effect.map(position, (position) => ({ position }))
    : once("job", (id) =>
        send(restartEnrollment(before.id, before.project_id, JobId.make(id)), [NotFound, Conflict]),
      )
  const row = yield* ownedTarget(text)
  return yield* begun("target", yield* shownTarget(row), row.job_id, made)
})

export const targetHandlers = (api: ShareProtectionApi) =>
  HttpApiBuilder.group(api, "targets", (handlers) =>
    handlers.handleAll({
      list: ({ query }) => list(query),
      create: ({ payload }) => create(payload),
      get: ({ params, query }) =>
        Effect.map(Effect.flatMap(ownedTarget(params.id, query.as_of), shownTarget), (body) =>
          answer(body),
        ),
      update: ({ params, payload }) => update(params.id, payload),
      delete: ({ params }) => remove(params.id),
      preflight: ({ params }) =>
        Effect.map(Effect.flatMap(ownedTarget(params.id), preflight), (body) => answer(body)),
      enroll: ({ params }) => enroll(params.id),
    }),
  )
