/**
 * Processes: what runs by itself. A process folds its own view from the log and sends commands.
 *
 * It keeps nothing. Killed anywhere it starts again from the log, and a command that it sends
 * twice is done once, because the command's id is made from its cause.
 *
 * Source: DESIGN of the running system, 7.
 */
import {
  Clock,
  type Context,
  DateTime,
  Duration,
  Effect,
  FiberSet,
  Latch,
  Schedule,
  Stream,
} from "effect"
import { type Addressed, Commands, Unavailable } from "#actors/commands.ts"
import { inTerm } from "#actors/leases.ts"
import { newTrouble } from "#actors/trouble.ts"
import {
  type Entry,
  isReadable,
  Log,
  type LogUnavailable,
  type Part,
  type Recorded,
  type Unreadable,
} from "#events/log.ts"
import { isTraced, type Trace, underTrace } from "#events/trace.ts"

/** What one process has under way at the same moment: as much as goes into one write of the log. */
const under_way_max = 256

/** Pause before asking a log again that could not be reached, in milliseconds. */
const retry_ms = 500

/** Longest sleep between two looks at what is due, in milliseconds: a clock may be set. */
export const sleep_ms_max = 60_000

/** Commands that happen together, or not at all. */
export type Batch = ReadonlyArray<Addressed<unknown>>

/** What is to be done, and what made it due. */
export interface Caused {
  /** The same for the same cause, for ever. */
  readonly command_id: string
  /** The position of the commit that made it due. */
  readonly cause?: string
  /**
   * What is sent. Or work outside, which answers what is sent of it: it may be done again, after a
   * kill or when it fails, so it must bear that.
   */
  readonly batch: Batch | Effect.Effect<Batch, Unavailable>
}

export interface Due {
  readonly now: ReadonlyArray<Caused>
  /** When something becomes due next, as epoch milliseconds. */
  readonly next?: number
}

/** What several parts of a process have to do. */
export const joined = (...parts: ReadonlyArray<Due>): Due => ({
  now: parts.flatMap(({ now }) => now),
  next: Math.min(...parts.map(({ next }) => next ?? Infinity)),
})

/** One run of a process: its view, behind two functions. */
export interface Run {
  /** Takes a commit into the view. It may see a commit twice. */
  readonly fold: (recorded: Recorded) => Effect.Effect<void, LogUnavailable>
  /** Takes what cannot be read, where it has a part in the view: in none, as a rule. */
  readonly skip?: (entry: Unreadable) => Effect.Effect<void, LogUnavailable>
  /** What is to be done at `now` (epoch milliseconds), for as long as it is not done. */
  readonly due: (now: number) => Due
}

export interface Process {
  readonly name: string
  readonly part: Part
  /** Where to begin: the last commit of each stream tells all, or every commit after a position. */
  readonly from: "lasts" | Effect.Effect<number, LogUnavailable, Log>
  readonly start: Effect.Effect<Run, LogUnavailable, Log>
}

/** Runs a process until it is interrupted. A log out of reach only delays it. */
export const runProcess = (process: Process) =>
  Effect.suspend(() => {
    const trouble = newTrouble()
    const waits = Effect.fnUntraced(function* ({ detail }: LogUnavailable) {
      const { is_told, times } = yield* trouble
      if (is_told) yield* Effect.logWarning(`${process.name} waits${times}: ${detail}`)
    })
    return Effect.scoped(runOnce(process)).pipe(
      Effect.tapError(waits),
      Effect.retry(Schedule.spaced(retry_ms)),
      Effect.annotateLogs("process", process.name),
    )
  })

/**
 * As `runProcess`, of what nobody takes over: every server has its own. After a defect it begins
 * again; one that lasts makes the pauses grow, and is told ever more rarely.
 */
export const keepRunning = (process: Process) =>
  Effect.suspend(() => {
    const trouble = newTrouble()
    const pause = Effect.fnUntraced(function* (defect: unknown) {
      const { is_told, times, pause_ms } = yield* trouble
      if (is_told) yield* Effect.logError(`${process.name} begins again${times}.`, defect)
      yield* Effect.sleep(Duration.millis(pause_ms))
    })
    return Effect.forever(Effect.catchDefect(runProcess(process), pause))
  })

