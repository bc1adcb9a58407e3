/**
 * Background processes. A process folds its own view from the log and sends commands.
 *
 * It stores nothing. After a kill it restarts from the log, and a command that it sends twice is
 * executed once, because the command's id is derived from its cause.
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
import { newBackoff } from "#actors/backoff.ts"
import { type Addressed, Commands, Unavailable } from "#actors/commands.ts"
import { inTerm } from "#actors/leases.ts"
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

/** Maximum number of concurrent items per process: as many as fit into one write of the log. */
const under_way_max = 256

/** Pause before the next attempt to reach the log, in milliseconds. */
const retry_ms = 500

/** Longest sleep between two checks for due items, in milliseconds: the clock may be changed. */
export const sleep_ms_max = 60_000

/** Commands that are executed atomically. */
export type Batch = ReadonlyArray<Addressed<unknown>>

/** A due item: what to do, and its cause. */
export interface Caused {
  /** Always the same for the same cause. */
  readonly command_id: string
  /** The position of the commit that made it due. */
  readonly cause?: string
  /**
   * The commands to send, or external work that returns them. The work must be idempotent: it may
   * run again after a kill or a failure.
   */
  readonly batch: Batch | Effect.Effect<Batch, Unavailable>
}

export interface Due {
  readonly now: ReadonlyArray<Caused>
  /** When something becomes due next, as epoch milliseconds. */
  readonly next?: number
}

/** Merges the due items of several parts of a process. */
export const mergeDue = (...parts: ReadonlyArray<Due>): Due => ({
  now: parts.flatMap(({ now }) => now),
  next: Math.min(...parts.map(({ next }) => next ?? Infinity)),
})

/** One run of a process, which encapsulates its view. */
export interface Run {
  /** Applies a commit to the view. It may receive a commit twice. */
  readonly fold: (recorded: Recorded) => Effect.Effect<void, LogUnavailable>
  /** Handles an unreadable entry; most views ignore them. */
  readonly skip?: (entry: Unreadable) => Effect.Effect<void, LogUnavailable>
  /** The items due at `now` (epoch milliseconds) that are not done yet. */
  readonly due: (now: number) => Due
}

export interface Process {
  readonly name: string
  readonly part: Part
  /** Where to start: with the last commit of each stream, or after a position. */
  readonly from: "lasts" | Effect.Effect<number, LogUnavailable, Log>
  readonly start: Effect.Effect<Run, LogUnavailable, Log>
}

/** Runs a process until it is interrupted. It retries while the log is unreachable. */
export const runProcess = (process: Process) =>
  Effect.suspend(() => {
    const backoff = newBackoff()
    const waits = Effect.fnUntraced(function* ({ detail }: LogUnavailable) {
      const { is_logged, times } = yield* backoff
      if (is_logged) yield* Effect.logWarning(`${process.name} is waiting${times}: ${detail}`)
    })
    return Effect.scoped(runOnce(process)).pipe(
      Effect.tapError(waits),
      Effect.retry(Schedule.spaced(retry_ms)),
      Effect.annotateLogs("process", process.name),
    )
  })

/**
 * Like `runProcess`, for processes without a lease, which every server runs. They restart after a
 * defect; repeated defects lengthen the pauses and thin out the log messages.
 */
