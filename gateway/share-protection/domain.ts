/** Handlers of domains' own settings. Source: DECISIONS, document 2, domains. */
import { Effect, Option, Struct } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { address } from "#actors/commands.ts"
import { Domain } from "#actors/share-protection/domain.ts"
import { workersOf } from "#actors/share-protection/fleet/options.ts"
import { Images } from "#actors/share-protection/ports/compute.ts"
import type { ShareProtectionApi } from "#gateway/share-protection/apis/api.ts"
import { findExisting } from "#gateway/share-protection/checks/ownership.ts"
import { caughtUp, send } from "#gateway/share-protection/commands.ts"
import { Deployment } from "#gateway/share-protection/deployment.ts"
import { checkBootable } from "#gateway/share-protection/image.ts"
import { jsonResponse } from "#gateway/share-protection/responses.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { findDomain } from "#projections/share-protection/domain.ts"
import { ConfigureDomain, type DomainSettings } from "#schemas/share-protection/domain.ts"
import { DomainId } from "#schemas/share-protection/id.ts"
import { ValidationError } from "#schemas/share-protection/rejection.ts"

/** The domain's settings; an unconfigured domain is reported as missing. */
const domainView = Effect.fnUntraced(function* (domain_id: DomainId) {
  const { db } = yield* ShareProtectionModel
  const row = yield* findExisting("domain", DomainId, domain_id, (id) => findDomain(db, id))
  return Struct.omit(row, ["applied_quotas"])
})

/**
 * Requires `min_workers` to be at most `max_workers` after the change; a limit that the domain does
 * not set is the configuration's. Concurrent changes are each checked against the previous state;
 * the fleet then obeys the maximum.
 */
const checkWorkerLimits = Effect.fnUntraced(function* (
  domain_id: DomainId,
  changes: DomainSettings,
) {
  if (changes.min_workers === undefined && changes.max_workers === undefined) return
  yield* caughtUp
  const { db } = yield* ShareProtectionModel
  const { conductor } = (yield* Deployment).settings()
  const merged: DomainSettings = { ...(yield* findDomain(db, domain_id)), ...changes }
  const { min_workers, max_workers } = workersOf(domain_id, merged, conductor)
  if (min_workers <= max_workers) return
  const ofConfiguration = (own: number | null | undefined, name: string) =>
    own === null || own === undefined ? ` of conductor.${name}` : ""
  const least = `${min_workers}${ofConfiguration(merged.min_workers, "min_workers")}`
  const most = `${max_workers}${ofConfiguration(merged.max_workers, "max_workers")}`
  const detail = `body: min_workers, ${least}, must not be above max_workers, ${most}`
  return yield* new ValidationError({ detail })
})

/**
 * Requires a new image to be bootable. Without an image service, workers are booted elsewhere, and
 * the problem shows up there.
 */
const checkImage = Effect.fnUntraced(function* ({ worker_boot_image }: DomainSettings) {
  const images = yield* Effect.serviceOption(Images)
  if (typeof worker_boot_image !== "string" || Option.isNone(images)) return
  return yield* checkBootable(images.value, "worker_boot_image", worker_boot_image)
})

const update = Effect.fnUntraced(function* (domain_id: DomainId, changes: DomainSettings) {
  yield* checkWorkerLimits(domain_id, changes)
  yield* checkImage(changes)
  const position = yield* send([address(Domain, domain_id, ConfigureDomain.make(changes))], [])
  return jsonResponse(yield* domainView(domain_id), { status: 202, position })
})

export const domainHandlers = (api: ShareProtectionApi) =>
  HttpApiBuilder.group(api, "domains", (handlers) =>
    handlers.handleAll({
      get: ({ params }) => Effect.map(domainView(params.domain_id), (row) => jsonResponse(row)),
      update: ({ params, payload }) => update(params.domain_id, payload),
    }),
  )