const runOnce = Effect.fnUntraced(function* ({ name, part, from, start }: Process) {
  const log = yield* Log
  const run = yield* start
  const { due, skip } = run
  const traces = newTraces(yield* Effect.context<never>())
  const fold: Run["fold"] = (recorded) => {
    traces.note(recorded)
    return run.fold(recorded)
  }
  const news = yield* Latch.make(true)

  let begin = from === "lasts" ? yield* log.head(part) : yield* from
  if (from === "lasts") {
    yield* Stream.runForEach(log.lasts(part), (recorded) => {
      // What was written meanwhile is read already, and its stream must not go back in time.
      begin = Math.max(begin, recorded.position)
      return fold(recorded)
    })
  }

  const take = (entry: Entry) => (isReadable(entry) ? fold(entry) : (skip?.(entry) ?? Effect.void))
  const entries = skip === undefined ? log.follow(part, begin) : log.followEntries(part, begin)
  const reading = Stream.runForEachArray(entries, (stretch) =>
    Effect.andThen(Effect.forEach(stretch, take, { discard: true }), news.open),
  )
  return yield* Effect.raceFirst(
    Effect.andThen(reading, Effect.never),
    acting(name, { due, news, traces }),
  )
})

/** Commits whose trace is remembered: what they make due is begun soon after as a rule. */
const traces_max = 1000

/** The traces of the last commits by position, where anybody collects them. */
const newTraces = (context: Context.Context<never>) => {
  const known = new Map<string, Trace>()
  const is_traced = isTraced(context)
  return {
    note: (recorded: Recorded) => {
      // Where nobody collects, a commit is not looked into for it.
      const trace = is_traced ? recorded.commit.trace : undefined
      if (trace === undefined) return
      known.set(String(recorded.position), trace)
      const [oldest] = known.size > traces_max ? known.keys() : []
      if (oldest !== undefined) known.delete(oldest)
    },
    of: (position: string | undefined) =>
      position === undefined ? undefined : known.get(position),
  }
}

interface Acting {
  readonly due: Run["due"]
  readonly news: Latch.Latch
  readonly traces: ReturnType<typeof newTraces>
}

/** Begins what is due, then sleeps until something is, or until there is news. */
const acting = Effect.fnUntraced(function* (name: string, { due, news, traces }: Acting) {
  const commands = yield* Commands
  const fibers = yield* FiberSet.make<void, never>()
  const under_way = new Set<string>()
  // What was answered and is due all the same, as a refused command is: not sent again.
  let answered = new Set<string>()
  /** Epoch milliseconds before which what failed is not tried again. */
  let rest_until = 0
  let has_more = false

  const end = (command_id: string, is_answered: boolean) =>
    Effect.gen(function* () {
      under_way.delete(command_id)
      if (is_answered) answered.add(command_id)
      else rest_until = (yield* Clock.currentTimeMillis) + retry_ms
      const has_room = has_more && under_way.size <= under_way_max / 2
      if (has_room || !is_answered) yield* news.open
    })

  const looking = Effect.gen(function* () {
    yield* news.close
    if (under_way.size >= under_way_max) {
      // There may be thousands: they are looked through when some of them can begin.
      has_more = true
      return yield* news.await
    }
    const now = yield* Clock.currentTimeMillis
    const all = due(now)
    answered = answered.intersection(new Set(all.now.map(({ command_id }) => command_id)))
    const open = all.now.filter(
      ({ command_id }) => !answered.has(command_id) && !under_way.has(command_id),
    )
    const resting = open.length > 0 && now < rest_until
    const begun = resting ? [] : open.slice(0, under_way_max - under_way.size)
    has_more = begun.length < open.length
    for (const item of begun) {
      under_way.add(item.command_id)
      yield* FiberSet.run(
        fibers,
        doneOf(commands, name, now, item).pipe(
          underTrace(traces.of(item.cause)),
          Effect.flatMap((done) => end(item.command_id, done)),
        ),
      )
    }
    const until = Math.min((all.next ?? Infinity) - now, resting ? rest_until - now : Infinity)
    const pause = Math.max(0, Math.min(until, sleep_ms_max))
    yield* Effect.raceFirst(news.await, Effect.sleep(Duration.millis(pause)))
  })
  // A defect in one of them is a defect of the process.
  return yield* Effect.raceFirst(Effect.forever(looking), FiberSet.join(fibers))
})

/** Whether it was answered: false means that it could not be asked, and is asked again. */
const doneOf = (
  commands: Commands["Service"],
  actor: string,
  now: number,
  { command_id, cause, batch }: Caused,
): Effect.Effect<boolean> => {
  const at = DateTime.formatIso(DateTime.makeUnsafe(now))
  const origin = { command_id, actor, at, ...(cause === undefined ? {} : { cause }) }
  const asked = Effect.isEffect(batch) ? batch : Effect.succeed(batch)
  return Effect.flatMap(inTerm(asked), (ready) =>
    ready.length === 0 ? Effect.void : inTerm(commands.send(origin, ...ready)),
  ).pipe(
    Effect.as(true),
    Effect.catch((refusal) => {
      if (refusal instanceof Unavailable) return Effect.succeed(false)
      return Effect.as(Effect.logDebug(`Refused: ${String(refusal)}`), true)
    }),
  )
}
