/**
 * Handlers of policies.
 *
 * Source: document 2 §2 Policy, §4 rules 2 and 3; DECISIONS, document 2, policy.
 */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { address } from "#actors/commands.ts"
import { Policy } from "#actors/share-protection/policy.ts"
import { definePolicy, deletePolicy } from "#actors/share-protection/requests.ts"
import type { ShareProtectionApi } from "#gateway/share-protection/apis/api.ts"
import { findOwned, ownProject } from "#gateway/share-protection/checks/ownership.ts"
import { quotaOf } from "#gateway/share-protection/checks/quota.ts"
import {
  namedBy,
  namedSchedule,
  namedShare,
  namedTarget,
  namedTemplate,
} from "#gateway/share-protection/checks/reference.ts"
import { createOnce, send } from "#gateway/share-protection/commands.ts"
import { Deployment } from "#gateway/share-protection/deployment.ts"
import { type PageQuery, pageOf } from "#gateway/share-protection/page.ts"
import { type Patch, requireUnchanged } from "#gateway/share-protection/patch.ts"
import { emptyResponse, jsonResponse, pageResponse } from "#gateway/share-protection/responses.ts"
import { previewRetention } from "#gateway/share-protection/retention-preview.ts"
import type { NewPolicy, PolicyChanges } from "#gateway/share-protection/shapes/shape.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { findPolicy, listPolicies, type PolicyRow } from "#projections/share-protection/policy.ts"
import { PolicyId, type ShareId, type TargetId } from "#schemas/share-protection/id.ts"
import { UpdatePolicy } from "#schemas/share-protection/policy.ts"
import {
  Conflict,
  NotFound,
  PolicyHasInflightBackup,
  QuotaExceeded,
  ValidationError,
} from "#schemas/share-protection/rejection.ts"

export const ownedPolicy = Effect.fnUntraced(function* (text: string, as_of?: string) {
  const { db } = yield* ShareProtectionModel
  return yield* findOwned("policy", PolicyId, text, (id) => findPolicy(db, id, as_of))
})

const toPolicyView = (row: PolicyRow) =>
  Effect.map(Deployment, ({ shape }) => shape.policy.toView(row))

interface ListQuery extends PageQuery {
  readonly share_id?: ShareId
  readonly target_id?: TargetId
  readonly as_of?: string
}

const list = Effect.fnUntraced(function* (query: ListQuery) {
  const { db } = yield* ShareProtectionModel
  const paging = yield* pageOf(query)
  const { share_id, target_id, as_of } = query
  const filter = { project_id: yield* ownProject, share_id, target_id }
  const listed = yield* listPolicies(db, filter, paging, as_of)
  return yield* pageResponse("policies", listed, paging.limit, toPolicyView)
})

/** The target of a policy's backups, its domain, and the default retention. */
const destination = Effect.fnUntraced(function* ({ target_id, target_template_id }: NewPolicy) {
  if (target_template_id !== null) {
    const { domain_id, default_retention } = yield* namedTemplate(target_template_id)
    return { domain_id, default_retention }
  }
  if (target_id === null) return { domain_id: null, default_retention: null }
  const { domain_id } = yield* namedTarget(target_id)
  return { domain_id, default_retention: null }
})

const policyBatch = Effect.fnUntraced(function* (id: PolicyId, request: NewPolicy) {
  const project_id = yield* ownProject
  const { share_id, ...policy } = request
  const { timezone = "UTC" } = policy
  yield* namedSchedule(policy.schedule, timezone)
  yield* namedShare(project_id, share_id)
  const { domain_id, default_retention } = yield* destination(request)
  const retention = policy.retention ?? default_retention
  if (retention === null) {
    return yield* new ValidationError({ detail: "body.retention: Missing key" })
  }
  const limit = yield* quotaOf(domain_id, "policies")
  const { enabled = true, include_patterns = [], exclude_patterns = [], max_retries = 0 } = policy
  const fields = { enabled, include_patterns, exclude_patterns, max_retries, timezone, retention }
  return definePolicy(share_id, { ...policy, ...fields, id, project_id }, limit)
})

const create = Effect.fnUntraced(function* (request: NewPolicy) {
  const created = yield* createOnce("policy", (id) =>
    Effect.flatMap(policyBatch(PolicyId.make(id), request), (batch) =>
      send(batch, [Conflict, QuotaExceeded, NotFound]).pipe(namedBy("target_id")),
    ),
  )
  const row = yield* ownedPolicy(created.id)
  return jsonResponse(yield* toPolicyView(row), { status: 201, position: created.position })
})

const update = Effect.fnUntraced(function* (text: string, patch: Patch<PolicyChanges>) {
  const row = yield* ownedPolicy(text)
  const { changes } = patch
  yield* requireUnchanged(patch, yield* toPolicyView(row))
  const { schedule, timezone } = { ...row, ...changes }
  yield* namedSchedule(schedule, timezone)
  const command = UpdatePolicy.make({ policy_id: row.id, ...changes })
  const position = yield* send([address(Policy, row.share_id, command)], [NotFound])
  return jsonResponse(yield* toPolicyView(yield* ownedPolicy(text)), { position })
})

const remove = Effect.fnUntraced(function* (text: string) {
  const row = yield* ownedPolicy(text)
  const batch = deletePolicy(row.share_id, row)
  return emptyResponse(yield* send(batch, [NotFound, PolicyHasInflightBackup]))
})

export const policyHandlers = (api: ShareProtectionApi) =>
  HttpApiBuilder.group(api, "policies", (handlers) =>
    handlers.handleAll({
      list: ({ query }) => list(query),
      create: ({ payload }) => create(payload),
      get: ({ params, query }) =>
        Effect.flatMap(ownedPolicy(params.id, query.as_of), toPolicyView).pipe(
          Effect.map((body) => jsonResponse(body)),
        ),
      update: ({ params, payload }) => update(params.id, payload),
      preview: ({ params, payload }) =>
        Effect.flatMap(ownedPolicy(params.id), (policy) => previewRetention(policy, payload)),
      delete: ({ params }) => remove(params.id),
    }),
  )
