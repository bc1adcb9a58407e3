/**
 * Target templates (Shape B) as tenants and operators see them.
 *
 * Source: document 2 §2 Target template; DECISIONS, document 2, template.
 */
import type { Kysely } from "kysely"
import { TargetTemplateEvent } from "#events/share-protection/target-template.ts"
import { type Place, projection } from "#projections/projection.ts"
import { findRow, listRows, type Page } from "#projections/share-protection/listing.ts"
import { type Stored, table } from "#projections/table.ts"
import type { DomainId, TargetTemplateId } from "#schemas/share-protection/id.ts"
import { TargetTemplate } from "#schemas/share-protection/target-template.ts"

export interface TargetTemplateTables {
  readonly share_protection_target_template: Stored<TargetTemplate>
}

const templates = table({
  name: "share_protection_target_template",
  fields: TargetTemplate.fields,
  indexes: [["domain_id"]],
})

const project = (event: TargetTemplateEvent, { id: template_id, commit: { at } }: Place) => {
  // The stream's own id.
  const id = template_id as TargetTemplateId
  return TargetTemplateEvent.match(event, {
    TargetTemplateCreated: ({ type: _, ...template }) => [
      templates.insert({ id, ...template, created_at: at, updated_at: at }),
    ],
    TargetTemplateUpdated: ({ type: _, ...changes }) => [
      templates.update(id, { ...changes, updated_at: at }),
    ],
    TargetTemplateDeleted: () => [templates.remove(id)],
    // References are counted elsewhere and not part of the view.
    TemplateTargetRegistered: () => [],
    TemplateTargetDeregistered: () => [],
    TemplatePolicyRegistered: () => [],
    TemplatePolicyDeregistered: () => [],
  })
}

export const targetTemplate = projection<TargetTemplateTables, TargetTemplateEvent>({
  part: "share-protection.target-template",
  event: TargetTemplateEvent,
  create: ({ schema }) => templates.create(schema),
  project,
})

export const findTargetTemplate = (db: Kysely<TargetTemplateTables>, id: TargetTemplateId) =>
  findRow(db, templates, id)

/** Oldest first. */
export const listTargetTemplates = (
  db: Kysely<TargetTemplateTables>,
  filter: { readonly domain_id?: DomainId | undefined },
  page: Page,
) => listRows(db, templates, { filter, order: "asc" }, page)
