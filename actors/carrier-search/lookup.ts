/** The port to a registry of single lookups. */
import { type Effect, Schema } from "effect"

/** An active carrier that is not also a broker. Source: document 3 §1 B. */
export interface FoundCarrier {
  /** The carrier's USDOT number. */
  readonly dot: number
  /** Legal name, trimmed. */
  readonly name: string
}

/**
 * refused: the registry asks for fewer requests. busy: it may be overloaded. broken: invalid
 * response. These three are retried, the first two with lower concurrency. final: every number
 * would fail, so lookups stop at once. Source: market facts B1.2.
 */
const failure_kinds = ["refused", "busy", "broken", "final"] as const

/** A lookup failed; `reason` is a clause for people, without keys. */
export class LookupFailed extends Schema.TaggedError<LookupFailed>()("LookupFailed", {
  kind: Schema.Literals(failure_kinds),
  reason: Schema.String,
  /** The pause that the registry requested, in milliseconds. */
  after_ms: Schema.optionalKey(Schema.Number),
}) {}

/**
 * Looks up one number once. Returns its carriers in order of USDOT number; none if the number is
 * unknown or filtered out. Interruption aborts the request.
 */
export type Lookup = (mc: number) => Effect.Effect<ReadonlyArray<FoundCarrier>, LookupFailed>
