/**
 * A webhook: sends published events to a subscriber's address.
 *
 * Source: issue 10 §3; Standard Webhooks 1.0.0; decision 0131.
 */
import { Schema } from "effect"
import { optional } from "#schemas/fields.ts"
import { Instant } from "#schemas/instant.ts"
import { message, Token, token_chars_max } from "#schemas/message.ts"

/** A webhook's id: a UUID. */
export const WebhookId = Schema.String.check(
  Schema.isPattern(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/u),
)

/** Maximum length of a URL: proxies and logs do not truncate it. */
export const url_chars_max = 2000
const description_chars_max = 256
/** Maximum number of names in a filter: there are about seventy types, and six services. */
export const types_max = 100
export const services_max = 8
/** Maximum length of an error detail: one line. */
export const detail_chars_max = 256
/** Maximum number of abandoned events per commit: far below its size limit. */
export const letters_max = 100
/**
 * Maximum number of redeliveries in progress: their numbers are in the webhook's snapshot (16 KiB).
 */
export const redeliveries_max = 300

/** RFC 3986 §2: other characters of a URL are percent-encoded. */
const url_characters = /^[\w\-.~:/?#[\]@!$&'()*+,;=%]+$/u

/** Without a user and password, which logs would record, and without a fragment. */
export const WebhookUrl = Schema.String.check(
  Schema.isMaxLength(url_chars_max),
  Schema.isPattern(url_characters),
  Schema.makeFilter((text: string) => {
    const url = URL.canParse(text) ? new URL(text) : undefined
    const is_web = url?.protocol === "https:" || url?.protocol === "http:"
    if (url === undefined || !is_web) return "an https URL is needed"
    if (url.username !== "" || url.password !== "") return "no user or password can be in it"
    return url.hash === "" || "no fragment can be in it"
  }),
)

/**
 * A sequence number of a published event, as in the `id:` lines of GET /v1/events; 0: before the
 * first.
 */
export const EventSequence = Schema.Int.check(
  Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
)

const Description = Schema.String.check(Schema.isMaxLength(description_chars_max))
const Types = Schema.Array(Token).check(Schema.isMaxLength(types_max))
const Services = Schema.Array(Token).check(Schema.isMaxLength(services_max))
const Detail = Schema.String.check(Schema.isMaxLength(detail_chars_max))
const Project = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(2 * token_chars_max))

/** The fields that its owner chooses. Empty lists match all names. */
export const webhook_fields = {
  url: WebhookUrl.annotateKey({ description: "Where events are sent" }),
  description: Description.annotateKey({ description: "What it is for" }),
  types: Types.annotateKey({ description: "Only events of these types", flag: "type" }),
  services: Services.annotateKey({ description: "Only events of these services", flag: "service" }),
} as const

export const enabled = Schema.optionalKey(Schema.Boolean).annotateKey({
  description: "Whether events are sent to it",
})

/**
 * Identifies the key from which its secrets are derived: the first half of a hash of it, in hex.
 */
export const KeyId = Schema.String.check(Schema.isPattern(/^[0-9a-f]{16}$/u))

/** `gone`: the receiver responded with 410. `failing`: all deliveries failed for too long. */
export const DisableReason = Schema.Literals(["gone", "failing"])
export type DisableReason = typeof DisableReason.Type

export const WebhookState = Schema.Literals(["active", "paused", "disabled"])
export type WebhookState = typeof WebhookState.Type

/** An abandoned event. */
const letter_fields = {
  sequence: EventSequence,
  event_id: Schema.String,
  event_type: Schema.String,
  event_subject: Schema.String,
  attempts: Schema.Int,
  first_failed_at: Instant,
  detail: Detail,
} as const
export const Letter = Schema.Struct(letter_fields)
export type Letter = typeof Letter.Type

/** A webhook as it is stored and shown, without its secret. */
export const webhook_row = {
  id: WebhookId,
  ...webhook_fields,
  /** The project whose events it receives; null: all projects. */
  project_id: Schema.NullOr(Schema.String),
  state: WebhookState,
  /** Why it is disabled (null if it is not), and the last response in words. */
  reason: Schema.NullOr(DisableReason),
  detail: Schema.NullOr(Schema.String),
  /** Increases with each new secret. */
  secret_version: Schema.Int,
  /** Until when the previous secret signs, too. */
  previous_until: Schema.NullOr(Instant),
  created_at: Instant,
  updated_at: Instant,
} as const

/** An abandoned event as it is stored. */
export const letter_row = {
  webhook_id: WebhookId,
  ...letter_fields,
  given_up_at: Instant,
  /** Whether it is being redelivered. */
  is_redelivering: Schema.Boolean,
} as const

const Sequences = Schema.Array(EventSequence)

export const CreateWebhook = message("CreateWebhook", {
  ...webhook_fields,
  /** The project whose events it receives; null: all projects, which only operators may request. */
  project_id: Schema.NullOr(Project),
  enabled: Schema.Boolean,
  /** The last event before its first one. */
  after: EventSequence,
  key_id: KeyId,
})
/** Absent fields stay unchanged. */
export const ChangeWebhook = message("ChangeWebhook", {
  ...optional(webhook_fields),
  enabled,
})
export const DisableWebhook = message("DisableWebhook", { reason: DisableReason, detail: Detail })
export const RotateWebhookSecret = message("RotateWebhookSecret", {
  key_id: KeyId,
  /** Until when the previous secret signs, too. */
  previous_until: Instant,
})
/** Sends everything after this event again. */
export const ReplayWebhook = message("ReplayWebhook", { after: EventSequence })
export const GiveUpDeliveries = message("GiveUpDeliveries", {
  letters: Schema.Array(Letter).check(Schema.isMinLength(1), Schema.isMaxLength(letters_max)),
})
export const RedeliverLetters = message("RedeliverLetters", {
  sequences: Sequences.check(Schema.isMinLength(1), Schema.isMaxLength(redeliveries_max)),
})
export const EndRedelivery = message("EndRedelivery", {
  sequence: EventSequence,
  is_delivered: Schema.Boolean,
  detail: Detail,
})
export const DeleteWebhook = message("DeleteWebhook", {})

export const WebhookCommand = Schema.Union([
  CreateWebhook,
  ChangeWebhook,
  DisableWebhook,
  RotateWebhookSecret,
  ReplayWebhook,
  GiveUpDeliveries,
  RedeliverLetters,
  EndRedelivery,
  DeleteWebhook,
])
export type WebhookCommand = typeof WebhookCommand.Type
