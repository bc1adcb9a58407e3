/** Rejects commits immediately while the log's server is known not to accept any. */
import { Effect, Layer } from "effect"
import { NatsServer } from "#bus"
import { Log, LogUnavailable } from "#events/log.ts"

/**
 * The log with guarded appends: a server whose store failed a write does not respond, so that each
 * append would wait for its timeout and be retried.
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
