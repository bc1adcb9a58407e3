/**
 * Read models: what the log says, kept as tables.
 *
 * Source: DESIGN of the running system, 4.
 */
import { Deferred, Duration, Effect, Schedule, Schema, Semaphore, Stream } from "effect"
import { Log, type LogUnavailable, type Part, type Recorded } from "#events/log.ts"
import { type Database, Databases } from "#projections/database.ts"
import { type Projection, writesOf } from "#projections/projection.ts"
import { compiler } from "#projections/statement.ts"

/** How long a reader waits to see its own write, in milliseconds (facts: p99 is below 1). */
const wait_ms_max = 2000

/** Pause before a read model asks a log again that could not be reached, in milliseconds. */
const retry_ms = 500

/** The read model did not come as far as asked within `wait_ms_max`. */
export class Behind extends Schema.TaggedError<Behind>()("Behind", {
  detail: Schema.String,
}) {}

export interface ReadModel<Tables> extends Pick<Database<Tables>, "db" | "reader" | "dump"> {
  /** The last commit shown. */
  readonly position: Effect.Effect<number>
  /** Waits until the commit at `position` shows. */
  readonly waitFor: (position: number) => Effect.Effect<void, Behind>
  /** Waits until all shows that the log holds now: before saying that something is not there. */
  readonly catchUp: Effect.Effect<void, Behind | LogUnavailable>
  /** Builds it from nothing beside, then switches; answers the position it shows then. */
  readonly rebuild: Effect.Effect<number, LogUnavailable>
}

/** What a service's read model is made of. */
export interface Blueprint<Tables> {
  readonly service: string
  readonly version: number
  readonly part: Part
  readonly projections: ReadonlyArray<Projection<Tables>>
}

const statements = <Tables>({ projections }: Blueprint<Tables>) =>
  projections.flatMap(({ create }) =>
    create(compiler<Tables>()).map((table) => table.compile().sql),
  )

/** Writes a stretch of the log into a database: as one transaction. */
export const project = <Tables>(
  database: Database<Tables>,
  { projections }: Pick<Blueprint<Tables>, "projections">,
  stretch: ReadonlyArray<Recorded>,
) => {
  const last = stretch.at(-1)
  if (last === undefined) return
  database.apply(
    stretch.flatMap((recorded) => writesOf(projections, recorded)),
    last,
  )
}

/** Opens a blueprint's database, empty or as it was left. */
export const openDatabase = <Tables>(blueprint: Blueprint<Tables>) =>
  Effect.flatMap(Databases, (databases) =>
    databases.open<Tables>({ ...blueprint, create: statements(blueprint) }),
  )

/** Everything of the log after what the database shows. */
const fill = <Tables>(
  log: Log["Service"],
  database: Database<Tables>,
  blueprint: Blueprint<Tables>,
) =>
  Effect.suspend(() =>
    Stream.runForEachArray(log.read(blueprint.part, database.checkpoint().position), (stretch) =>
      Effect.sync(() => project(database, blueprint, stretch)),
    ),
  )

/** Whether the log still holds the commit that the database shows last. */
const continues = Effect.fnUntraced(function* <Tables>(
  log: Log["Service"],
  database: Database<Tables>,
  part: Part,
) {
  const { position, hash } = database.checkpoint()
  if (position === 0) return true
  const [found] = yield* Stream.runCollect(Stream.take(log.read(part, position - 1), 1))
  return found?.position === position && found.hash === hash
})

/**
 * Keeps a blueprint's tables at the end of the log for as long as the scope lives.
 *
 * Answers once they show what the log held at the call. Tables that belong to another log (an
 * older copy was put back, say) are built from nothing.
 */
export const readModel = Effect.fnUntraced(function* <Tables>(blueprint: Blueprint<Tables>) {
  const log = yield* Log
  const database = yield* openDatabase(blueprint)
  const waiting = new Map<Deferred.Deferred<void>, number>()
  const { part, service } = blueprint

  const wake = () => {
    const { position } = database.checkpoint()
    for (const [deferred, wanted] of waiting) {
      if (wanted <= position && waiting.delete(deferred)) Deferred.doneUnsafe(deferred, Effect.void)
    }
  }
  // A rebuild's last stretch and its switch are one turn: no commit falls between two databases.
  const turn = yield* Semaphore.make(1)
  const advance = (stretch: ReadonlyArray<Recorded>) =>
    Effect.sync(() => {
      const { position } = database.checkpoint()
      const news = stretch.filter((recorded) => recorded.position > position)
      project(database, blueprint, news)
      wake()
    }).pipe(turn.withPermit)

  const waitFor = (position: number) =>
    Effect.suspend(() => {
      if (database.checkpoint().position >= position) return Effect.void
      const deferred = Deferred.makeUnsafe<void>()
      waiting.set(deferred, position)
      const behind = new Behind({ detail: `The ${service} read model is behind ${position}.` })
      return Deferred.await(deferred).pipe(
        Effect.timeoutOrElse({
          duration: Duration.millis(wait_ms_max),
          orElse: () => Effect.fail(behind),
        }),
        Effect.ensuring(Effect.sync(() => waiting.delete(deferred))),
      )
    })

  const rebuild = Effect.gen(function* () {
    const beside = yield* database.beside
    yield* fill(log, beside, blueprint)
    yield* Effect.andThen(fill(log, beside, blueprint), database.replace(beside)).pipe(
      turn.withPermit,
    )
    wake()
    return database.checkpoint().position
  }).pipe(Effect.scoped)

  if (!(yield* continues(log, database, part))) {
    yield* Effect.logWarning(`The ${service} read model is of another log: building it again.`)
    yield* rebuild
  }
  yield* fill(log, database, blueprint)

  const following = Effect.suspend(() =>
    Stream.runForEachArray(log.follow(part, database.checkpoint().position), advance),
  )
  yield* following.pipe(
    Effect.tapError(({ detail }) =>
      Effect.logWarning(`The ${service} read model waits: ${detail}`),
    ),
    Effect.retry(Schedule.spaced(retry_ms)),
    Effect.forkScoped,
  )

  const model: ReadModel<Tables> = {
    db: database.db,
    reader: database.reader,
    dump: database.dump,
    position: Effect.sync(() => database.checkpoint().position),
    waitFor,
    catchUp: Effect.flatMap(log.head(part), waitFor),
    rebuild,
  }
  return model
})
