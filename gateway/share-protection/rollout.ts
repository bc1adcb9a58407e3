/** Handlers of rollouts. Source: document 2 §2, §9; DECISIONS, rollouts. */
import { Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { address } from "#actors/commands.ts"
import { default_domain_id } from "#actors/share-protection/fleet/options.ts"
import { Fleet } from "#actors/share-protection/fleet.ts"
import { Images } from "#actors/share-protection/ports/compute.ts"
import { Trusts } from "#actors/share-protection/ports/trusts.ts"
import { Rollout } from "#actors/share-protection/rollout.ts"
import type { ShareProtectionApi } from "#gateway/share-protection/apis/api.ts"
import { findExisting, ownDomain } from "#gateway/share-protection/checks/ownership.ts"
import { caughtUp, createOnce, send } from "#gateway/share-protection/commands.ts"
import { checkBootable } from "#gateway/share-protection/image.ts"
import { type PageQuery, pageOf } from "#gateway/share-protection/page.ts"
import { jsonResponse, pageResponse } from "#gateway/share-protection/responses.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { knownDomains } from "#projections/share-protection/known-domain.ts"
import { findRollout, listRollouts } from "#projections/share-protection/rollout.ts"
import { AllowRollout } from "#schemas/share-protection/fleet.ts"
import { type DomainId, RolloutId } from "#schemas/share-protection/id.ts"
import {
  BackendUnavailable,
  Conflict,
  ValidationError,
} from "#schemas/share-protection/rejection.ts"
import { CreateRollout, type Rollout as RolloutShown } from "#schemas/share-protection/rollout.ts"
import { idText } from "#schemas/share-protection/views/page.ts"

/** A rollout that succeeded without replacing any worker reports this: it may be unintended. */
const nothing_replaced =
  "All workers of these domains already have this image, so none was replaced."

const rolloutView = (row: RolloutShown): RolloutShown => {
  const is_empty = row.state === "succeeded" && row.replaced_workers === 0
  return is_empty ? { ...row, reason: nothing_replaced } : row
}

const anyRollout = Effect.fnUntraced(function* (text: string) {
  const { db } = yield* ShareProtectionModel
  const find = (id: RolloutId) => findRollout(db, id)
  return rolloutView(yield* findExisting("rollout", idText(RolloutId), text, find))
})

const list = Effect.fnUntraced(function* (query: PageQuery) {
  const { db } = yield* ShareProtectionModel
  const paging = yield* pageOf(query)
  const listed = yield* listRollouts(db, paging)
  return yield* pageResponse("rollouts", listed, paging.limit, (row) =>
    Effect.succeed(rolloutView(row)),
  )
})

/** Requires an image that can become a worker. */
const checkImage = Effect.fnUntraced(function* (name: string) {
  const images = yield* Effect.serviceOption(Images)
  if (Option.isNone(images)) {
    const detail = "Images cannot be checked: no compute service is configured."
    return yield* new BackendUnavailable({ detail })
  }
  return yield* checkBootable(images.value, "image", name)
})

/** Requires known domains: a rollout to a misspelt one would do nothing. */
const checkDomains = Effect.fnUntraced(function* (domain_ids: ReadonlyArray<DomainId>) {
  yield* caughtUp
  const { db } = yield* ShareProtectionModel
  const known = yield* knownDomains(db, domain_ids)
  const own = yield* ownDomain
  const unknown = domain_ids.filter(
    (id) => id !== default_domain_id && id !== own && !known.has(id),
  )
  if (unknown.length === 0) return
  const detail =
    `body.domain_ids: no worker, setting or target belongs to ${unknown.join(", ")}; ` +
    `for workers without a domain, use ${default_domain_id}`
  return yield* new ValidationError({ detail })
})

const create = Effect.fnUntraced(function* (request: Omit<typeof CreateRollout.Type, "type">) {
  const created = yield* createOnce("rollout", (id) =>
    Effect.gen(function* () {
      yield* checkImage(request.image)
      yield* checkDomains(request.domain_ids)
      const { worker_project } = yield* (yield* Trusts).service
      const rollout_id = RolloutId.make(id)
      const batch = [
        address(Fleet, worker_project.id, AllowRollout.make({ rollout_id })),
        address(Rollout, rollout_id, CreateRollout.make(request)),
      ]
      return yield* send(batch, [Conflict])
    }),
  )
  return jsonResponse(yield* anyRollout(created.id), { status: 202, position: created.position })
})

export const rolloutHandlers = (api: ShareProtectionApi) =>
  HttpApiBuilder.group(api, "rollouts", (handlers) =>
    handlers.handleAll({
      list: ({ query }) => list(query),
      create: ({ payload }) => create(payload),
      get: ({ params }) => Effect.map(anyRollout(params.id), (row) => jsonResponse(row)),
    }),
  )
