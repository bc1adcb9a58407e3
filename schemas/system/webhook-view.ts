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
  sequence: EventSequence.annotateKey({
    description:
      "Every event up to this number is delivered, a dead letter, filtered out, or counted in " +
      "`open`.",
  }),
  open: Schema.Int.annotateKey({
    description: "Number of events that were read and are not delivered yet.",
  }),
  failing_since: Schema.NullOr(Schema.String).annotateKey({
    description: "Time since which all deliveries have failed. Null if they succeed.",
  }),
  last_success_at: Schema.NullOr(Schema.String).annotateKey({
    description: "Time of the last successful delivery. Null if there was none.",
  }),
  last_failure: Schema.NullOr(
    Schema.Struct({
      at: Schema.String.annotate({ description: "Time of the failure." }),
      detail: Schema.String.annotate({ description: "Why the delivery failed." }),
    }),
  ).annotateKey({ description: "The last failed delivery. Null if there was none." }),
}).annotate({ identifier: "WebhookDelivery" })
export type WebhookDelivery = typeof WebhookDelivery.Type

export const WebhookView = Schema.Struct(webhook_row).annotate({ identifier: "Webhook" })
export type WebhookView = typeof WebhookView.Type

/** A webhook with its delivery status, which is null before its deliverer has started. */
export const WebhookDetail = Schema.Struct({
  ...webhook_row,
  delivery: Schema.NullOr(WebhookDelivery).annotateKey({
    description: "The progress of its deliveries. Null until the first one is prepared.",
  }),
}).annotate({ identifier: "WebhookDetail" })

/** The response with the secret, which is shown only once. */
export const CreatedWebhook = Schema.Struct({
  ...webhook_row,
  secret: Schema.String.annotateKey({
    description: "The secret that signs deliveries. No other response contains it.",
  }),
}).annotate({
  identifier: "CreatedWebhook",
})

/** Absent lists are empty: all types, all services. */
export const NewWebhook = Schema.Struct({
  ...optional(webhook_fields),
  url: webhook_fields.url,
  enabled,
  /** For operators; absent: the token's project, or all projects if it has none. */
  project_id: Schema.optionalKey(
    Schema.NullOr(Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(128))),
  ).annotateKey({
    description:
      "For operators: the project whose events are sent. Null: all projects. The default is the " +
      "project of the token, or all projects if it has none.",
  }),
  /** Absent: the last event. */
  after: Schema.optionalKey(EventSequence).annotateKey({
    description: "The number of the last event that is not sent. The default is the newest event.",
  }),
})
export type NewWebhook = typeof NewWebhook.Type

export const WebhookPatch = Schema.Struct(Struct.omit(ChangeWebhook.fields, ["type"]))
export type WebhookPatch = typeof WebhookPatch.Type

export const NewSecret = Schema.Struct({
  overlap_hours: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 168 })),
  ).annotateKey({
    description: "Hours for which the previous secret also signs: 0 to 168. The default is 24.",
  }),
})

export const NewReplay = Schema.Struct({
  after: EventSequence.annotateKey({
    description: "The number of an event. Every later event is sent again.",
  }),
})

/** The result of a ping. */
export const Ping = Schema.Struct({
  is_delivered: Schema.Boolean.annotateKey({
    description: "Whether the receiver responded with a 2xx status.",
  }),
  status: Schema.NullOr(Schema.Int).annotateKey({
    description: "The status of the response. Null without a response.",
  }),
  detail: Schema.String.annotateKey({ description: "The result in words." }),
  took_ms: Schema.Int.annotateKey({ description: "Milliseconds until the result." }),
}).annotate({ identifier: "WebhookPing" })

export const DeadLetter = Schema.Struct(Struct.omit(letter_row, ["webhook_id"])).annotate({
  identifier: "DeadLetter",
})

const pagination = Schema.Struct({
  limit: Schema.Int.annotateKey({ description: "The limit of the request, or the default." }),
  count: Schema.Int.annotateKey({ description: "Number of items on this page." }),
  next_marker: Schema.NullOr(Schema.String).annotateKey({
    description: "The `marker` of the next page. Null on the last page.",
  }),
}).annotate({ description: "The position of this page in the list." })

export const WebhookPage = Schema.Struct({
  webhooks: Schema.Array(WebhookView).annotate({ description: "The webhooks, oldest first." }),
  pagination,
})
export const DeadLetterPage = Schema.Struct({
  dead_letters: Schema.Array(DeadLetter).annotate({ description: "The dead letters, by number." }),
  pagination,
})

/** The number of dead letters to redeliver. */
export const Redelivery = Schema.Struct({
  redelivering: Schema.Int.annotate({
    description: "Number of events that are being delivered again.",
  }),
})

export const webhook_page_query = {
  limit: Schema.optionalKey(PageLimit).annotateKey({
    description: "Maximum number of webhooks on the page.",
  }),
  marker: Schema.optionalKey(WebhookId).annotateKey({
    description: "The `next_marker` of the previous page.",
  }),
}

/** The sequence of the previous page's last letter. */
const Marker = Schema.String.check(Schema.isPattern(/^\d{1,15}$/u))
export const letter_page_query = {
  limit: Schema.optionalKey(PageLimit).annotateKey({
    description: "Maximum number of dead letters on the page.",
  }),
  marker: Schema.optionalKey(Marker).annotateKey({
    description: "The `next_marker` of the previous page.",
  }),
}
