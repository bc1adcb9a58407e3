/**
 * Registration: the fields of a new target, and the checks before it is created.
 *
 * Source: document 2 §4 rule 6, §5; DECISIONS, document 2, target create, target Shape B.
 */
import { Effect, Struct } from "effect"
import { Trusts } from "#actors/share-protection/ports/trusts.ts"
import { callerOf, ownDomain, ownProject } from "#gateway/share-protection/checks/ownership.ts"
import { runChecks } from "#gateway/share-protection/checks/preflight.ts"
import { Deployment } from "#gateway/share-protection/deployment.ts"
import type { KeyRefs, NewTarget } from "#gateway/share-protection/shapes/shape.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { findTargetTemplate } from "#projections/share-protection/target-template.ts"
import type { ProjectId, TargetTemplateId } from "#schemas/share-protection/id.ts"
import { ValidationError } from "#schemas/share-protection/rejection.ts"
import type { CreateTarget } from "#schemas/share-protection/target.ts"
import { nameOf } from "#schemas/share-protection/text.ts"

type NewTargetFields = Omit<typeof CreateTarget.Type, "type" | "job_id">

const completeKeys = ({ access_key, secret_key }: KeyRefs) =>
  access_key === undefined || secret_key === undefined ? null : { access_key, secret_key }

/** Owner and location of the target: the caller's own project, or those of a template. */
const placementOf = Effect.fnUntraced(function* (request: NewTarget) {
  const { template_id, endpoint } = request
  if (template_id !== null) return yield* templatePlacement(request, template_id)
  // Without a template the body requires it.
  const place = { endpoint: endpoint ?? "" }
  return { ...place, project_id: yield* ownProject, domain_id: yield* ownDomain }
})

const templatePlacement = Effect.fnUntraced(function* (
  { project_id }: NewTarget,
  template_id: TargetTemplateId,
) {
  const domain_id = yield* ownDomain
  const { db } = yield* ShareProtectionModel
  const template = yield* findTargetTemplate(db, template_id)
  if (template === undefined || template.domain_id !== domain_id) {
    return yield* new ValidationError({ detail: "body.template_id: no such template" })
  }
  const { bucket_scheme } = template
  if ((bucket_scheme === "per_project") !== (project_id !== null)) {
    const detail = `body.project_id: the template's buckets are ${bucket_scheme}`
    return yield* new ValidationError({ detail })
  }
  return Struct.pick(template, [
    "addressing_mode",
    "region",
    "ca_cert_ref",
    "endpoint",
    "domain_id",
  ])
})

/** Requires a usable trust: the caller's own, or in Shape B that of the bucket's project. */
export const verifyTrust = Effect.fnUntraced(function* (
  trust_id: string | null | undefined,
  project_id: ProjectId | null,
) {
  if (trust_id === null || trust_id === undefined) return
  const { verify, redeem } = yield* Trusts
  const { project_id: own_project, user_id } = yield* callerOf
  // For a shared bucket it is only known that the trust works.
  if (project_id === null) yield* redeem(trust_id)
  else yield* verify(trust_id, { project_id, user_id: own_project ? (user_id ?? null) : null })
})

/** The new target's fields. With `enrollment.dispatch=inline` its bucket has passed all checks. */
export const newTarget = Effect.fnUntraced(function* (request: NewTarget) {
  const { user_id, actor } = yield* callerOf
  const { settings } = yield* Deployment
  const { key_refs, ...fields } = request
  const target: NewTargetFields = {
    ...fields,
    ...(yield* placementOf(request)),
    vault_secret_map: key_refs === null ? null : completeKeys(key_refs),
    registered_by: nameOf(user_id ?? actor),
  }
  const { trust_id, vault_secret_map: keys } = target
  yield* verifyTrust(trust_id, target.project_id)
  if (settings().enrollment.dispatch === "inline" && trust_id !== null && keys !== null) {
    yield* runChecks({ ...target, vault_secret_map: keys }, trust_id)
  }
  return target
})
