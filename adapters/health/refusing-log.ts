/** Refuses commits at once while the log's server is known to take none. */
import { Effect, Layer } from "effect"
import { NatsServer } from "#bus"
import { Log, LogUnavailable } from "#events/log.ts"

/**
 * The log as it is, but for appends: a server whose store failed a write answers none of them, so
 * that each would wait for its whole timeout and be tried again.
 */
export const refusingLog = Layer.effect(
  Log,
  Effect.gen(function* () {
    const log = yield* Log
    const { problem } = yield* NatsServer
    return Log.of({
      ...log,
      append: (commits) =>
        Effect.suspend(() => {
          const detail = problem()
          return detail === undefined
            ? log.append(commits)
            : Effect.fail(new LogUnavailable({ detail }))
        }),
    })
  }),
)
