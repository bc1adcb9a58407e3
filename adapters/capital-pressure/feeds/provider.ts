/** A provider of prices, and how its answer is read. */
import { Effect, Result } from "effect"
import type { FeedFailed, FetchedPrices } from "#actors/capital-pressure/feeds.ts"
import type { Ask } from "#adapters/capital-pressure/feeds/client.ts"
import { type FeedRequest, feedFailed, publishers } from "#adapters/capital-pressure/feeds/plan.ts"

/** Closes of a ticker from the day `since` on; `now` is in milliseconds. */
export type Provider = (
  ticker: string,
  since: number | undefined,
  now: number,
) => Effect.Effect<FetchedPrices, FeedFailed>

/** The bytes of an unconditional answer. */
export const answered = Effect.fnUntraced(function* (ask: Ask, request: FeedRequest) {
  const reply = yield* ask(request)
  return reply.is_unchanged ? new Uint8Array(0) : reply.bytes
})

/** The failure of a provider whose answer cannot be read. */
export const odd = ({ publisher }: FeedRequest, reason: string, next: string) =>
  feedFailed(publishers[publisher].name, reason, next)

/** What a person may do where a provider does not serve. */
export const next_of_prices =
  "Use another provider: capital.prices_source stooq with a key of your own, or csv with a folder."

/** What `read` makes of the answer; prices without a close are a failure. */
export const pricesFromAnswer = (
  ask: Ask,
  request: FeedRequest,
  read: (bytes: Uint8Array) => Result.Result<FetchedPrices, string>,
) =>
  Effect.flatMap(answered(ask, request), (bytes) => {
    const prices = Result.flatMap(read(bytes), (found) =>
      found.days.length === 0 ? Result.fail("tells no close") : Result.succeed(found),
    )
    return Result.isSuccess(prices)
      ? Effect.succeed(prices.success)
      : Effect.fail(odd(request, prices.failure, next_of_prices))
  })
