/** Events of a webhook. Stream: system.webhook.<id>. */
import { Schema, Struct } from "effect"
import { message } from "#schemas/message.ts"
import {
  ChangeWebhook,
  CreateWebhook,
  DisableWebhook,
  EndRedelivery,
  GiveUpDeliveries,
  RedeliverLetters,
  ReplayWebhook,
  RotateWebhookSecret,
} from "#schemas/system/webhook.ts"

export const WebhookCreated = message("WebhookCreated", Struct.omit(CreateWebhook.fields, ["type"]))
/** Contains only the changed fields. */
export const WebhookChanged = message(
  "WebhookChanged",
  Struct.omit(ChangeWebhook.fields, ["type", "enabled"]),
)
/** Its owner enables delivery again, from where it stopped. */
export const WebhookEnabled = message("WebhookEnabled", {})
/** Its owner pauses delivery. */
export const WebhookPaused = message("WebhookPaused", {})
/** The deliverer disabled it: its address no longer exists, or deliveries have failed for days. */
export const WebhookDisabled = message(
  "WebhookDisabled",
  Struct.omit(DisableWebhook.fields, ["type"]),
)
/** It signs with a new secret and, for a while, also with the previous one. */
export const WebhookSecretRotated = message(
  "WebhookSecretRotated",
  Struct.omit(RotateWebhookSecret.fields, ["type"]),
)
/** Everything after an event is sent again. */
export const WebhookReplayStarted = message(
  "WebhookReplayStarted",
  Struct.omit(ReplayWebhook.fields, ["type"]),
)
/** Events whose retries are exhausted: they are dead letters now. */
export const WebhookDeliveriesAbandoned = message(
  "WebhookDeliveriesAbandoned",
  Struct.omit(GiveUpDeliveries.fields, ["type"]),
)
/** Dead letters are redelivered. */
export const WebhookRedeliveryStarted = message(
  "WebhookRedeliveryStarted",
  Struct.omit(RedeliverLetters.fields, ["type"]),
)
/** One of them was delivered, or remains a dead letter. */
export const WebhookRedeliveryEnded = message(
  "WebhookRedeliveryEnded",
  Struct.omit(EndRedelivery.fields, ["type"]),
)
export const WebhookDeleted = message("WebhookDeleted", {})

export const WebhookEvent = Schema.Union([
  WebhookCreated,
  WebhookChanged,
  WebhookEnabled,
  WebhookPaused,
  WebhookDisabled,
  WebhookSecretRotated,
  WebhookReplayStarted,
  WebhookDeliveriesAbandoned,
  WebhookRedeliveryStarted,
  WebhookRedeliveryEnded,
  WebhookDeleted,
]).pipe(Schema.toTaggedUnion("type"))
export type WebhookEvent = typeof WebhookEvent.Type
