/**
 * The release before, in whose folder this runs, says how its events look in the log, and which
 * versions its machines and its read models have, as JSON.
 */
import { Schema } from "effect"
import { blueprint as blob_storage } from "#projections/blob-storage/blueprint.ts"
import { blueprint as capital_pressure } from "#projections/capital-pressure/blueprint.ts"
import { blueprint as share_protection } from "#projections/share-protection/blueprint.ts"
import { blueprint as system } from "#projections/system/blueprint.ts"

// Where releases have it, the newest first.
const { deciders } = await import("#server/aggregate-kinds.ts").catch(
  () => import("#verbs/audit-kinds.ts"),
)
const kinds = deciders.map(({ name, event, save, initialState }) => [
  name,
  { ...Schema.toJsonSchemaDocument(event), machine: save(initialState).machine },
])
// A release from before there were webhooks has none of this.
const webhook = await import("#projections/system/webhook-model.ts").catch(() => undefined)
const webhooks = webhook === undefined ? [] : [webhook.blueprint]
const models = [blob_storage, share_protection, capital_pressure, system([]), ...webhooks]
const read_models = models.map(({ service, version }) => [service, version])
console.log(
  JSON.stringify({
    events: Object.fromEntries(kinds),
    read_models: Object.fromEntries(read_models),
  }),
)
