/**
 * References: a body may only name resources that exist and belong to the caller. Otherwise the
 * status is 400, because the body is invalid. Source: DECISIONS, document 2, policy, backup create.
 */
import { Effect, Result } from "effect"
import { Shares } from "#actors/share-protection/ports/shares.ts"
import { isZone, parseSchedule } from "#actors/share-protection/processes/schedule.ts"
import { ownDomain, ownedTarget } from "#gateway/share-protection/checks/ownership.ts"
import { caughtUp } from "#gateway/share-protection/commands.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { listTargets } from "#projections/share-protection/target.ts"
import { findTargetTemplate } from "#projections/share-protection/target-template.ts"
import type {
  ProjectId,
  ShareId,
  TargetId,
  TargetTemplateId,
} from "#schemas/share-protection/id.ts"
import { Conflict, NotFound, ValidationError } from "#schemas/share-protection/rejection.ts"

const invalid = (detail: string) => new ValidationError({ detail: `body.${detail}` })

const isNotFound = <E>(error: E): error is Extract<E, NotFound> => error instanceof NotFound

/** Turns a missing resource into an error of this field of the body. */
export const namedBy =
  (field: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.catchIf(effect, isNotFound, ({ detail }) => invalid(`${field}: ${detail}`))

export const namedShare = Effect.fnUntraced(function* (project_id: ProjectId, share_id: ShareId) {
  const share = yield* (yield* Shares).find(project_id, share_id)
  return share ?? (yield* invalid("share_id: No such share."))
})

export const namedTarget = (target_id: TargetId) =>
  ownedTarget(target_id).pipe(namedBy("target_id"))

/** A template of the domain of the caller's project. */
export const namedTemplate = Effect.fnUntraced(function* (id: TargetTemplateId) {
  const { db } = yield* ShareProtectionModel
  const find = findTargetTemplate(db, id)
  const template = (yield* find) ?? (yield* Effect.andThen(caughtUp, find))
  const is_own = template?.domain_id === (yield* ownDomain)
  return template !== undefined && is_own
    ? template
    : yield* invalid("target_template_id: No such template.")
})

/** Maximum number of a template's buckets searched for the project's own. */
const buckets_max = 1000

/** The bucket of a template: the project's own, else the shared one. */
export const bucketOf = Effect.fnUntraced(function* (
  template_id: TargetTemplateId,
  project_id: ProjectId,
) {
  const { db } = yield* ShareProtectionModel
  const own = yield* listTargets(db, { template_id, project_id }, { limit: buckets_max })
  const all = own.rows.length > 0 ? own : yield* listTargets(db, { template_id }, one_page)
  const usable = all.rows.filter((row) => row.project_id === project_id || row.project_id === null)
  const bucket = usable.find(({ status }) => status === "available") ?? usable[0]
  if (bucket !== undefined) return bucket
  return yield* new Conflict({ detail: "No bucket is registered against the policy's template." })
})
const one_page = { limit: buckets_max }

/** Requires a valid schedule; returns its next due time. */
export const namedSchedule = (schedule: string, timezone: string) =>
  Result.match(parseSchedule(schedule, timezone), {
    onFailure: (why) =>
      Effect.fail(invalid(`${isZone(timezone) ? "schedule" : "timezone"}: ${why}`)),
    onSuccess: Effect.succeed,
  })