export const keepRunning = (process: Process) =>
  Effect.suspend(() => {
    const backoff = newBackoff()
    const pause = Effect.fnUntraced(function* (defect: unknown) {
      const { is_logged, times, pause_ms } = yield* backoff
      if (is_logged) yield* Effect.logError(`${process.name} failed and restarts${times}.`, defect)
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
  const wake = yield* Latch.make(true)

  let begin = from === "lasts" ? yield* log.head(part) : yield* from
  if (from === "lasts") {
    yield* Stream.runForEach(log.lasts(part), (recorded) => {
      // The newest commit may be later than `begin`; following must not deliver older ones again.
      begin = Math.max(begin, recorded.position)
      return fold(recorded)
    })
  }

  const take = (entry: Entry) => (isReadable(entry) ? fold(entry) : (skip?.(entry) ?? Effect.void))
  const entries = skip === undefined ? log.follow(part, begin) : log.followEntries(part, begin)
  const reading = Stream.runForEachArray(entries, (chunk) =>
    Effect.andThen(Effect.forEach(chunk, take, { discard: true }), wake.open),
  )
  return yield* Effect.raceFirst(
    Effect.andThen(reading, Effect.never),
    acting(name, { due, wake, traces }),
  )
})

/** Maximum number of remembered traces: the items that a commit causes usually start soon. */
const traces_max = 1000

/** The traces of recent commits by position, if tracing is on. */
const newTraces = (context: Context.Context<never>) => {
  const known = new Map<string, Trace>()
  const is_traced = isTraced(context)
  return {
    note: (recorded: Recorded) => {
      // Without tracing, do not parse the commit for its trace.
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
  readonly wake: Latch.Latch
  readonly traces: ReturnType<typeof newTraces>
}

/** Starts due items, then sleeps until the next one is due or a commit arrives. */
const acting = Effect.fnUntraced(function* (name: string, { due, wake, traces }: Acting) {
  const commands = yield* Commands
  const fibers = yield* FiberSet.make<void, never>()
  const under_way = new Set<string>()
  // Items that are still due after a response, like rejected commands: they are not sent again.
  let responded = new Set<string>()
  /** Epoch milliseconds before which failed items are not retried. */
  let rest_until = 0
  let has_more = false

  const end = (command_id: string, is_answered: boolean) =>
    Effect.gen(function* () {
      under_way.delete(command_id)
      if (is_answered) responded.add(command_id)
      else rest_until = (yield* Clock.currentTimeMillis) + retry_ms
      const has_room = has_more && under_way.size <= under_way_max / 2
      if (has_room || !is_answered) yield* wake.open
    })

  const looking = Effect.gen(function* () {
    yield* wake.close
    if (under_way.size >= under_way_max) {
      // There may be thousands of due items: check them only when some can start.
      has_more = true
      return yield* wake.await
    }
    const now = yield* Clock.currentTimeMillis
    const all = due(now)
    responded = responded.intersection(new Set(all.now.map(({ command_id }) => command_id)))
    const open = all.now.filter(
      ({ command_id }) => !responded.has(command_id) && !under_way.has(command_id),
    )
    const resting = open.length > 0 && now < rest_until
    const begun = resting ? [] : open.slice(0, under_way_max - under_way.size)
    has_more = begun.length < open.length
    for (const item of begun) {
      under_way.add(item.command_id)
      yield* FiberSet.run(
        fibers,
        execute(commands, name, now, item).pipe(
          underTrace(traces.of(item.cause)),
          Effect.flatMap((done) => end(item.command_id, done)),
        ),
      )
    }
    const until = Math.min((all.next ?? Infinity) - now, resting ? rest_until - now : Infinity)
    const pause = Math.max(0, Math.min(until, sleep_ms_max))
    yield* Effect.raceFirst(wake.await, Effect.sleep(Duration.millis(pause)))
  })
  // A defect of an item is a defect of the process.
  return yield* Effect.raceFirst(Effect.forever(looking), FiberSet.join(fibers))
})

/** Executes an item. False if a dependency is unavailable; the item is retried then. */
const execute = (
  commands: Commands["Service"],
  name: string,
  now: number,
  { command_id, cause, batch }: Caused,
): Effect.Effect<boolean> => {
  const at = DateTime.formatIso(DateTime.makeUnsafe(now))
  const actor = `process:${name}`
  const origin = { command_id, actor, at, ...(cause === undefined ? {} : { cause }) }
  const prepared = Effect.isEffect(batch) ? batch : Effect.succeed(batch)
  return Effect.flatMap(inTerm(prepared), (ready) =>
    ready.length === 0 ? Effect.void : inTerm(commands.send(origin, ...ready)),
  ).pipe(
    Effect.as(true),
    Effect.catch((refusal) => {
      if (refusal instanceof Unavailable) return Effect.succeed(false)
      return Effect.as(Effect.logDebug(`Command rejected: ${String(refusal)}`), true)
    }),
  )
}
