/** Whether a database and a log belong together. */
import { Effect, Schedule, Stream } from "effect"
import type { Log, LogUnavailable, Part } from "#events/log.ts"
import { LogGuard } from "#events/log-guard.ts"
import { type Database, DatabaseUnusable } from "#projections/database.ts"
import { Behind, type Waiting } from "#projections/waiting.ts"

/** Pause before a database is looked at again, in milliseconds. */
const retry_ms = 500

/** Whether the log still holds the commit that the database shows last. */
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

/** Fails where the log has lost commits: what is built from it would lack them. */
export const logIsWhole = Effect.flatMap(LogGuard, ({ trouble }) => {
  const detail = trouble()
  return detail === undefined ? Effect.void : Effect.fail(new DatabaseUnusable({ detail }))
})

interface Belonging<Tables> {
  readonly log: Log["Service"]
  readonly database: Database<Tables>
  readonly part: Part
  readonly service: string
}

/**
 * Whether a database may follow the log, or be built again from it. One that shows more than a
 * damaged log holds is the last copy of what is missing: it stays as it is.
 */
export const belongs = Effect.fnUntraced(function* <Tables>({
  log,
  database,
  part,
  service,
}: Belonging<Tables>) {
  if (yield* continues(log, database, part)) return true
  const { position } = database.checkpoint()
  const guard = yield* LogGuard
  return yield* guard.explains({ name: `the ${service} read model`, position }, yield* log.end)
})

interface Following<Tables> {
  readonly log: Log["Service"]
  readonly database: Database<Tables>
  readonly part: Part
  readonly waitFor: Waiting["waitFor"]
  /** Tells whoever started it what it waits for. */
  readonly tell: (why: string) => Effect.Effect<void>
}

/** Waits, however long it takes, until a database that others write shows what the log holds. */
export const caughtUp = Effect.fnUntraced(function* <Tables>({
  log,
  database,
  part,
  waitFor,
  tell,
}: Following<Tables>) {
  const head = yield* log.head(part)
  const reached = Effect.gen(function* () {
    if (!(yield* continues(log, database, part))) return yield* not_yet
    yield* waitFor(head)
  })
  const told = Effect.tapError(reached, () => tell("waits for a process that writes it."))
  yield* Effect.retry(told, { schedule: Schedule.spaced(retry_ms), while: isBehind })
})

const not_yet = new Behind({ detail: "It is of another log." })

/** What goes by with time; a log that cannot be reached is its own failure. */
const isBehind = ({ _tag }: Behind | LogUnavailable) => _tag === "Behind"
