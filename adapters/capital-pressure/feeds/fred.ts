/**
 * FRED, of the Federal Reserve Bank of St. Louis: CSV without a key, JSON with one.
 *
 * Source: market facts, A1.4 FRED.
 */

import type { Redacted } from "effect"
import { Result, Schema } from "effect"
import { rowsOf } from "#adapters/capital-pressure/feeds/csv.ts"
import {
  bytes_max_default,
  type FeedPart,
  fromResult,
  jsonOf,
  textOf,
} from "#adapters/capital-pressure/feeds/plan.ts"
import { seriesOf } from "#adapters/capital-pressure/feeds/series.ts"
import { dateOf } from "#schemas/capital-pressure/day.ts"

/** A series from the day `since` on, or all of it. Without a key, uses the CSV download. */
export const fredPart = (
  series: string,
  since: number | undefined,
  key: Redacted.Redacted<string> | undefined,
): FeedPart => (key === undefined ? csvPart(series, since) : jsonPart(series, since, key))

const csvPart = (series: string, since: number | undefined): FeedPart => {
  const query = new URLSearchParams({ id: series })
  if (since !== undefined) query.set("cosd", dateOf(since))
  const value = new RegExp(`^${series}$`, "i")
  return {
    request: {
      publisher: "fred",
      path: `/graph/fredgraph.csv?${query}`,
      bytes_max: bytes_max_default,
    },
    read: (bytes, today) => {
      // The date column was named DATE until 2024.
      const rows = Result.flatMap(textOf(bytes), (text) =>
        rowsOf(text, /^(observation_)?date$/i, value),
      )
      return fromResult(Result.flatMap(rows, (all) => seriesOf(all, today)))
    },
  }
}

/** The API's limit, more than any daily series has. */
const rows_max = 100_000

const Observations = Schema.Struct({
  count: Schema.Int,
  observations: Schema.Array(Schema.Struct({ date: Schema.String, value: Schema.String })),
})

const jsonPart = (
  series: string,
  since: number | undefined,
  value: Redacted.Redacted<string>,
): FeedPart => {
  const query = new URLSearchParams({ series_id: series, file_type: "json" })
  query.set("limit", String(rows_max))
  if (since !== undefined) query.set("observation_start", dateOf(since))
  return {
    request: {
      publisher: "fred_api",
      path: `/fred/series/observations?${query}`,
      secret: { name: "api_key", value, setting: "capital.fred_key" },
      bytes_max: bytes_max_default,
    },
    read: (bytes, today) => {
      const series_result = Result.flatMap(
        jsonOf(Observations, bytes),
        ({ count, observations }) =>
          count === observations.length
            ? seriesOf(observations, today)
            : Result.fail(`returned ${observations.length} of ${count} observations`),
      )
      return fromResult(series_result)
    },
  }
}
