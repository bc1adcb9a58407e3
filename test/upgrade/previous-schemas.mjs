/**
 * Running in the folder of the previous release, prints its event schemas, and the versions of its
 * machines and read models, as JSON.
 */
import { Schema } from "effect"
import { blueprint as blob_storage } from "#projections/blob-storage/blueprint.ts"
import { blueprint as capital_pressure } from "#projections/capital-pressure/blueprint.ts"
import { blueprint as share_protection } from "#projections/share-protection/blueprint.ts"
import { blueprint as system } from "#projections/system/blueprint.ts"

// Its location by release, newest first.
const { deciders } = await import("#server/aggregate-kinds.ts").catch(
  () => import("#verbs/audit-kinds.ts"),
)
const kinds = deciders.map(({ name, event, save, initialState }) => [
  name,
  { ...Schema.toJsonSchemaDocument(event), machine: save(initialState).machine },
])
// A release without webhooks has no such model.
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
