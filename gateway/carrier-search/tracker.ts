/**
 * Tracks the progress of a search, and records a fact when it ends.
 *
 * Source: decisions, facts of searches and predictions.
 */
import { Cause, Clock, DateTime, Effect, Exit, Predicate } from "effect"
import { failureText, type Piece, SearchFailed } from "#actors/carrier-search/registry.ts"
import { SearchSpool } from "#actors/carrier-search/search-spool.ts"
import { NoRegistry } from "#gateway/carrier-search/registries.ts"
import { RequestContext } from "#gateway/request-context.ts"
import { type Range, total } from "#schemas/carrier-search/carrier.ts"
import { reason_chars_max, type SearchFact } from "#schemas/carrier-search/search.ts"

export interface SearchTracker {
  readonly range: Range
  readonly registry: SearchFact["registry"]
  /** Numbers with a result so far. */
  readonly answered: () => number
  /** Carriers found so far. */
  readonly found: () => number
  readonly durationMs: () => number
  readonly count: (piece: Piece) => void
  /** Adds the fact of the search to the spool. Run it once. */
  readonly close: (exit: Exit.Exit<unknown, unknown>) => Effect.Effect<void>
}

/** Clients get no details of defects. */
export const internal_error = "internal error"

const reasonOf = (error: unknown, numbers: number) => {
  if (Predicate.isTagged(error, "SearchFailed") && error instanceof SearchFailed) {
    return failureText(error, numbers)
  }
  return error instanceof NoRegistry ? error.detail : internal_error
}

/** The outcome. A disconnected client and a server shutdown interrupt the search. */
const endOf = (
  exit: Exit.Exit<unknown, unknown>,
  numbers: number,
): Pick<SearchFact, "outcome" | "reason"> => {
  if (Exit.isSuccess(exit)) return { outcome: "answered", reason: null }
  const { reasons } = exit.cause
  const other = reasons.find((reason) => !Cause.isInterruptReason(reason))
  if (other === undefined) return { outcome: "abandoned", reason: null }
  const reason = Cause.isFailReason(other) ? reasonOf(other.error, numbers) : internal_error
  return { outcome: "failed", reason: reason.slice(0, reason_chars_max) }
}

/** Starts to track a search. */
export const trackSearch = Effect.fnUntraced(function* (
  range: Range,
  registry: SearchFact["registry"],
) {
  const { request_id, correlation_id, caller } = yield* RequestContext
  const spool = yield* SearchSpool
  const clock = yield* Clock.Clock
  const since_ms = clock.currentTimeMillisUnsafe()
  const tally = { answered: 0, found: 0 }
  // A clock that is set back must not make the duration negative.
  const durationMs = () => Math.max(0, Math.round(clock.currentTimeMillisUnsafe() - since_ms))
  const tracker: SearchTracker = {
    range,
    registry,
    answered: () => tally.answered,
    found: () => tally.found,
    durationMs,
    count: ({ done, found }) => {
      tally.answered = done
      tally.found = found
    },
    close: (exit) =>
      Effect.suspend(() =>
        spool.add({
          at: DateTime.formatIso(DateTime.makeUnsafe(since_ms)),
          ...range,
          registry,
          ...endOf(exit, total(range)),
          ...tally,
          duration_ms: durationMs(),
          actor: caller.actor,
          request_id,
          correlation_id,
        }),
      ),
  }
  return tracker
})
