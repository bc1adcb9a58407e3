/**
 * Processes: what runs by itself. A process folds its own view from the log and sends commands.
 *
 * It keeps nothing. Killed anywhere it starts again from the log, and a command that it sends
 * twice is done once, because the command's id is made from its cause.
 *
 * Source: DESIGN of the running system, 7.
 */
import { Clock, DateTime, Duration, Effect, Latch, Schedule, Stream } from "effect"
import { type Addressed, Commands, Unavailable } from "#actors/commands.ts"
import { Log, type LogUnavailable, type Part, type Recorded } from "#events/log.ts"

/** Commands of one process under way at the same moment. */
const sending_max = 16

/** Pause before asking a log again that could not be reached, in milliseconds. */
const retry_ms = 500

/** Longest sleep between two looks at what is due, in milliseconds: a clock may be set. */
const sleep_ms_max = 60_000

/** A command and what made it due. */
export interface Caused {
  /** The same for the same cause, for ever. */
  readonly command_id: string
  /** The position of the commit that made it due. */
  readonly cause?: string
  readonly addressed: Addressed<unknown>
}

export interface Due {
  readonly now: ReadonlyArray<Caused>
  /** When something becomes due next, as epoch milliseconds. */
  readonly next?: number
}

/** One run of a process: its view, behind two functions. */
export interface Run {
  /** Takes a commit into the view. It may see a commit twice. */
  readonly fold: (recorded: Recorded) => Effect.Effect<void, LogUnavailable>
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
  Effect.scoped(runOnce(process)).pipe(
    Effect.tapError(({ detail }) => Effect.logWarning(`${process.name} waits: ${detail}`)),
    Effect.retry(Schedule.spaced(retry_ms)),
    Effect.annotateLogs("process", process.name),
  )

const runOnce = Effect.fnUntraced(function* ({ name, part, from, start }: Process) {
  const log = yield* Log
  const { fold, due } = yield* start
  const news = yield* Latch.make(true)

  const begin = from === "lasts" ? yield* log.head(part) : yield* from
  if (from === "lasts") yield* Stream.runForEach(log.lasts(part), fold)

  const reading = Stream.runForEachArray(log.follow(part, begin), (stretch) =>
    Effect.andThen(Effect.forEach(stretch, fold, { discard: true }), news.open),
  )
  return yield* Effect.raceFirst(Effect.andThen(reading, Effect.never), acting(name, due, news))
})

/** Sends what is due, then sleeps until something is, or until the log says something new. */
const acting = Effect.fnUntraced(function* (
  name: string,
  due: Run["due"],
  news: Latch.Latch,
): Effect.fn.Return<never, never, Commands> {
  const commands = yield* Commands
  // What was answered and is due all the same, as a refused command is: not sent again.
  let answered = new Set<string>()

  while (true) {
    yield* news.close
    const now = yield* Clock.currentTimeMillis
    const all = due(now)
    const ids = new Set(all.now.map(({ command_id }) => command_id))
    answered = answered.intersection(ids)
    const open = all.now.filter(({ command_id }) => !answered.has(command_id))
    const at = DateTime.formatIso(DateTime.makeUnsafe(now))

    const failed = yield* Effect.forEach(
      open,
      ({ command_id, cause, addressed }) =>
        commands
          .send(
            { command_id, actor: name, at, ...(cause === undefined ? {} : { cause }) },
            addressed,
          )
          .pipe(
            Effect.as(false),
            Effect.catch((refusal) => {
              if (refusal instanceof Unavailable) return Effect.succeed(true)
              return Effect.as(Effect.logDebug(`Refused: ${String(refusal)}`), false)
            }),
            Effect.tap((unavailable) => Effect.sync(() => unavailable || answered.add(command_id))),
          ),
      { concurrency: sending_max },
    )

    const until = all.next === undefined ? sleep_ms_max : all.next - now
    const pause = failed.includes(true) ? retry_ms : Math.max(0, Math.min(until, sleep_ms_max))
    yield* Effect.raceFirst(news.await, Effect.sleep(Duration.millis(pause)))
  }
})
