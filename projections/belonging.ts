/** Checks that a database belongs to a log. */
import { Effect, Schedule, Stream } from "effect"
import type { Log, LogUnavailable, Part } from "#events/log.ts"
import { LogGuard } from "#events/log-guard.ts"
import { type Database, DatabaseUnusable } from "#projections/database.ts"
import { Behind, type Waiters } from "#projections/waiters.ts"

/** Pause between two checks of a database, in milliseconds. */
const retry_ms = 500

/** Whether the log still holds the last commit that the database shows. */
export const continues = Effect.fnUntraced(function* <Tables>(
  log: Log["Service"],
  database: Database<Tables>,
  part: Part,
) {
  const { position, hash } = database.checkpoint()
  if (position === 0) return true
  const [found] = yield* Stream.runCollect(Stream.take(log.entries(part, position - 1), 1))
  return found?.position === position && found.hash === hash
})

/** Fails if the log has lost commits: a model built from it would lack them. */
export const logIsWhole = Effect.flatMap(LogGuard, ({ problem }) => {
  const detail = problem()
  return detail === undefined ? Effect.void : Effect.fail(new DatabaseUnusable({ detail }))
})

interface LogCheck<Tables> {
  readonly log: Log["Service"]
  readonly database: Database<Tables>
  readonly part: Part
  readonly service: string
}

/**
 * Whether a database may follow the log or be rebuilt from it. If it shows more than a damaged log
 * holds, it is the last copy of the missing commits and stays untouched.
 */
export const belongs = Effect.fnUntraced(function* <Tables>({
  log,
  database,
  part,
  service,
}: LogCheck<Tables>) {
  if (yield* continues(log, database, part)) return true
  const { position } = database.checkpoint()
  const guard = yield* LogGuard
  return yield* guard.isExplained({ name: `the ${service} read model`, position }, yield* log.end)
})

interface Following<Tables> {
  readonly log: Log["Service"]
  readonly database: Database<Tables>
  readonly part: Part
  readonly waitFor: Waiters["waitFor"]
  /** Reports the reason for waiting to the process that started it. */
  readonly report: (why: string) => Effect.Effect<void>
}

/** Waits indefinitely until a database written by other processes shows what the log holds. */
export const caughtUp = Effect.fnUntraced(function* <Tables>({
  log,
  database,
  part,
  waitFor,
  report,
}: Following<Tables>) {
  const head = yield* log.head(part)
  const waitUntilCurrent = Effect.gen(function* () {
    if (!(yield* continues(log, database, part))) return yield* not_yet
    yield* waitFor(head)
  })
  const reported = Effect.tapError(waitUntilCurrent, () =>
    report("is waiting for another process to update it."),
  )
  yield* Effect.retry(reported, { schedule: Schedule.spaced(retry_ms), while: isBehind })
})

const not_yet = new Behind({ detail: "It belongs to another log." })

/** A lag passes with time; an unreachable log is a separate failure. */
const isBehind = ({ _tag }: Behind | LogUnavailable) => _tag === "Behind"
