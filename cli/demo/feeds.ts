/** Feeds of generated history. Source: decisions of document 3, "generated data that says so". */
import { Effect, Layer } from "effect"
import { FeedFailed, Feeds } from "#actors/capital-pressure/feeds.ts"
import { today } from "#cli/dashboard/composite-run.ts"
import { type Demo, demoOf } from "#projections/capital-pressure/demo.ts"

const demo = Effect.map(today, (day) => demoOf(day))

const notGenerated = (what: string) =>
  Effect.fail(new FeedFailed({ detail: `${what} is not generated.` }))

/** Feeds with generated data; they ignore `since`. */
export const demoFeeds = Layer.effect(
  Feeds,
  Effect.map(demo, ({ observations, prices }: Demo) =>
    Feeds.of({
      fetch: ({ metric_id }) => {
        const series = observations.get(metric_id)
        if (series === undefined) return notGenerated(metric_id)
        return Effect.succeed({ ...series, acknowledge: Effect.void })
      },
      reset: () => Effect.void,
      prices: (ticker) => {
        const series = prices.get(ticker)
        return series === undefined ? notGenerated(ticker) : Effect.succeed(series)
      },
    }),
  ),
)

/** Generated targets. */
export const demoTargets = Effect.map(demo, ({ targets }) => targets)
