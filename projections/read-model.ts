/**
 * Read models: tables derived from the log.
 *
 * Source: DESIGN of the running system, 4.
 */
import { Clock, Context, Effect, Schedule, Semaphore, Stream } from "effect"
import type { Kysely } from "kysely"
import { type Entry, isReadable, Log, type LogUnavailable, type Part } from "#events/log.ts"
import { spannedFor } from "#events/trace.ts"
import { belongs, caughtUp, continues, logIsWhole } from "#projections/belonging.ts"
import {
  type Database,
  Databases,
  DatabaseUnusable,
  type Differences,
} from "#projections/database.ts"
import { newStall, type Stall } from "#projections/health/stall.ts"
import { eventsIn, type Projection, slices, sourceOf, writesOf } from "#projections/projection.ts"
import { repairWhenLost } from "#projections/repair.ts"
import { type Behind, makeWaiters, type Waiters } from "#projections/waiters.ts"
import { warnOnce } from "#projections/warn-once.ts"

/** Pause before a read model retries an unreachable log, in milliseconds. */
const retry_ms = 500

/** How often a read model checks that other processes still find it, in milliseconds. */
const look_ms = 2_000

/** Maximum number of rows listed in a difference; all are counted. */
const differences_max = 100

/** Events projected per slice: a few milliseconds, after which other fibers get the thread. */
const slice_events_max = 500

/** Events per slice of a background model, at about 40 us each: two milliseconds. */
const background_events_max = 50

/** How often a rebuild catches up with another process that writes and is slightly ahead. */
const replaces_max = 50

const overtaken = new DatabaseUnusable({
  detail: "The log is written faster than the read model is built.",
})

const ns_per_ms = 1e6

/** How a background model yields the thread to other work, in milliseconds. */
export interface Pacing {
  /** Pause after a piece of work of this duration; 0 yields a single turn. */
  readonly after: (took_ms: number) => number
  /** How long small batches are gathered: a transaction costs as much as tens of rows. */
  readonly gather_ms: number
}

export const Rest = Context.Reference<Pacing>("projections/Rest", {
  defaultValue: () => ({ after: () => 0, gather_ms: 0 }),
})

export interface ReadModel<Tables> extends Pick<Database<Tables>, "db" | "reader" | "dump"> {
  /** The last commit shown. */
  readonly position: Effect.Effect<number>
  /** Waits until the commit at `position` is shown. */
  readonly waitFor: (position: number) => Effect.Effect<void, Behind>
  /**
   * Waits until everything the log holds now is shown: required before reporting a missing
   * resource.
   */
  readonly catchUp: Effect.Effect<void, Behind | LogUnavailable>
  /** Rebuilds it next to the old database, then switches; returns the new position. */
  readonly rebuild: Effect.Effect<number, LogUnavailable | DatabaseUnusable>
  /**
   * Rebuilds it next to the stored database and compares the two; the stored one is not modified.
   */
  readonly difference: Effect.Effect<Difference, LogUnavailable | DatabaseUnusable>
  /** Why it waits at its position; undefined if it does not wait. */
  readonly waits: () => string | undefined
  /** Whether the last query reached its database. */
  readonly isReachable: () => boolean
  /** False if this process does not follow the log for it: it cannot be queried. */
  readonly is_maintained?: false
}

/** Differences between a read model and its rebuild. */
export interface Difference extends Differences {
  /** Both show the log up to this position. */
  readonly position: number
}

/** Definition of a service's read model. */
export interface Blueprint<Tables> {
  readonly service: string
  readonly version: number
  readonly part: Part
  readonly projections: ReadonlyArray<Projection<Tables>>
  /** Whether it yields to other work; it runs immediately while a request waits for it. */
  readonly is_background?: boolean
}

const statements =
  <Tables>({ projections }: Blueprint<Tables>) =>
  (compiles: Kysely<Tables>) =>
    projections.flatMap(({ create }) => create(compiles).map((table) => table.compile().sql))

/** Writes a stretch of the log, each slice in one transaction; skips what is already shown. */
export const project = <Tables>(
  database: Database<Tables>,
  { projections }: Blueprint<Tables>,
  stretch: ReadonlyArray<Entry>,
) => {
  const { position } = database.checkpoint()
  const news = stretch.filter((entry) => entry.position > position)
  return Effect.forEach(
    slices(news, slice_events_max),
    (slice) =>
      Effect.suspend(() => {
        const last = slice.at(-1)
        if (last === undefined) return Effect.void
        const writes = slice.flatMap((entry) => [...writesOf(projections, entry)].flat())
        const applied = database.apply(writes, last)
        return slice.length === news.length ? applied : Effect.andThen(applied, Effect.yieldNow)
      }),
    { discard: true },
  )
}

const commitsIn = (stretch: ReadonlyArray<Entry>) =>
  stretch.filter(isReadable).map(({ commit }) => commit)

/** Whether a stretch is smaller than one slice of a background model. */
const isSmall = (stretch: ReadonlyArray<Entry>) =>
  stretch.reduce((sum, entry) => sum + eventsIn(entry), 0) < background_events_max

