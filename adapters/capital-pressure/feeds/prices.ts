/**
 * Prices from a chain of providers: the preferred one, then the other configured ones.
 *
 * The index comes from FRED, which has ten years of it. Source: market facts, A1.4 Yahoo chart,
 * price chain.
 */
import { Clock, Effect, Redacted, Result } from "effect"
import { FeedFailed } from "#actors/capital-pressure/feeds.ts"
import type { Download } from "#adapters/capital-pressure/feeds/client.ts"
import { priceFile } from "#adapters/capital-pressure/feeds/file.ts"
import { advice, type FeedPart, feedFailed } from "#adapters/capital-pressure/feeds/plan.ts"
import {
  fetchBytes,
  type Provider,
  prices_advice,
  unreadableResponse,
} from "#adapters/capital-pressure/feeds/provider.ts"
import { seriesSince } from "#adapters/capital-pressure/feeds/series.ts"
import { stooq } from "#adapters/capital-pressure/feeds/stooq.ts"
import { yahoo } from "#adapters/capital-pressure/feeds/yahoo.ts"
import { dayAt } from "#schemas/capital-pressure/day.ts"
import { detailOf } from "#schemas/capital-pressure/feed.ts"
import { index_ticker } from "#schemas/capital-pressure/price.ts"

export interface PriceOptions {
  /** The preferred provider. */
  readonly prices_source: "yahoo" | "stooq" | "csv"
  /** A folder of TICKER.csv; "" for none. */
  readonly prices_dir: string
  /** The operator's own key; empty for none. */
  readonly stooq_key: Redacted.Redacted<string>
}

interface Fetchers {
  readonly download: Download
  readonly fred: (series: string, since?: number) => FeedPart
}

/** At least a year is fetched, because adjusted closes change together. */
const fetched_days_min = 365

/** The prices of the first provider that succeeds, or the failures of all. */
export const priceFeed = (options: PriceOptions, fetchers: Fetchers) =>
  Effect.fnUntraced(function* (ticker: string, since?: number) {
    const now = yield* Clock.currentTimeMillis
    const first = since && Math.min(since, dayAt(now) - fetched_days_min)
    const failures: Array<string> = []
    for (const provider of providersFor(options, fetchers, ticker)) {
      const result = yield* Effect.result(provider(ticker, first, now))
      if (Result.isSuccess(result)) return result.success
      failures.push(result.failure.detail)
    }
    return yield* allFailed(ticker, failures, options)
  })

/** Combines the failures. Adds a hint, because Yahoo rejects many networks permanently. */
const allFailed = (ticker: string, failures: ReadonlyArray<string>, options: PriceOptions) => {
  const details = failures.join(" ")
  const has_hint = options.prices_source === "yahoo" && ticker !== index_ticker
  const hint = has_hint && !details.includes(prices_advice) ? ` ${prices_advice}` : ""
  return new FeedFailed({ detail: detailOf(`${ticker}: ${details}${hint}`) })
}

const providersFor = (
  options: PriceOptions,
  fetchers: Fetchers,
  ticker: string,
): ReadonlyArray<Provider> => {
  const csv = options.prices_dir === "" ? [] : [csvProvider(options.prices_dir)]
  if (ticker === index_ticker) {
    const fred = indexProvider(fetchers)
    return options.prices_source === "csv" ? [...csv, fred] : [fred, ...csv]
  }
  const has_key = Redacted.value(options.stooq_key) !== ""
  const keyed_providers = has_key ? [stooq(fetchers.download, options.stooq_key)] : []
  switch (options.prices_source) {
    case "yahoo":
      return [yahoo(fetchers.download), ...keyed_providers, ...csv]
    case "stooq":
      return [...(has_key ? keyed_providers : [notConfigured("capital.stooq_key")]), ...csv]
    case "csv":
      // Never mix a folder's prices with other sources.
      return csv.length > 0 ? csv : [notConfigured("capital.prices_dir")]
  }
}

const notConfigured =
  (setting: string): Provider =>
  () =>
    Effect.fail(feedFailed("Its provider", "is not set up", `Set ${setting}.`))

const csvProvider =
  (path: string): Provider =>
  (ticker, since, now) =>
    priceFile(path, ticker, since, dayAt(now))

const indexProvider =
  ({ download, fred }: Fetchers): Provider =>
  (_ticker, since, now) =>
    Effect.gen(function* () {
      const part = fred(index_ticker, since)
      const bytes = yield* fetchBytes(download, part.request)
      const read = part.read(bytes, dayAt(now))
      const series = yield* Effect.mapError(read, ({ reason }) =>
        unreadableResponse(part.request, reason, advice.form),
      )
      const { days, values } = seriesSince(series, since)
      return { days, close: values, adjusted: values }
    })
