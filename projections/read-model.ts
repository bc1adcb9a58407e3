/**
 * Read models: what the log says, kept as tables.
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
import { mending } from "#projections/mending.ts"
import { onceTold } from "#projections/once-told.ts"
import { eventsIn, type Projection, slices, sourceOf, writesOf } from "#projections/projection.ts"
import { type Behind, type Waiting, waiting } from "#projections/waiting.ts"

/** Pause before a read model asks a log again that could not be reached, in milliseconds. */
const retry_ms = 500

/** How often a read model looks whether others still find it, in milliseconds. */
const look_ms = 2_000

/** Rows of a difference that are told; all are counted. */
const differences_max = 100

/** Events projected at one go: a few milliseconds, between which others have the thread. */
const slice_events_max = 500

/** As many of a model in the background, whose events cost some 40 us each: two milliseconds. */
const background_events_max = 50

/** How often a rebuild catches up with another process that writes: it is a moment behind. */
const replaces_max = 50

const overtaken = new DatabaseUnusable({ detail: "It is written faster than it can be built." })

const ns_per_ms = 1e6

/** How a model in the background leaves the thread to others, in milliseconds. */
export interface Rests {
  /** The rest after so long a piece of work; 0 lets the others have one turn. */
  readonly after: (took_ms: number) => number
  /** Little is written with what comes in so long: a transaction costs as much as tens of rows. */
  readonly gather_ms: number
}

export const Rest = Context.Reference<Rests>("projections/Rest", {
  defaultValue: () => ({ after: () => 0, gather_ms: 0 }),
})

export interface ReadModel<Tables> extends Pick<Database<Tables>, "db" | "reader" | "dump"> {
  /** The last commit shown. */
  readonly position: Effect.Effect<number>
  /** Waits until the commit at `position` shows. */
  readonly waitFor: (position: number) => Effect.Effect<void, Behind>
  /** Waits until all shows that the log holds now: before saying that something is not there. */
  readonly catchUp: Effect.Effect<void, Behind | LogUnavailable>
  /** Builds it from nothing beside, then switches; answers the position it shows then. */
  readonly rebuild: Effect.Effect<number, LogUnavailable | DatabaseUnusable>
  /** Builds it beside from nothing and compares: what is kept is not touched. */
  readonly difference: Effect.Effect<Difference, LogUnavailable | DatabaseUnusable>
  /** Why it waits at its position; undefined while it does not. */
  readonly waits: () => string | undefined
  /** Whether its database could be reached when it was last asked. */
  readonly is_reached: () => boolean
  /** False where this process does not follow the log for it: nothing can be asked of it. */
  readonly is_kept?: false
}

/** What a read model and its rebuild do not have in common. */
export interface Difference extends Differences {
  /** Both show the log up to here. */
  readonly position: number
}

/** What a service's read model is made of. */
export interface Blueprint<Tables> {
  readonly service: string
  readonly version: number
  readonly part: Part
  readonly projections: ReadonlyArray<Projection<Tables>>
  /** Whether it is kept when others leave time for it; at once where somebody waits for it. */
  readonly is_background?: boolean
}

const statements =
  <Tables>({ projections }: Blueprint<Tables>) =>
  (compiles: Kysely<Tables>) =>
    projections.flatMap(({ create }) => create(compiles).map((table) => table.compile().sql))

/** Writes a stretch of the log, each slice as one transaction; what shows already is left out. */
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

/** Whether a stretch is less than a model in the background writes at one go. */
const isLittle = (stretch: ReadonlyArray<Entry>) =>
  stretch.reduce((sum, entry) => sum + eventsIn(entry), 0) < background_events_max

