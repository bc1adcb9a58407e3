/** Handlers of target templates. Source: document 2 §4; DECISIONS, template. */
import { Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { address } from "#actors/commands.ts"
import { createTemplate, deleteTemplate } from "#actors/share-protection/requests.ts"
import * as actor from "#actors/share-protection/target-template.ts"
import { TargetTemplateApi } from "#gateway/share-protection/apis/target-template.ts"
import { findExisting, ownDomain } from "#gateway/share-protection/checks/ownership.ts"
import { createOnce, send } from "#gateway/share-protection/commands.ts"
import { type PageQuery, pageOf } from "#gateway/share-protection/page.ts"
import { type Patch, requireUnchanged } from "#gateway/share-protection/patch.ts"
import { emptyResponse, jsonResponse, pageResponse } from "#gateway/share-protection/responses.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import {
  findTargetTemplate,
  listTargetTemplates,
} from "#projections/share-protection/target-template.ts"
import { nullsOf } from "#schemas/fields.ts"
import { type DomainId, TargetTemplateId } from "#schemas/share-protection/id.ts"
import {
  Conflict,
  Forbidden,
  NotFound,
  TargetHasDependents,
  ValidationError,
} from "#schemas/share-protection/rejection.ts"
import { TargetTemplate, UpdateTargetTemplate } from "#schemas/share-protection/target-template.ts"
import { idText } from "#schemas/share-protection/views/page.ts"
import type {
  NewTargetTemplate,
  TargetTemplateChanges,
} from "#schemas/share-protection/views/target-template.ts"

const domainOf = Effect.flatMap(ownDomain, (domain_id) =>
  domain_id === null
    ? Effect.fail(new Forbidden({ detail: "The token is not scoped to a domain." }))
    : Effect.succeed(domain_id),
)

const ownedTemplate = Effect.fnUntraced(function* (text: string) {
  const { db } = yield* ShareProtectionModel
  const id = idText(TargetTemplateId)
  const row = yield* findExisting("target template", id, text, (id) => findTargetTemplate(db, id))
  const is_own = row.domain_id === (yield* ownDomain)
  return is_own ? row : yield* new NotFound({ detail: "No such target template." })
})

const templatePage = Effect.fnUntraced(function* (query: PageQuery, domain_id?: DomainId) {
  const { db } = yield* ShareProtectionModel
  const paging = yield* pageOf(query)
  const listed = yield* listTargetTemplates(db, { domain_id }, paging)
  return yield* pageResponse("target_templates", listed, paging.limit, Effect.succeed)
})

const create = Effect.fnUntraced(function* (body: typeof NewTargetTemplate.Type) {
  const domain_id = yield* domainOf
  if (body.domain_id !== undefined && body.domain_id !== domain_id) {
    return yield* new ValidationError({ detail: "body.domain_id: must be the domain of the token" })
  }
  const defaults = { ...nullsOf(TargetTemplate.fields), addressing_mode: "path" } as const
  const template = { ...defaults, ...body, domain_id }
  const created = yield* createOnce("target-template", (id) =>
    send(createTemplate(TargetTemplateId.make(id), template), [Conflict]),
  )
  return jsonResponse(yield* ownedTemplate(created.id), { status: 201, position: created.position })
})

const update = Effect.fnUntraced(function* (
  text: string,
  patch: Patch<typeof TargetTemplateChanges.Type>,
) {
  const row = yield* ownedTemplate(text)
  yield* requireUnchanged(patch, row)
  const command = UpdateTargetTemplate.make(patch.changes)
  const position = yield* send([address(actor.TargetTemplate, row.id, command)], [NotFound])
  return jsonResponse(yield* ownedTemplate(text), { position })
})

const remove = Effect.fnUntraced(function* (text: string) {
  const { id, domain_id } = yield* ownedTemplate(text)
  return emptyResponse(yield* send(deleteTemplate(id, domain_id), [NotFound, TargetHasDependents]))
})

const templates = HttpApiBuilder.group(TargetTemplateApi, "target-templates", (handlers) =>
  handlers.handleAll({
    list: ({ query }) => Effect.flatMap(domainOf, (domain_id) => templatePage(query, domain_id)),
    create: ({ payload }) => create(payload),
    get: ({ params }) => Effect.map(ownedTemplate(params.id), (row) => jsonResponse(row)),
    update: ({ params, payload }) => update(params.id, payload),
    delete: ({ params }) => remove(params.id),
  }),
)

const adminTemplates = HttpApiBuilder.group(
  TargetTemplateApi,
  "admin-target-templates",
  (handlers) => handlers.handle("list", ({ query }) => templatePage(query)),
)

export const targetTemplateHandlers = Layer.mergeAll(templates, adminTemplates)
