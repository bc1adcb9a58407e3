/** The stored published events, and how far their durable NATS subscribers are behind. */
import { Context, type Effect } from "effect"
import type { PublishFailed } from "#projections/published-events.ts"

/** A stream of published events as it is stored. */
export interface StoredEvents {
  /** The stream that the publisher writes, or the mirror that NATS subscribers read. */
  readonly name: "events" | "mirror"
  readonly bytes: number
  /** Bytes at which the oldest events are discarded; 0: there is no limit. */
  readonly limit_bytes: number
  readonly messages: number
  /** Age of the oldest event that is kept, in seconds; 0 where none is. */
  readonly oldest_s: number
}

/** A durable NATS consumer of a subscriber. */
export interface Subscriber {
  readonly name: string
  /** Age of the oldest event that it has not acknowledged, in seconds; 0: there is none. */
  readonly lag_s: number
  /**
   * Events that were discarded before it acknowledged them. Of a consumer with a filter, at most so
   * many: how many of them its filter would have passed is unknown.
   */
  readonly missed: number
}

export interface SubscribersNow {
  readonly stored: ReadonlyArray<StoredEvents>
  /** Age of the oldest event that the mirror does not have yet, in seconds; 0: it has all. */
  readonly mirror_lag_s: number
  /** Durable consumers in all. */
  readonly count: number
  /** Those that are furthest behind, the worst first; bounded. */
  readonly behind: ReadonlyArray<Subscriber>
}

export class Subscribers extends Context.Service<
  Subscribers,
  { readonly now: Effect.Effect<SubscribersNow, PublishFailed> }
>()("projections/Subscribers") {}
