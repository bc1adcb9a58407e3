/** Feeds from a folder, for `ingest --source file:DIR`, without network access. */
import { Clock, Effect, Layer } from "effect"
import { Feeds, type FetchedValues } from "#actors/capital-pressure/feeds.ts"
import { forgetResponses } from "#adapters/capital-pressure/feeds/cache.ts"
import { priceFile, valueFile } from "#adapters/capital-pressure/feeds/file.ts"
import { dayAt } from "#schemas/capital-pressure/day.ts"

const today = Effect.map(Clock.currentTimeMillis, dayAt)

/**
 * Reads `<metric_id>.csv` (`date,value`: YYYY-MM-DD and the value to store, already combined) and
 * `<TICKER>.csv` (`Date,Close[,Adj Close]`). Always returns complete series.
 *
 * `responses_folder` has the validators of earlier downloads, which are invalid once values come
 * from a file.
 */
export const feedsFile = (folder: string, responses_folder: string): Layer.Layer<Feeds> =>
  Layer.succeed(Feeds, {
    fetch: Effect.fnUntraced(function* ({ metric_id }, since) {
      const series = yield* valueFile(folder, metric_id, since, yield* today)
      const fetched: FetchedValues = { ...series, acknowledge: Effect.void }
      return fetched
    }),
    reset: ({ metric_id }) => forgetResponses(responses_folder, metric_id),
    prices: (ticker, since) =>
      Effect.flatMap(today, (day) => {
        const first = since === undefined ? undefined : Math.min(since, day - 365)
        return priceFile(folder, ticker, first, day)
      }),
  })
