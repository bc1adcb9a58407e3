/** A log in memory that a test makes unavailable or slow. */
import { Context, Effect, Layer, Stream } from "effect"
import { Log, LogUnavailable } from "#events/log.ts"
import { logMemory } from "#journal"

/** Whether the log is unavailable, and the delay of each commit that is followed. */
export class Outage extends Context.Service<Outage, { down: boolean; lag_ms: number }>()(
  "test/Outage",
) {}

export const frailLog = Layer.effect(
  Log,
  Effect.gen(function* () {
    const log = yield* Log
    const outage = yield* Outage
    const gone = new LogUnavailable({ detail: "The log is down." })
    const unlessDown = <A, E>(effect: Effect.Effect<A, E>) =>
      Effect.suspend(
        (): Effect.Effect<A, E | LogUnavailable> => (outage.down ? Effect.fail(gone) : effect),
      )
    return Log.of({
      ...log,
      append: (commits) => unlessDown(log.append(commits)),
      load: (stream) => unlessDown(log.load(stream)),
      tip: (stream) => unlessDown(log.tip(stream)),
      head: (part) => unlessDown(log.head(part)),
      follow: (part, position) =>
        Stream.tap(log.follow(part, position), () => Effect.sleep(outage.lag_ms)),
    })
  }),
).pipe(
  Layer.provide(logMemory),
  Layer.provideMerge(Layer.sync(Outage, () => ({ down: false, lag_ms: 0 }))),
)