/** Like `project`, but pauses every few milliseconds, even within a commit. */
const projectSlowly = Effect.fnUntraced(function* <Tables>(
  database: Database<Tables>,
  { projections }: Blueprint<Tables>,
  stretch: ReadonlyArray<Entry>,
  { isAwaited, awaited, wake }: Pick<Waiters, "isAwaited" | "awaited" | "wake">,
) {
  const rest = yield* Rest
  const clock = yield* Clock.Clock
  const now_ms = () => Number(clock.currentTimeNanosUnsafe()) / ns_per_ms
  let began = now_ms()
  const pause = Effect.gen(function* () {
    const rest_ms = isAwaited() ? 0 : rest.after(now_ms() - began)
    yield* rest_ms > 0 ? Effect.raceFirst(Effect.sleep(rest_ms), awaited) : Effect.yieldNow
    began = now_ms()
  })
  const { position } = database.checkpoint()
  const news = stretch.filter((entry) => entry.position > position)
  for (const slice of slices(news, background_events_max)) {
    const last = slice.at(-1)
    if (last === undefined) continue
    if (slice.length === 1 && eventsIn(last) > background_events_max) {
      const writes = writesOf(projections, last, background_events_max)
      yield* database.applySlowly(writes, last, pause)
      wake()
      continue
    }
    const writes = slice.flatMap((entry) => [...writesOf(projections, entry)].flat())
    yield* database.apply(writes, last)
    wake()
    yield* pause
  }
})

/** Opens a blueprint's database, whether new or existing. */
export const openDatabase = <Tables>(blueprint: Blueprint<Tables>) =>
  Effect.flatMap(Databases, (databases) =>
    databases.open<Tables>({ ...blueprint, create: statements(blueprint) }),
  )

/** Projects the log after the database's checkpoint, up to `until` if given. */
const fill = <Tables>(
  log: Log["Service"],
  database: Database<Tables>,
  blueprint: Blueprint<Tables>,
  until = Number.POSITIVE_INFINITY,
) =>
  Effect.suspend(() =>
    Stream.runForEachArray(
      Stream.takeWhile(
        sourceOf(log, blueprint.projections).read(blueprint.part, database.checkpoint().position),
        ({ position }) => position <= until,
      ),
      (stretch) => project(database, blueprint, stretch),
    ),
  )

/**
 * Compares a database with its rebuild. Most of the rebuild comes first; then the stored database
 * is captured as a snapshot, and the rebuild catches up to that position.
 */
const compareRebuild = <Tables>(
  log: Log["Service"],
  database: Database<Tables>,
  blueprint: Blueprint<Tables>,
) =>
  Effect.gen(function* () {
    const shadow = yield* database.shadow
    // The stored database shows at least this position, so the rebuild never gets ahead of it.
    yield* fill(log, shadow, blueprint, database.checkpoint().position)
    const comparison = yield* database.compare(shadow, differences_max)
    yield* fill(log, shadow, blueprint, comparison.position)
    return { position: comparison.position, ...(yield* comparison.differences) }
  }).pipe(Effect.scoped)

/**
 * Follows the log in the background and retries any failure: another program may have locked the
 * file, the disk may be full, or a commit may need a newer release.
 */
const retrying = <E extends { readonly detail: string }>(
  name: string,
  following: Effect.Effect<void, E>,
  stall: Stall,
) => {
  const { warn, forget } = warnOnce(name)
  return following.pipe(
    Effect.catchDefect((defect) => Effect.fail({ detail: String(defect) })),
    Effect.tapError(({ detail }) => {
      if (stall.fail(detail)) forget()
      return warn(`is waiting: ${detail}`)
    }),
    Effect.retry(Schedule.spaced(retry_ms)),
    Effect.forkScoped,
  )
}

interface Maintenance<Tables> {
  readonly log: Log["Service"]
  readonly database: Database<Tables>
  readonly blueprint: Blueprint<Tables>
  readonly waits: Waiters
  readonly rebuild: Effect.Effect<number, LogUnavailable | DatabaseUnusable>
  readonly following: Effect.Effect<void, LogUnavailable | DatabaseUnusable>
  readonly stall: Stall
}

/**
 * Starts following the log, alone or taking turns with other processes; returns once everything
 * that the log held at the call is shown.
 */