/** As `project`, and no longer than a few milliseconds without a rest, also within a commit. */
const projectSlowly = Effect.fnUntraced(function* <Tables>(
  database: Database<Tables>,
  { projections }: Blueprint<Tables>,
  stretch: ReadonlyArray<Entry>,
  { isAwaited, awaited, wake }: Pick<Waiting, "isAwaited" | "awaited" | "wake">,
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

/** Opens a blueprint's database, empty or as it was left. */
export const openDatabase = <Tables>(blueprint: Blueprint<Tables>) =>
  Effect.flatMap(Databases, (databases) =>
    databases.open<Tables>({ ...blueprint, create: statements(blueprint) }),
  )

/** Everything of the log after what the database shows, up to `until` where that is given. */
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
 * What a database and its rebuild do not have in common. Most is built first; then what is kept is
 * looked at as it is at that moment, and the rest up to there is built after that.
 */
const differing = <Tables>(
  log: Log["Service"],
  database: Database<Tables>,
  blueprint: Blueprint<Tables>,
) =>
  Effect.gen(function* () {
    const beside = yield* database.beside
    // What is kept shows this much, and never less: nothing beside is ahead of it.
    yield* fill(log, beside, blueprint, database.checkpoint().position)
    const comparing = yield* database.compare(beside, differences_max)
    yield* fill(log, beside, blueprint, comparing.position)
    return { position: comparing.position, ...(yield* comparing.differences) }
  }).pipe(Effect.scoped)

/**
 * Follows the log in the background whatever fails: another program may have locked the file, or
 * the disk be full, and a commit that this release cannot read waits for one that can.
 */
const persisting = <E extends { readonly detail: string }>(
  name: string,
  following: Effect.Effect<void, E>,
  stall: Stall,
) => {
  const { tell, forget } = onceTold(name)
  return following.pipe(
    Effect.catchDefect((defect) => Effect.fail({ detail: String(defect) })),
    Effect.tapError(({ detail }) => {
      if (stall.fail(detail)) forget()
      return tell(`waits: ${detail}`)
    }),
    Effect.retry(Schedule.spaced(retry_ms)),
    Effect.forkScoped,
  )
}

interface Kept<Tables> {
  readonly log: Log["Service"]
  readonly database: Database<Tables>
  readonly blueprint: Blueprint<Tables>
  readonly waits: Waiting
  readonly rebuild: Effect.Effect<number, LogUnavailable | DatabaseUnusable>
  readonly following: Effect.Effect<void, LogUnavailable | DatabaseUnusable>
  readonly stall: Stall
}

/** Begins to follow the log, alone or in turns with others; answers once what it holds shows. */
const keep = Effect.fnUntraced(function* <Tables>(kept: Kept<Tables>) {
  const { log, database, blueprint, waits, rebuild, following, stall } = kept
  const { part, service } = blueprint
  const { sharing } = database
  const name = `The ${service} read model`
  const belongsTogether = belongs({ log, database, part, service })
  const belonging = Effect.gen(function* () {
    if (!(yield* belongsTogether)) {
      yield* Effect.logWarning(`${name} stays as it is: it shows more than the log holds.`)
      return false
    }
    if (yield* continues(log, database, part)) return true
    yield* Effect.logWarning(`${name} is of another log: building it again.`)
    yield* rebuild
    return true
  })
  if (sharing === undefined) {
    if (!(yield* belonging)) return
    // What was found damaged is no longer in its place.
    const isGone = () => database.place() === "lost"
    yield* Effect.catchIf(fill(log, database, blueprint), isGone, () => rebuild)
    yield* persisting(name, following, stall)
    return
  }
  yield* Effect.forkScoped(sharing.watch(waits.wake))
  const turns = sharing.turn.pipe(
    Effect.andThen(belonging),
    Effect.flatMap((belongs) => (belongs ? following : Effect.never)),
  )
  yield* persisting(name, Effect.scoped(turns), stall)
  // Who waits for a damaged log to catch up would wait for ever: what shows stays readable.
  if (!(yield* belongsTogether)) return
  const { tell } = onceTold(name)
  yield* caughtUp({ log, database, part, tell, waitFor: waits.waitFor })
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
  const { part, service } = blueprint
  const position = () => database.checkpoint().position
  const stall = newStall(position)
  const waits = yield* waiting(`The ${service} read model`, position)
  const { wake, waitFor } = waits

  // A rebuild's last stretch and its switch are one turn: no commit falls between two databases.
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

  // One at a time: each has the same place beside.
  const building = yield* Semaphore.make(1)
  const build = Effect.gen(function* () {
    yield* logIsWhole
    const beside = yield* database.beside
    const shown = database.checkpoint()
    const foreign = (yield* continues(log, database, part)) ? undefined : shown
    yield* fill(log, beside, blueprint)
    const last = Effect.andThen(fill(log, beside, blueprint), database.replace(beside, foreign))
    const is_replaced = yield* last.pipe(
      turn.withPermit,
      Effect.repeat({ until: (is_done) => is_done, times: replaces_max }),
    )
    if (!is_replaced) return yield* overtaken
    wake()
    return position()
  }).pipe(Effect.scoped)
  const rebuild = building.withPermit(build)

  const mend = mending(`The ${service} read model`, database, build, building)
  const { gather_ms } = yield* Rest
  const gather = Effect.raceFirst(Effect.sleep(gather_ms), waits.awaited)
  const gathers = blueprint.is_background === true && gather_ms > 0
  const advance = (stretch: ReadonlyArray<Entry>) =>
    mend.pipe(
      Effect.andThen(write(stretch)),
      // Where there was enough for a transaction, more may be there already.
      Effect.andThen(gathers && isLittle(stretch) ? gather : Effect.void),
    )

  const following = Effect.suspend(() =>
    Stream.runForEachArray(sourceOf(log, blueprint.projections).follow(part, position()), advance),
  )
  yield* keep({ log, database, blueprint, waits, rebuild, following, stall })
  yield* Effect.sleep(look_ms).pipe(Effect.andThen(mend), Effect.forever, Effect.forkScoped)

  const model: ReadModel<Tables> = {
    db: database.db,
    reader: database.reader,
    dump: database.dump,
    position: Effect.sync(position),
    waitFor,
    catchUp: Effect.flatMap(log.head(part), waitFor),
    rebuild,
    difference: building.withPermit(differing(log, database, blueprint)),
    waits: stall.waits,
    is_reached: database.sharing?.is_reached ?? (() => true),
  }
  return model
})

/** A read model that this process does not keep. Its tables are opened and left as they are. */
export const unkept = Effect.fnUntraced(function* <Tables>(blueprint: Blueprint<Tables>) {
  const { db, reader, dump } = yield* openDatabase(blueprint)
  const detail = `The ${blueprint.service} read model is not kept by this process.`
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
    is_reached: () => true,
    is_kept: false,
  }
  return model
})
