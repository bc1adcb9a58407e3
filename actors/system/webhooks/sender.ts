/** The port that sends an event to a webhook's URL. Source: Standard Webhooks 1.0.0. */
import { Context, type Effect, type Redacted } from "effect"
import type { CloudEvent } from "#schemas/cloud-event.ts"

/** One delivery attempt of one event. */
export interface Parcel {
  readonly webhook_id: string
  readonly url: string
  /** Its sequence number; undefined for a ping. */
  readonly sequence?: number
  readonly event: CloudEvent
  /** The signing secrets, newest first. */
  readonly secrets: ReadonlyArray<{ readonly version: number; readonly key_id: string }>
}

/** The outcome of an attempt. Only a complete 2xx response is a delivery. */
export interface Outcome {
  readonly is_delivered: boolean
  /** The response status, if there was a response. */
  readonly status?: number
  /** One line without secrets. */
  readonly detail: string
  /** The response's Retry-After, in milliseconds. */
  readonly retry_after_ms?: number
}

export class WebhookSender extends Context.Service<
  WebhookSender,
  {
    /** Makes one attempt within the deadline. */
    readonly send: (parcel: Parcel) => Effect.Effect<Outcome>
    /** The reason if this URL is never allowed; host names are resolved at each attempt. */
    readonly refusal: (url: string) => string | undefined
  }
>()("actors/WebhookSender") {}

/** Webhook secrets, which are derived from a key on demand and stored nowhere. */
export class WebhookSecrets extends Context.Service<
  WebhookSecrets,
  {
    /** Id of the current key. */
    readonly key_id: string
    /** The secret as its receiver needs it: `whsec_` and base64. */
    readonly reveal: (webhook_id: string, version: number) => Redacted.Redacted<string>
  }
>()("actors/WebhookSecrets") {}
