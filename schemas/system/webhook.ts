/**
 * A webhook: published events sent to an address of a subscriber's own.
 *
 * Source: issue 10 §3; Standard Webhooks 1.0.0; decision 0131.
 */
import { Schema } from "effect"
import { optional } from "#schemas/fields.ts"
import { Instant } from "#schemas/instant.ts"
import { message, Token, token_chars_max } from "#schemas/message.ts"

/** A webhook's id: a UUID. */
export const WebhookId = Schema.String.check(
  Schema.isPattern(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
)

/** Longest URL: what proxies and logs take without cutting. */
export const url_chars_max = 2000
const description_chars_max = 256
/** Names in a filter: there are some seventy types, and six services. */
export const types_max = 100
export const services_max = 8
/** Longest text of what went wrong: one line. */
export const detail_chars_max = 256
/** Events of one commit: far below its bound in bytes. */
export const letters_max = 100
/** Redeliveries of one webhook under way: their numbers are in its snapshot (16 KiB). */
export const redeliveries_max = 300

/** RFC 3986 §2: whatever else is in a URL is written with `%`. */
const url_characters = /^[\w\-.~:/?#[\]@!$&'()*+,;=%]+$/

/** Without user and password, which every log on the way would show, and without a fragment. */
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

/** A place among the published events, as `id:` lines of GET /v1/events have it; 0: before all. */
export const EventSequence = Schema.Int.check(
  Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
)

const Description = Schema.String.check(Schema.isMaxLength(description_chars_max))
const Types = Schema.Array(Token).check(Schema.isMaxLength(types_max))
const Services = Schema.Array(Token).check(Schema.isMaxLength(services_max))
const Detail = Schema.String.check(Schema.isMaxLength(detail_chars_max))
const Project = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(2 * token_chars_max))

/** What its owner chooses. An empty list of names is all of them. */
export const webhook_fields = {
  url: WebhookUrl.annotateKey({ description: "Where events are sent" }),
  description: Description.annotateKey({ description: "What it is for" }),
  types: Types.annotateKey({ description: "Only events of these types", flag: "type" }),
  services: Services.annotateKey({ description: "Only events of these services", flag: "service" }),
} as const

export const enabled = Schema.optionalKey(Schema.Boolean).annotateKey({
  description: "Whether events are sent to it",
})

/** Which key its secrets are made from: the first half of a hash of it, in hex. */
export const KeyId = Schema.String.check(Schema.isPattern(/^[0-9a-f]{16}$/))

/** `gone`: it answered 410. `failing`: nothing was delivered for too long. */
export const DisableReason = Schema.Literals(["gone", "failing"])
export type DisableReason = typeof DisableReason.Type

export const WebhookState = Schema.Literals(["active", "paused", "disabled"])
export type WebhookState = typeof WebhookState.Type

/** An event that was given up. */
export const letter_fields = {
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

const Sequences = Schema.Array(EventSequence)

export const CreateWebhook = message("CreateWebhook", {
  ...webhook_fields,
  /** Whose events it gets; null: everybody's, which only an operator may ask for. */
  project_id: Schema.NullOr(Project),
  enabled: Schema.Boolean,
  /** The last event that it does not get. */
  after: EventSequence,
  key_id: KeyId,
})
/** Whatever is absent stays as it is. */
export const ChangeWebhook = message("ChangeWebhook", {
  ...optional(webhook_fields),
  enabled,
})
export const DisableWebhook = message("DisableWebhook", { reason: DisableReason, detail: Detail })
export const RotateWebhookSecret = message("RotateWebhookSecret", {
  key_id: KeyId,
  /** Until when the one before signs too. */
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
