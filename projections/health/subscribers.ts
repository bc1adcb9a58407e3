/** The stored published events, and the lag of their durable NATS subscribers. */
import { Context, type Effect } from "effect"
import type { PublishFailed } from "#projections/published-events.ts"

/** A stored stream of published events. */
export interface StoredEvents {
  /** The stream written by the publisher, or the mirror read by NATS subscribers. */
  readonly name: "events" | "mirror"
  readonly bytes: number
  /** Size at which the oldest events are discarded, in bytes; 0: unlimited. */
  readonly limit_bytes: number
  readonly messages: number
  /** Age of the oldest stored event, in seconds; 0 if none. */
  readonly oldest_s: number
}

/** A subscriber's durable NATS consumer. */
export interface Subscriber {
  readonly name: string
  /** Age of its oldest unacknowledged event, in seconds; 0 if none. */
  readonly lag_s: number
  /**
   * Events discarded before they were acknowledged. An upper bound for a consumer with a filter:
   * the number that would have passed the filter is unknown.
   */
  readonly missed: number
}

export interface SubscribersNow {
  readonly stored: ReadonlyArray<StoredEvents>
  /** Age of the oldest event that the mirror lacks, in seconds; 0 if it has all of them. */
  readonly mirror_lag_s: number
  /** Number of durable consumers. */
  readonly count: number
  /** The consumers furthest behind, worst first; bounded. */
  readonly behind: ReadonlyArray<Subscriber>
}

export class Subscribers extends Context.Service<
  Subscribers,
  { readonly now: Effect.Effect<SubscribersNow, PublishFailed> }
>()("projections/Subscribers") {}
