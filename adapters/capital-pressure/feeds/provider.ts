/** Providers of prices. */
import { Effect, Result } from "effect"
import type { FeedFailed, FetchedPrices } from "#actors/capital-pressure/feeds.ts"
import type { Download } from "#adapters/capital-pressure/feeds/client.ts"
import { type FeedRequest, feedFailed, publishers } from "#adapters/capital-pressure/feeds/plan.ts"

/** Fetches the closes of a ticker from the day `since` on; `now` is in milliseconds. */
export type Provider = (
  ticker: string,
  since: number | undefined,
  now: number,
) => Effect.Effect<FetchedPrices, FeedFailed>

/** Fetches without validators. */
export const fetchBytes = Effect.fnUntraced(function* (download: Download, request: FeedRequest) {
  const reply = yield* download(request)
  return reply.is_unchanged ? new Uint8Array(0) : reply.bytes
})

/** The failure of a response that cannot be read. */
export const unreadableResponse = ({ publisher }: FeedRequest, reason: string, next: string) =>
  feedFailed(publishers[publisher].name, reason, next)

/** Advice if a provider fails. */
export const prices_advice =
  "Use another provider: set capital.prices_source to stooq with your own key, or to csv with a " +
  "folder."

/** Fetches and parses prices. An empty result is a failure. */
export const fetchPrices = (
  download: Download,
  request: FeedRequest,
  read: (bytes: Uint8Array) => Result.Result<FetchedPrices, string>,
) =>
  Effect.flatMap(fetchBytes(download, request), (bytes) => {
    const prices = Result.flatMap(read(bytes), (found) =>
      found.days.length === 0 ? Result.fail("has no closing price") : Result.succeed(found),
    )
    return Result.isSuccess(prices)
      ? Effect.succeed(prices.success)
      : Effect.fail(unreadableResponse(request, prices.failure, prices_advice))
  })
