/** The port to a registry of carriers, for whole searches. */
import { Context, type Effect, Schema, type Stream } from "effect"
import type { Range } from "#schemas/carrier-search/carrier.ts"
import type { Format } from "#schemas/carrier-search/format.ts"
import type { Source } from "#schemas/carrier-search/source.ts"

/** The results of the next numbers of a range. Source: document 3 §1 B. */
export interface Piece {
  /** Number of completed lookups from the start of the range. */
  readonly done: number
  /** Number of carriers found so far, including this piece. */
  readonly found: number
  /** This piece's rows, ordered by MC number and then USDOT number; may be empty. */
  readonly rows: Uint8Array
}

/**
 * Some lookup failed. `failed` is the number of known failures and `first` the lowest of them;
 * `reason` is for people, without keys.
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
     * Streams the range in pieces, each as soon as all earlier numbers are known. Closing the
     * stream stops its lookups within 100 ms.
     */
    readonly search: (range: Range, format: Format) => Stream.Stream<Piece, SearchFailed>
    /** The registry's name, age and health. */
    readonly source: Effect.Effect<Source>
  }
>()("actors/carrier-search/Registry") {}
