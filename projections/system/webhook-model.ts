/**
 * The webhooks' read model. It has a database of its own: the system model reads the whole log and
 * may be far behind, while this one has little to read.
 */
import { Context, Layer } from "effect"
import { type Blueprint, type ReadModel, readModel } from "#projections/read-model.ts"
import { type WebhookTables, webhook } from "#projections/system/webhook.ts"

export const blueprint: Blueprint<WebhookTables> = {
  service: "system-webhook",
  version: 1,
  part: webhook.part,
  projections: [webhook],
}

export class WebhookModel extends Context.Service<WebhookModel, ReadModel<WebhookTables>>()(
  "projections/WebhookModel",
) {
  /** Follows the log for the lifetime of the layer. */
  static readonly layer = Layer.effect(this, readModel(blueprint))
}
