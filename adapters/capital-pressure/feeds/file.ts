/** Reads `<metric_id>.csv` and `<TICKER>.csv` from a user's folder. */
import { join } from "node:path"
import { Effect, Option, Result } from "effect"
import type { FetchedPrices } from "#actors/capital-pressure/feeds.ts"
import { rowsOf } from "#adapters/capital-pressure/feeds/csv.ts"
import { feedFailed, textOf } from "#adapters/capital-pressure/feeds/plan.ts"
import { parsePrices, pricesFrom } from "#adapters/capital-pressure/feeds/quotes.ts"
import { seriesOf, seriesSince } from "#adapters/capital-pressure/feeds/series.ts"
import { findBounded } from "#files"
import type { Series } from "#projections/capital-pressure/store.ts"

/** A century of daily rows takes 1 MB. */
const file_bytes_max = 16 * 1024 * 1024

/** The values of `<id>.csv`, with the columns `date` and `value`, from the day `since` on. */
export const valueFile = Effect.fnUntraced(function* (
  folder: string,
  id: string,
  since: number | undefined,
  today: number,
) {
  const series = yield* readFile(folder, id, (text) =>
    Result.flatMap(rowsOf(text, /^date$/i, /^value$/i), (rows) => seriesOf(rows, today)),
  )
  const requested: Series = seriesSince(series, since)
  return requested.days.length > 0 || since !== undefined
    ? requested
    : yield* feedFailed(join(folder, `${id}.csv`), "has no values", remedy)
})

/** The closes of `<TICKER>.csv`, with the columns `Date`, `Close` and optionally `Adj Close`. */
export const priceFile = (
  folder: string,
  ticker: string,
  since: number | undefined,
  today: number,
) =>
  Effect.map(
    readFile(folder, ticker, (text) => parsePrices(text, today)),
    (prices): FetchedPrices => pricesFrom(prices, since),
  )

const remedy = "Fix the file and ingest it again."

const readFile = <A>(
  folder: string,
  name: string,
  read: (text: string) => Result.Result<A, string>,
) => {
  const path = join(folder, `${name}.csv`)
  return findBounded(path, file_bytes_max).pipe(
    Effect.mapError(({ code }) => feedFailed(path, `cannot be read (${code})`, remedy)),
    Effect.flatMap((text) => {
      if (Option.isNone(text)) {
        return Effect.fail(feedFailed(path, "does not exist", "Put the file into the folder."))
      }
      const parsed = Result.flatMap(textOf(new TextEncoder().encode(text.value)), read)
      return Result.isSuccess(parsed)
        ? Effect.succeed(parsed.success)
        : Effect.fail(feedFailed(path, parsed.failure, remedy))
    }),
  )
}
