/** Domains' own settings: who handles them. Source: DECISIONS, document 2, domains. */
import { Effect, Struct } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { address } from "#actors/commands.ts"
import { Domain } from "#actors/share-protection/domain.ts"
import { answer } from "#gateway/share-protection/answer.ts"
import type { ShareProtectionApi } from "#gateway/share-protection/api.ts"
import { existing } from "#gateway/share-protection/ownership.ts"
import { send } from "#gateway/share-protection/sending.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { findDomain } from "#projections/share-protection/domain.ts"
import { ConfigureDomain, type DomainSettings } from "#schemas/share-protection/domain.ts"
import { DomainId } from "#schemas/share-protection/id.ts"

/** What was configured; a domain of which nothing was is not there. */
const shown = Effect.fnUntraced(function* (domain_id: DomainId) {
  const { db } = yield* ShareProtectionModel
  const row = yield* existing("domain", DomainId, domain_id, (id) => findDomain(db, id))
  return Struct.omit(row, ["applied_quotas"])
})

const update = Effect.fnUntraced(function* (domain_id: DomainId, changes: DomainSettings) {
  const position = yield* send([address(Domain, domain_id, ConfigureDomain.make(changes))], [])
  return answer(yield* shown(domain_id), { status: 202, position })
})

export const domainHandlers = (api: ShareProtectionApi) =>
  HttpApiBuilder.group(api, "domains", (handlers) =>
    handlers.handleAll({
      get: ({ params }) => Effect.map(shown(params.domain_id), (row) => answer(row)),
      update: ({ params, payload }) => update(params.domain_id, payload),
    }),
  )
