/** The port to a registry that answers one number at a time. */
import { type Effect, Schema } from "effect"

/** A carrier that is active and a carrier alone. Source: document 3 §1 B. */
export interface Found {
  /** Its USDOT number. */
  readonly dot: number
  /** Legal name, trimmed. */
  readonly name: string
}

/**
 * refused: the registry asks for less. busy: it may be too much. broken: it is no answer. All three
 * are asked for again, the first two with fewer at once. final: the same would be said of every
 * number, so that asking ends at once. Source: market facts B1.2.
 */
export const failures = ["refused", "busy", "broken", "final"] as const

/** A number that was not answered; `reason` is a clause for a person, without any key in it. */
export class LookupFailed extends Schema.TaggedError<LookupFailed>()("LookupFailed", {
  kind: Schema.Literals(failures),
  reason: Schema.String,
  /** How long the registry wants to be left alone, in milliseconds. */
  after_ms: Schema.optionalKey(Schema.Number),
}) {}

/**
 * Asks for one number once: its carriers ascending by USDOT number, none of one that is unknown or
 * drops out. Interrupting it ends the request.
 */
export type Lookup = (mc: number) => Effect.Effect<ReadonlyArray<Found>, LookupFailed>