const maintain = Effect.fnUntraced(function* <Tables>(maintenance: Maintenance<Tables>) {
  const { log, database, blueprint, waits, rebuild, following, stall } = maintenance
  const { part, service } = blueprint
  const { sharing } = database
  const name = `The ${service} read model`
  const belongsTogether = belongs({ log, database, part, service })
  const ensureCurrent = Effect.gen(function* () {
    if (!(yield* belongsTogether)) {
      yield* Effect.logWarning(`${name} is not rebuilt: it is ahead of the log.`)
      return false
    }
    if (yield* continues(log, database, part)) return true
    yield* Effect.logWarning(`${name} belongs to another log and is rebuilt.`)
    yield* rebuild
    return true
  })
  if (sharing === undefined) {
    if (!(yield* ensureCurrent)) return
    // A database found damaged is no longer at its place.
    const isLost = () => database.place() === "lost"
    yield* Effect.catchIf(fill(log, database, blueprint), isLost, () => rebuild)
    yield* retrying(name, following, stall)
    return
  }
  yield* Effect.forkScoped(sharing.watch(waits.wake))
  const turns = sharing.turn.pipe(
    Effect.andThen(ensureCurrent),
    Effect.flatMap((belongs) => (belongs ? following : Effect.never)),
  )
  yield* retrying(name, Effect.scoped(turns), stall)
  // A damaged log never catches up, so nothing waits for it: existing rows stay readable.
  if (!(yield* belongsTogether)) return
  const { warn } = warnOnce(name)
  yield* caughtUp({ log, database, part, report: warn, waitFor: waits.waitFor })
})

/**
 * Keeps a blueprint's tables up to date with the log for the lifetime of the scope.
 *
 * Returns once they show everything that the log held at the call. Tables that belong to another
 * log (after an older copy was restored, for example) are rebuilt.
 */
export const readModel = Effect.fnUntraced(function* <Tables>(blueprint: Blueprint<Tables>) {
  const log = yield* Log
  const database = yield* openDatabase(blueprint)
  const { part, service } = blueprint
  const position = () => database.checkpoint().position
  const stall = newStall(position)
  const waits = yield* makeWaiters(`The ${service} read model`, position)
  const { wake, waitFor } = waits

  // A rebuild's last stretch and its switch form one turn: no commit falls between two databases.
  const turn = yield* Semaphore.make(1)
  const projected = (stretch: ReadonlyArray<Entry>) =>
    blueprint.is_background === true
      ? projectSlowly(database, blueprint, stretch, waits)
      : project(database, blueprint, stretch)
  const write = (stretch: ReadonlyArray<Entry>) =>
    projected(stretch).pipe(
      Effect.andThen(Effect.sync(wake)),
      turn.withPermit,
      spannedFor(`projection ${service}`, () => commitsIn(stretch)),
    )

  // One rebuild at a time: all use the same temporary place.
  const building = yield* Semaphore.make(1)
  const build = Effect.gen(function* () {
    yield* logIsWhole
    const shadow = yield* database.shadow
    const checkpoint = database.checkpoint()
    const foreign = (yield* continues(log, database, part)) ? undefined : checkpoint
    yield* fill(log, shadow, blueprint)
    const last = Effect.andThen(fill(log, shadow, blueprint), database.replace(shadow, foreign))
    const is_replaced = yield* last.pipe(
      turn.withPermit,
      Effect.repeat({ until: (is_done) => is_done, times: replaces_max }),
    )
    if (!is_replaced) return yield* overtaken
    wake()
    return position()
  }).pipe(Effect.scoped)
  const rebuild = building.withPermit(build)

  const repair = repairWhenLost(`The ${service} read model`, database, build, building)
  const { gather_ms } = yield* Rest
  const gather = Effect.raceFirst(Effect.sleep(gather_ms), waits.awaited)
  const gathers = blueprint.is_background === true && gather_ms > 0
  const advance = (stretch: ReadonlyArray<Entry>) =>
    repair.pipe(
      Effect.andThen(write(stretch)),
      // After a full transaction more entries may be waiting already.
      Effect.andThen(gathers && isSmall(stretch) ? gather : Effect.void),
    )

  const following = Effect.suspend(() =>
    Stream.runForEachArray(sourceOf(log, blueprint.projections).follow(part, position()), advance),
  )
  yield* maintain({ log, database, blueprint, waits, rebuild, following, stall })
  yield* Effect.sleep(look_ms).pipe(Effect.andThen(repair), Effect.forever, Effect.forkScoped)

  const model: ReadModel<Tables> = {
    db: database.db,
    reader: database.reader,
    dump: database.dump,
    position: Effect.sync(position),
    waitFor,
    catchUp: Effect.flatMap(log.head(part), waitFor),
    rebuild,
    difference: building.withPermit(compareRebuild(log, database, blueprint)),
    waits: stall.waits,
    isReachable: database.sharing?.isReachable ?? (() => true),
  }
  return model
})

/** A read model that this process does not maintain. Its tables are opened but never written. */
export const unmaintained = Effect.fnUntraced(function* <Tables>(blueprint: Blueprint<Tables>) {
  const { db, reader, dump } = yield* openDatabase(blueprint)
  const detail = `This process does not maintain the ${blueprint.service} read model.`
  const refused = Effect.fail(new DatabaseUnusable({ detail }))
  const model: ReadModel<Tables> = {
    db,
    reader,
    dump,
    rebuild: refused,
    difference: refused,
    position: Effect.succeed(0),
    waitFor: () => Effect.void,
    catchUp: Effect.void,
    waits: () => undefined,
    isReachable: () => true,
    is_maintained: false,
  }
  return model
})
