/**
 * Registration: what a new target is made of, and what is asked before it is.
 *
 * Source: document 2 §4 rule 6, §5; DECISIONS, document 2, target create, target Shape B.
 */
import { Effect, Struct } from "effect"
import { Trusts } from "#actors/share-protection/ports/trusts.ts"
import { callerOf, ownDomain, ownProject } from "#gateway/share-protection/checks/ownership.ts"
import { checked } from "#gateway/share-protection/checks/preflight.ts"
import { Deployment } from "#gateway/share-protection/deployment.ts"
import type { KeyRefs, NewTarget } from "#gateway/share-protection/shapes/shape.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { findTargetTemplate } from "#projections/share-protection/target-template.ts"
import type { ProjectId, TargetTemplateId } from "#schemas/share-protection/id.ts"
import { ValidationError } from "#schemas/share-protection/rejection.ts"
import type { CreateTarget } from "#schemas/share-protection/target.ts"
import { nameOf } from "#schemas/share-protection/text.ts"

type Registered = Omit<typeof CreateTarget.Type, "type" | "job_id">

const whole = ({ access_key, secret_key }: KeyRefs) =>
  access_key === undefined || secret_key === undefined ? null : { access_key, secret_key }

/** Whose the target is, and where: the caller's own project, or what a template says. */
const placed = Effect.fnUntraced(function* (asked: NewTarget) {
  const { template_id, endpoint } = asked
  if (template_id !== null) return yield* placedByTemplate(asked, template_id)
  // Without a template the body must have it.
  const place = { endpoint: endpoint ?? "" }
  return { ...place, project_id: yield* ownProject, domain_id: yield* ownDomain }
})

const placedByTemplate = Effect.fnUntraced(function* (
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

/** That the trust may be used: the caller's own, or in Shape B that of the bucket's project. */
export const verified = Effect.fnUntraced(function* (
  trust_id: string | null | undefined,
  project_id: ProjectId | null,
) {
  if (trust_id === null || trust_id === undefined) return
  const { verify, redeem } = yield* Trusts
  const { project_id: own_project, user_id } = yield* callerOf
  // Of a bucket that projects share it is only known that the trust works.
  if (project_id === null) yield* redeem(trust_id)
  else yield* verify(trust_id, { project_id, user_id: own_project ? (user_id ?? null) : null })
})

/** What is to be registered. With `enrollment.dispatch=inline` its bucket has passed all checks. */
export const registered = Effect.fnUntraced(function* (asked: NewTarget) {
  const { user_id, actor } = yield* callerOf
  const { settings } = yield* Deployment
  const { key_refs, ...given } = asked
  const target: Registered = {
    ...given,
    ...(yield* placed(asked)),
    vault_secret_map: key_refs === null ? null : whole(key_refs),
    registered_by: nameOf(user_id ?? actor),
  }
  const { trust_id, vault_secret_map: keys } = target
  yield* verified(trust_id, target.project_id)
  if (settings().enrollment.dispatch === "inline" && trust_id !== null && keys !== null) {
    yield* checked({ ...target, vault_secret_map: keys }, trust_id)
  }
  return target
})
