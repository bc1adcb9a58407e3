/** Webhooks as requests write them and answers show them. Source: issue 10 §3; decision 0131. */
import { Schema, Struct } from "effect"
import { optional } from "#schemas/fields.ts"
import { PageLimit } from "#schemas/system/audit.ts"
import {
  ChangeWebhook,
  EventSequence,
  enabled,
  letter_fields,
  WebhookId,
  WebhookState,
  webhook_fields,
} from "#schemas/system/webhook.ts"

/** How far its deliverer has come; the last that it saved, which may be a moment old. */
export const WebhookDelivery = Schema.Struct({
  /** Every event up to here was delivered, is a dead letter, is not wanted, or is open. */
  sequence: EventSequence,
  /** Events that were read and not delivered. */
  open: Schema.Int,
  /** Since when every delivery failed; null while they succeed. */
  failing_since: Schema.NullOr(Schema.String),
  last_success_at: Schema.NullOr(Schema.String),
  last_failure: Schema.NullOr(Schema.Struct({ at: Schema.String, detail: Schema.String })),
}).annotate({ identifier: "WebhookDelivery" })
export type WebhookDelivery = typeof WebhookDelivery.Type

const fields = {
  id: WebhookId,
  ...webhook_fields,
  /** Whose events it gets; null: everybody's. */
  project_id: Schema.NullOr(Schema.String),
  state: WebhookState,
  /** Why it is disabled, null where it is not: the reason's name, and the last answer in words. */
  reason: Schema.NullOr(Schema.String),
  detail: Schema.NullOr(Schema.String),
  /** Rises with each new secret. */
  secret_version: Schema.Int,
  /** Until when the secret before signs too. */
  previous_until: Schema.NullOr(Schema.String),
  created_at: Schema.String,
  updated_at: Schema.String,
} as const

export const WebhookView = Schema.Struct(fields).annotate({ identifier: "Webhook" })
export type WebhookView = typeof WebhookView.Type

/** One of them, with how it fares; null before its deliverer has begun. */
export const WebhookDetail = Schema.Struct({
  ...fields,
  delivery: Schema.NullOr(WebhookDelivery),
}).annotate({ identifier: "WebhookDetail" })

/** Its secret is shown this once. */
export const WebhookMade = Schema.Struct({ ...fields, secret: Schema.String }).annotate({
  identifier: "WebhookMade",
})

/** Absent lists are empty: all types, all services. */
export const NewWebhook = Schema.Struct({
  ...optional(webhook_fields),
  url: webhook_fields.url,
  enabled,
  /** Operators choose; absent: the token's own project or, without one, everybody's. */
  project_id: Schema.optionalKey(
    Schema.NullOr(Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(128))),
  ).annotateKey({ description: "Whose events it gets; for operators" }),
  /** Absent: the last there is. */
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

/** What came of a ping. */
export const Ping = Schema.Struct({
  is_delivered: Schema.Boolean,
  /** The answer's status, null where none came. */
  status: Schema.NullOr(Schema.Int),
  detail: Schema.String,
  took_ms: Schema.Int,
}).annotate({ identifier: "WebhookPing" })

export const DeadLetter = Schema.Struct({
  ...letter_fields,
  given_up_at: Schema.String,
  /** Whether it is tried again now. */
  is_redelivering: Schema.Boolean,
}).annotate({ identifier: "DeadLetter" })

const pagination = Schema.Struct({
  limit: Schema.Int,
  /** Items on this page. */
  count: Schema.Int,
  /** Null on the last page. */
  next_marker: Schema.NullOr(Schema.String),
})

export const WebhookPage = Schema.Struct({ webhooks: Schema.Array(WebhookView), pagination })
export const DeadLetterPage = Schema.Struct({
  dead_letters: Schema.Array(DeadLetter),
  pagination,
})

/** How many dead letters are tried again by this. */
export const Redelivery = Schema.Struct({ redelivering: Schema.Int })

export const webhook_page_query = {
  limit: Schema.optionalKey(PageLimit),
  marker: Schema.optionalKey(WebhookId),
}

/** The sequence of a page's last letter. */
const Marker = Schema.String.check(Schema.isPattern(/^\d{1,15}$/))
export const letter_page_query = {
  limit: Schema.optionalKey(PageLimit),
  marker: Schema.optionalKey(Marker),
}
