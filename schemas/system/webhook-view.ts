/** The API's representation of webhooks. Source: issue 10 §3; decision 0131. */
import { Schema, Struct } from "effect"
import { optional } from "#schemas/fields.ts"
import { PageLimit } from "#schemas/system/audit.ts"
import {
  ChangeWebhook,
  EventSequence,
  enabled,
  letter_row,
  WebhookId,
  webhook_fields,
  webhook_row,
} from "#schemas/system/webhook.ts"

/** The progress of its deliverer when it last saved its cursor, which may be a moment ago. */
export const WebhookDelivery = Schema.Struct({
  /** Every event up to here is delivered, a dead letter, not wanted, or open. */
  sequence: EventSequence,
  /** Number of events that were read and not delivered. */
  open: Schema.Int,
  /** When deliveries started to fail; null while they succeed. */
  failing_since: Schema.NullOr(Schema.String),
  last_success_at: Schema.NullOr(Schema.String),
  last_failure: Schema.NullOr(Schema.Struct({ at: Schema.String, detail: Schema.String })),
}).annotate({ identifier: "WebhookDelivery" })
export type WebhookDelivery = typeof WebhookDelivery.Type

export const WebhookView = Schema.Struct(webhook_row).annotate({ identifier: "Webhook" })
export type WebhookView = typeof WebhookView.Type

/** A webhook with its delivery status, which is null before its deliverer has started. */
export const WebhookDetail = Schema.Struct({
  ...webhook_row,
  delivery: Schema.NullOr(WebhookDelivery),
}).annotate({ identifier: "WebhookDetail" })

/** The response with the secret, which is shown only once. */
export const CreatedWebhook = Schema.Struct({ ...webhook_row, secret: Schema.String }).annotate({
  identifier: "WebhookMade",
})

/** Absent lists are empty: all types, all services. */
export const NewWebhook = Schema.Struct({
  ...optional(webhook_fields),
  url: webhook_fields.url,
  enabled,
  /** For operators; absent: the token's project, or all projects if it has none. */
  project_id: Schema.optionalKey(
    Schema.NullOr(Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(128))),
  ).annotateKey({ description: "Whose events it gets; for operators" }),
  /** Absent: the last event. */
  after: Schema.optionalKey(EventSequence).annotateKey({
    description: "The last event that it does not get",
  }),
})
export type NewWebhook = typeof NewWebhook.Type

export const WebhookPatch = Schema.Struct(Struct.omit(ChangeWebhook.fields, ["type"]))
export type WebhookPatch = typeof WebhookPatch.Type

export const NewSecret = Schema.Struct({
  overlap_hours: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 168 })),
  ).annotateKey({ description: "Hours in which the previous secret signs too" }),
})

export const NewReplay = Schema.Struct({
  after: EventSequence.annotateKey({ description: "Send what comes after this event" }),
})

/** The result of a ping. */
export const Ping = Schema.Struct({
  is_delivered: Schema.Boolean,
  /** The response status; null without a response. */
  status: Schema.NullOr(Schema.Int),
  detail: Schema.String,
  took_ms: Schema.Int,
}).annotate({ identifier: "WebhookPing" })

export const DeadLetter = Schema.Struct(Struct.omit(letter_row, ["webhook_id"])).annotate({
  identifier: "DeadLetter",
})

const pagination = Schema.Struct({
  limit: Schema.Int,
  /** Number of items on this page. */
  count: Schema.Int,
  /** Null on the last page. */
  next_marker: Schema.NullOr(Schema.String),
})

export const WebhookPage = Schema.Struct({ webhooks: Schema.Array(WebhookView), pagination })
export const DeadLetterPage = Schema.Struct({
  dead_letters: Schema.Array(DeadLetter),
  pagination,
})

/** The number of dead letters to redeliver. */
export const Redelivery = Schema.Struct({ redelivering: Schema.Int })

export const webhook_page_query = {
  limit: Schema.optionalKey(PageLimit),
  marker: Schema.optionalKey(WebhookId),
}

/** The sequence of the previous page's last letter. */
const Marker = Schema.String.check(Schema.isPattern(/^\d{1,15}$/u))
export const letter_page_query = {
  limit: Schema.optionalKey(PageLimit),
  marker: Schema.optionalKey(Marker),
}
