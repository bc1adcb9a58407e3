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
  Schema.isPattern(url_characters, {
    expected: "a URL without characters that must be percent-encoded",
  }),
  Schema.makeFilter((text: string) => {
    const url = URL.canParse(text) ? new URL(text) : undefined
    const is_web = url?.protocol === "https:" || url?.protocol === "http:"
    if (url === undefined || !is_web) return "Expected an https URL"
    if (url.username !== "" || url.password !== "")
      return "Expected a URL without a user or password"
    return url.hash === "" || "Expected a URL without a fragment"
  }),
).annotate({
  documentedAs: {
    type: "string",
    format: "uri",
    maxLength: url_chars_max,
    pattern: "^https://[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,4})?(/[A-Za-z0-9_.~/-]*)?$",
  },
  // A request may have any URL that a browser accepts, and the response repeats it.
  respondedAs: { type: "string", maxLength: url_chars_max },
})

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
  url: WebhookUrl.annotateKey({
    description:
      "The https URL that events are sent to. It cannot have a user, password or fragment.",
  }),
  description: Description.annotateKey({
    description: "A text of your choice, at most 256 characters.",
  }),
  types: Types.annotateKey({
    description: "Types of the events that are sent. An empty list, the default: all types.",
    flag: "type",
  }),
  services: Services.annotateKey({
    description: "Services whose events are sent. An empty list, the default: all services.",
    flag: "service",
  }),
} as const

export const enabled = Schema.optionalKey(Schema.Boolean).annotateKey({
  description: "Whether events are sent. False pauses the webhook, and true enables it again.",
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
  sequence: EventSequence.annotateKey({
    description: "The number of the event, as in the ids of `GET /v1/events`.",
  }),
  event_id: Schema.String.annotateKey({ description: "The `id` of the event." }),
  event_type: Schema.String.annotateKey({ description: "The `type` of the event." }),
  event_subject: Schema.String.annotateKey({ description: "The `subject` of the event." }),
  attempts: Schema.Int.annotateKey({ description: "Number of delivery attempts." }),
  first_failed_at: Instant.annotateKey({ description: "Time of the first failed delivery." }),
  detail: Detail.annotateKey({ description: "Why the last delivery failed." }),
} as const
export const Letter = Schema.Struct(letter_fields)
export type Letter = typeof Letter.Type

/** A webhook as it is stored and shown, without its secret. */
export const webhook_row = {
  id: WebhookId.annotateKey({ description: "The id of the webhook." }),
  ...webhook_fields,
  project_id: Schema.NullOr(Schema.String).annotateKey({
    description: "The project whose events are sent. Null: all projects.",
  }),
  state: WebhookState.annotateKey({
    description:
      "`active`: events are sent. `paused`: its owner paused it. `disabled`: the server " +
      "disabled it, see `reason`.",
  }),
  reason: Schema.NullOr(DisableReason).annotateKey({
    description:
      "Why it is disabled. `gone`: the receiver responded with 410. `failing`: all " +
      "deliveries failed for too long. Otherwise null.",
  }),
  detail: Schema.NullOr(Schema.String).annotateKey({
    description: "The last response before it was disabled. Null if it is not disabled.",
  }),
  secret_version: Schema.Int.annotateKey({
    description: "The version of the secret, which increases with each rotation.",
  }),
  previous_until: Schema.NullOr(Instant).annotateKey({
    description: "Time until which the previous secret also signs. Null if there is none.",
  }),
  created_at: Instant.annotateKey({ description: "Time of creation." }),
  updated_at: Instant.annotateKey({ description: "Time of the last change." }),
} as const

/** An abandoned event as it is stored. */
export const letter_row = {
  webhook_id: WebhookId,
  ...letter_fields,
  given_up_at: Instant.annotateKey({ description: "Time at which delivery was abandoned." }),
  is_redelivering: Schema.Boolean.annotateKey({
    description: "Whether it is being delivered again.",
  }),
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
  /** The time until which the previous secret also signs. */
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
