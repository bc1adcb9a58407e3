/**
 * Prices, by a chain of providers: the one that is set, then the others that are set up.
 *
 * The index comes from FRED, which tells ten years of it. Source: market facts, A1.4 Yahoo chart,
 * price chain.
 */
import { Clock, Effect, Redacted, Result } from "effect"
import { FeedFailed } from "#actors/capital-pressure/feeds.ts"
import type { Ask } from "#adapters/capital-pressure/feeds/client.ts"
import { priceFile } from "#adapters/capital-pressure/feeds/file.ts"
import { advice, type FeedPart, feedFailed } from "#adapters/capital-pressure/feeds/plan.ts"
import {
  answered,
  next_of_prices,
  odd,
  type Provider,
} from "#adapters/capital-pressure/feeds/provider.ts"
import { from } from "#adapters/capital-pressure/feeds/series.ts"
import { stooq } from "#adapters/capital-pressure/feeds/stooq.ts"
import { yahoo } from "#adapters/capital-pressure/feeds/yahoo.ts"
import { dayAt } from "#schemas/capital-pressure/day.ts"
import { detailOf } from "#schemas/capital-pressure/feed.ts"
import { index_ticker } from "#schemas/capital-pressure/price.ts"

export interface PriceOptions {
  /** Who is asked first. */
  readonly prices_source: "yahoo" | "stooq" | "csv"
  /** A folder of TICKER.csv; "" for none. */
  readonly prices_dir: string
  /** The operator's own; empty for none. */
  readonly stooq_key: Redacted.Redacted<string>
}

interface Ways {
  readonly ask: Ask
  readonly fred: (series: string, since?: number) => FeedPart
}

/** Adjusted closes of at least so long ago are told together, since they change together. */
const together_days = 365

/** The first provider's answer that can be read; what each said where none can. */
export const priceFeed = (options: PriceOptions, ways: Ways) =>
  Effect.fnUntraced(function* (ticker: string, since?: number) {
    const now = yield* Clock.currentTimeMillis
    const first = since && Math.min(since, dayAt(now) - together_days)
    const failures: Array<string> = []
    for (const provider of chainOf(options, ways, ticker)) {
      const answer = yield* Effect.result(provider(ticker, first, now))
      if (Result.isSuccess(answer)) return answer.success
      failures.push(answer.failure.detail)
    }
    return yield* failedWith(ticker, failures, options)
  })

/** What each provider said, as far as there is room; Yahoo refuses many networks for good. */
const failedWith = (ticker: string, failures: ReadonlyArray<string>, options: PriceOptions) => {
  const said = failures.join(" ")
  const is_hint = options.prices_source === "yahoo" && ticker !== index_ticker
  const hint = is_hint && !said.includes(next_of_prices) ? ` ${next_of_prices}` : ""
  return new FeedFailed({ detail: detailOf(`${ticker}: ${said}${hint}`) })
}

const chainOf = (options: PriceOptions, ways: Ways, ticker: string): ReadonlyArray<Provider> => {
  const csv = options.prices_dir === "" ? [] : [folder(options.prices_dir)]
  if (ticker === index_ticker) {
    const fred = index(ways)
    return options.prices_source === "csv" ? [...csv, fred] : [fred, ...csv]
  }
  const has_key = Redacted.value(options.stooq_key) !== ""
  const keyed = has_key ? [stooq(ways.ask, options.stooq_key)] : []
  switch (options.prices_source) {
    case "yahoo":
      return [yahoo(ways.ask), ...keyed, ...csv]
    case "stooq":
      return [...(has_key ? keyed : [unset("capital.stooq_key")]), ...csv]
    case "csv":
      // Whoever keeps prices in a folder does not want others among them.
      return csv.length > 0 ? csv : [unset("capital.prices_dir")]
  }
}

const unset =
  (setting: string): Provider =>
  () =>
    Effect.fail(feedFailed("Its provider", "is not set up", `Set ${setting}.`))

const folder =
  (path: string): Provider =>
  (ticker, since, now) =>
    priceFile(path, ticker, since, dayAt(now))

const index =
  ({ ask, fred }: Ways): Provider =>
  (_ticker, since, now) =>
    Effect.gen(function* () {
      const part = fred(index_ticker, since)
      const bytes = yield* answered(ask, part.request)
      const read = part.read(bytes, dayAt(now))
      const series = yield* Effect.mapError(read, ({ reason }) =>
        odd(part.request, reason, advice.form),
      )
      const { days, values } = from(series, since)
      return { days, close: values, adjusted: values }
    })
