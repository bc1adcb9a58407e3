/**
 * A search that was made, as it is recorded: its range and outcome, never each number.
 *
 * Source: decisions, facts of searches and predictions.
 */
import { Schema } from "effect"
import { McNumber } from "#schemas/carrier-search/carrier.ts"
import { registries } from "#schemas/carrier-search/source.ts"
import { Instant } from "#schemas/instant.ts"
import { recording } from "#schemas/spooled.ts"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
/** Enough for any failure of a registry. */
export const reason_chars_max = 500

/** answered: all of it; failed: 502; abandoned: the client went, or the server stopped. */
export const outcomes = ["answered", "failed", "abandoned"] as const

export const SearchFact = Schema.Struct({
  /** When it was asked. */
  at: Instant,
  start: McNumber,
  end: McNumber,
  registry: Schema.Literals(registries),
  outcome: Schema.Literals(outcomes),
  /** Carriers found until then. */
  found: Count,
  /** Numbers that were answered until then. */
  answered: Count,
  /** Why it failed; null otherwise. Never with a key in it. */
  reason: Schema.NullOr(Schema.String.check(Schema.isMaxLength(reason_chars_max))),
  duration_ms: Count,
  actor: Schema.String,
  request_id: Schema.String,
  correlation_id: Schema.String,
})
export type SearchFact = typeof SearchFact.Type

/** What a search is called where events are looked for: `<start>-<end>`. */
export const subjectOf = ({ start, end }: Pick<SearchFact, "start" | "end">) => `${start}-${end}`

export const RecordSearches = recording("RecordSearches", SearchFact)
export type RecordSearches = typeof RecordSearches.Type
