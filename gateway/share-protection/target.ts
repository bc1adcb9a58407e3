/**
 * Handlers of targets.
 *
 * Source: document 2 §3 Target, §4 rule 4; DECISIONS, document 2, target create, target Shape B.
 */
import { Effect, Struct } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { address } from "#actors/commands.ts"
import { createTarget, deleteTarget, restartEnrollment } from "#actors/share-protection/requests.ts"
import { Target } from "#actors/share-protection/target.ts"
import type { ShareProtectionApi } from "#gateway/share-protection/apis/api.ts"
import {
  callerOf,
  ownDomain,
  ownedTarget,
  ownProject,
} from "#gateway/share-protection/checks/ownership.ts"
import { preflight } from "#gateway/share-protection/checks/preflight.ts"
import { quotaOf } from "#gateway/share-protection/checks/quota.ts"
import { newTarget, verifyTrust } from "#gateway/share-protection/checks/registration.ts"
import { caughtUp, createOnce, send } from "#gateway/share-protection/commands.ts"
import { Deployment } from "#gateway/share-protection/deployment.ts"
import { type PageQuery, pageOf } from "#gateway/share-protection/page.ts"
import { type Patch, requireUnchanged } from "#gateway/share-protection/patch.ts"
import {
  acceptedResponse,
  emptyResponse,
  jsonResponse,
  pageResponse,
} from "#gateway/share-protection/responses.ts"
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

/** Maximum number of jobs in one batch of the log, in addition to the target's own streams. */
const waiting_jobs_max = 90

export const targetView = (row: TargetRow) =>
  Effect.map(Deployment, ({ shape }) => shape.target.toView(row))

interface ListQuery extends PageQuery {
  readonly status?: TargetRow["status"]
  readonly project_id?: ProjectId
  readonly as_of?: string
}

export const targetPage = Effect.fnUntraced(function* (query: ListQuery, filter: TargetFilter) {
  const { db } = yield* ShareProtectionModel
  const paging = yield* pageOf(query)
  const { status, as_of } = query
  const listed = yield* listTargets(db, { ...filter, status }, paging, as_of)
  return yield* pageResponse("targets", listed, paging.limit, targetView)
})

/** A project's own targets, or those of a domain's templates for the domain's owner. */
const list = Effect.fnUntraced(function* (query: ListQuery) {
  const { project_id } = yield* callerOf
  const domain_id = yield* ownDomain
  if (project_id !== undefined || domain_id === null) {
    return yield* targetPage(query, { project_id: yield* ownProject })
  }
  return yield* targetPage(query, { domain_id })
})

const create = Effect.fnUntraced(function* (request: NewTarget) {
  const { newId } = yield* Transport
  const created = yield* createOnce("target", (id) =>
    Effect.gen(function* () {
      const target = { ...(yield* newTarget(request)), job_id: JobId.make(newId()) }
      const limit = yield* quotaOf(target.domain_id, "targets")
      const batch = createTarget(TargetId.make(id), target, limit)
      return yield* send(batch, [Conflict, QuotaExceeded, NotFound])
    }),
  ).pipe(
    // The template was deleted during the request.
    Effect.catchIf(
      (error) => error instanceof NotFound,
      () => new ValidationError({ detail: "body.template_id: no such template" }),
    ),
  )
  const row = yield* ownedTarget(created.id)
  return yield* acceptedResponse("target", yield* targetView(row), row.job_id, created)
})

/** Fields that affect the result of an enrollment. */
const enrollment_fields = [
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
    return yield* new ValidationError({ detail: "body: the hrefs of both keys are required" })
  }
  return { vault_secret_map: { access_key, secret_key } }
})

/**
 * Updates the target; after a failed enrollment, a change to one of its fields starts another one.
 */
const update = Effect.fnUntraced(function* (text: string, patch: Patch<TargetChanges>) {
  const row = yield* ownedTarget(text)
  const { changes } = patch
  yield* requireUnchanged(patch, yield* targetView(row))
  if (changes.trust_id !== row.trust_id) yield* verifyTrust(changes.trust_id, row.project_id)
  const secrets = yield* secretsOf(row, changes)
  const command = UpdateTarget.make({ ...Struct.omit(changes, ["key_refs"]), ...secrets })
  let position = yield* send([address(Target, row.id, command)], [NotFound, Conflict])
  if (row.status === "error" && enrollment_fields.some((field) => field in changes)) {
    const job_id = JobId.make((yield* Transport).newId())
    const batch = restartEnrollment(row.id, row.project_id, job_id)
    position = yield* send(batch, [NotFound, Conflict], "-enroll")
  }
  return jsonResponse(yield* targetView(yield* ownedTarget(text)), { position })
})

const remove = Effect.fnUntraced(function* (text: string) {
  yield* caughtUp
  const row = yield* ownedTarget(text)
  const { db } = yield* ShareProtectionModel
  const filter = { target_id: row.id, state: "queued" } as const
  const waiting = yield* listJobs(db, filter, { limit: waiting_jobs_max })
  if (waiting.next_marker !== null) {
    const detail = `More than ${waiting_jobs_max} jobs of the target are queued. Cancel some first.`
    return yield* new Conflict({ detail })
  }
  const ids = waiting.rows.map(({ id }) => id)
  const batch = deleteTarget(row.id, row, ids)
  return emptyResponse(
    yield* send(batch, [NotFound, Conflict, RepositoryLocked, TargetHasDependents]),
  )
})

/** Enrolls again after an error; while the enrollment is queued, returns its job. */
const enroll = Effect.fnUntraced(function* (text: string) {
  const before = yield* ownedTarget(text)
  const { position } = yield* ShareProtectionModel
  const created = yield* before.status === "pending"
    ? Effect.map(position, (position) => ({ position }))
    : createOnce("job", (id) =>
        send(restartEnrollment(before.id, before.project_id, JobId.make(id)), [NotFound, Conflict]),
      )
  const row = yield* ownedTarget(text)
  return yield* acceptedResponse("target", yield* targetView(row), row.job_id, created)
})

export const targetHandlers = (api: ShareProtectionApi) =>
  HttpApiBuilder.group(api, "targets", (handlers) =>
    handlers.handleAll({
      list: ({ query }) => list(query),
      create: ({ payload }) => create(payload),
      get: ({ params, query }) =>
        Effect.map(Effect.flatMap(ownedTarget(params.id, query.as_of), targetView), (body) =>
          jsonResponse(body),
        ),
      update: ({ params, payload }) => update(params.id, payload),
      delete: ({ params }) => remove(params.id),
      preflight: ({ params }) =>
        Effect.map(Effect.flatMap(ownedTarget(params.id), preflight), (body) => jsonResponse(body)),
      enroll: ({ params }) => enroll(params.id),
    }),
  )
