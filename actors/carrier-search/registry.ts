/** The port to a registry of carriers, as a whole search asks it. */
import { Context, type Effect, Schema, type Stream } from "effect"
import type { Range } from "#schemas/carrier-search/carrier.ts"
import type { Format } from "#schemas/carrier-search/format.ts"
import type { Source } from "#schemas/carrier-search/source.ts"

/** The next numbers of a range are answered. Source: document 3 §1 B. */
export interface Piece {
  /** Numbers answered so far, from the first of the range on. */
  readonly done: number
  /** Carriers found so far: of these numbers, this piece's included. */
  readonly found: number
  /** This piece's rows, ascending by number, then by USDOT number; may be empty. */
  readonly rows: Uint8Array
}

/**
 * Some number could not be answered. `failed` numbers are known to have failed, `first` is the
 * lowest of them; `reason` is for a person, without any key in it.
 */
export class SearchFailed extends Schema.TaggedError<SearchFailed>()("SearchFailed", {
  failed: Schema.Int,
  first: Schema.Int,
  reason: Schema.String,
}) {}

/** The text of the 502. Source: decisions of document 3, one or more lookups failed. */
export const failureText = ({ failed, first, reason }: SearchFailed, total: number): string =>
  `registry lookup failed for ${failed} of ${total} MC numbers (first: ${first}, ${reason})`

export class Registry extends Context.Service<
  Registry,
  {
    /**
     * Answers the range in pieces, each as soon as all numbers before it are known. Ending the
     * stream early ends all that is under way for it within 100 ms.
     */
    readonly search: (range: Range, format: Format) => Stream.Stream<Piece, SearchFailed>
    /** Which one it is, its age and its health. */
    readonly source: Effect.Effect<Source>
  }
>()("actors/carrier-search/Registry") {}
