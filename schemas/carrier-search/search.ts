/**
 * The record of a search: its range and outcome, but not each number.
 *
 * Source: decisions, facts of searches and predictions.
 */
import { Schema } from "effect"
import { McNumber } from "#schemas/carrier-search/carrier.ts"
import { registries } from "#schemas/carrier-search/source.ts"
import { Instant } from "#schemas/instant.ts"
import { recording } from "#schemas/spooled.ts"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
/** Long enough for any failure of a registry. */
export const reason_chars_max = 500

/** answered: complete; failed: 502; abandoned: the client disconnected, or the server stopped. */
export const outcomes = ["answered", "failed", "abandoned"] as const

export const SearchFact = Schema.Struct({
  /** The time of the request. */
  at: Instant,
  start: McNumber,
  end: McNumber,
  registry: Schema.Literals(registries),
  outcome: Schema.Literals(outcomes),
  /** Carriers found by then. */
  found: Count,
  /** Numbers looked up by then. */
  answered: Count,
  /** Why it failed, without keys; null otherwise. */
  reason: Schema.NullOr(Schema.String.check(Schema.isMaxLength(reason_chars_max))),
  duration_ms: Count,
  actor: Schema.String,
  request_id: Schema.String,
  correlation_id: Schema.String,
})
export type SearchFact = typeof SearchFact.Type

/** A search's subject in event queries: `<start>-<end>`. */
export const subjectOf = ({ start, end }: Pick<SearchFact, "start" | "end">) => `${start}-${end}`

export const RecordSearches = recording("RecordSearches", SearchFact)
export type RecordSearches = typeof RecordSearches.Type
