/** Feeds out of a folder, for `ingest --source file:DIR`: nothing leaves the machine. */
import { Clock, Effect, Layer } from "effect"
import { Feeds, type Fetched } from "#actors/capital-pressure/feeds.ts"
import { forgetAnswers } from "#adapters/capital-pressure/feeds/cache.ts"
import { priceFile, valueFile } from "#adapters/capital-pressure/feeds/file.ts"
import { dayAt } from "#schemas/capital-pressure/day.ts"

const today = Effect.map(Clock.currentTimeMillis, dayAt)

/**
 * Reads `<metric_id>.csv` (`date,value`: YYYY-MM-DD and the raw value that is stored, with its
 * metric's combination already made) and `<TICKER>.csv` (`Date,Close[,Adj Close]`). It always tells
 * everything.
 *
 * `answers_folder` is where it is kept what publishers gave to ask them with: of values that come
 * from a file none of that is true any more.
 */
export const feedsFile = (folder: string, answers_folder: string): Layer.Layer<Feeds> =>
  Layer.succeed(Feeds, {
    fetch: Effect.fnUntraced(function* ({ metric_id }, since) {
      const series = yield* valueFile(folder, metric_id, since, yield* today)
      const fetched: Fetched = { ...series, kept: Effect.void }
      return fetched
    }),
    forget: ({ metric_id }) => forgetAnswers(answers_folder, metric_id),
    prices: (ticker, since) =>
      Effect.flatMap(today, (day) => {
        const first = since === undefined ? undefined : Math.min(since, day - 365)
        return priceFile(folder, ticker, first, day)
      }),
  })
