/** The port through which an event goes to a webhook's address. Source: Standard Webhooks 1.0.0. */
import { Context, type Effect, type Redacted } from "effect"
import type { CloudEvent } from "#schemas/cloud-event.ts"

/** One try of one event. */
export interface Parcel {
  readonly webhook_id: string
  readonly url: string
  /** Its place among the published events; undefined of a ping. */
  readonly sequence?: number
  readonly event: CloudEvent
  /** Which secrets sign, the newest first. */
  readonly secrets: ReadonlyArray<{ readonly version: number; readonly key_id: string }>
}

/** What became of a try. Only an answer of 2xx, read to its end, is a delivery. */
export interface Outcome {
  readonly is_delivered: boolean
  /** The answer's status, where there was one. */
  readonly status?: number
  /** What was so, in a line that names no secret. */
  readonly detail: string
  /** What the answer's Retry-After asks for, in milliseconds. */
  readonly retry_after_ms?: number
}

export class WebhookSender extends Context.Service<
  WebhookSender,
  {
    /** Tries once, and ends within the deadline. */
    readonly send: (parcel: Parcel) => Effect.Effect<Outcome>
    /** Why nothing is ever sent to this URL, if so; a host's name is looked up at each try. */
    readonly refusal: (url: string) => string | undefined
  }
>()("actors/WebhookSender") {}

/** Webhooks' secrets: made from a key when they are needed, and kept nowhere. */
export class WebhookSecrets extends Context.Service<
  WebhookSecrets,
  {
    /** Names the key that secrets are made from now. */
    readonly key_id: string
    /** The secret as its receiver needs it: `whsec_` and base64. */
    readonly reveal: (webhook_id: string, version: number) => Redacted.Redacted<string>
  }
>()("actors/WebhookSecrets") {}
