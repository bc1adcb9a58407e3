/** Stooq's closes, which need a key. Source: market facts, A1.4 Stooq. */
import { type Redacted, Result } from "effect"
import type { Download } from "#adapters/capital-pressure/feeds/client.ts"
import {
  bytes_max_default,
  type FeedRequest,
  textOf,
} from "#adapters/capital-pressure/feeds/plan.ts"
import { fetchPrices, type Provider } from "#adapters/capital-pressure/feeds/provider.ts"
import { parsePrices, pricesFrom } from "#adapters/capital-pressure/feeds/quotes.ts"
import { dayAt } from "#schemas/capital-pressure/day.ts"

/** All closes. Stooq has one close per day, which also counts as the adjusted close. */
export const stooq =
  (download: Download, value: Redacted.Redacted<string>): Provider =>
  (ticker, since, now) => {
    const query = new URLSearchParams({ s: `${ticker.toLowerCase()}.us`, i: "d" })
    const request: FeedRequest = {
      publisher: "stooq",
      path: `/q/d/l/?${query}`,
      secret: { name: "apikey", value, setting: "capital.stooq_key" },
      bytes_max: bytes_max_default,
    }
    return fetchPrices(download, request, (bytes) =>
      Result.flatMap(textOf(bytes), (text) => {
        if (/^\s*get your apikey/i.test(text)) {
          return Result.fail("does not accept the key in capital.stooq_key")
        }
        if (/^\s*exceeded/i.test(text)) return Result.fail("allows no more requests today")
        const today = dayAt(now)
        return Result.map(parsePrices(text, today), (all) => pricesFrom(all, since))
      }),
    )
  }
