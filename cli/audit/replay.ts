/** `almanac audit replay`: prints a range of the log as it is stored. */
import { Console, DateTime, Effect, Option, Schema, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { time } from "#cli/audit/flags.ts"
import { lastPosition, requirePast, requireReached } from "#cli/audit/log-end.ts"
import { settings } from "#cli/root.ts"
import { Log, type Part, type Recorded } from "#events/log.ts"
import { attachedLogReadOnly } from "#server/session.ts"

export interface LogRange {
  readonly part: Part
  /** Positions, both inclusive. */
  readonly first?: number | undefined
  readonly last?: number | undefined
  /** Epoch milliseconds; `to` is exclusive. */
  readonly from?: number | undefined
  readonly to?: number | undefined
  /** Factor of the original speed; undefined: without pauses. */
  readonly speed?: number | undefined
}

const msOf = ({ commit }: Recorded) => DateTime.toEpochMillis(DateTime.makeUnsafe(commit.at))

const line = ({ position, stream, hash, commit }: Recorded) =>
  JSON.stringify({ position, stream, hash, commit })

/**
 * Prints the commits of a range, oldest first, as NDJSON. CannotRun if the range begins after the
 * end of the log.
 */
export const replayLog = Effect.fnUntraced(function* (range: LogRange) {
  const { part, first = 1, last, from, to, speed } = range
  const log = yield* Log
  const end = yield* lastPosition
  // An empty log has no positions, and its replay is empty.
  if (end > 0) yield* requireReached(first, end)
  let previous_at: number | undefined

  /** Waits for the original pause, divided by the speed. */
  const pace = (recorded: Recorded) => {
    if (speed === undefined) return Effect.void
    const at = msOf(recorded)
    const pause = previous_at === undefined ? 0 : (at - previous_at) / speed
    previous_at = at
    return pause > 0 ? Effect.sleep(pause) : Effect.void
  }
  yield* log.read(part, first - 1).pipe(
    Stream.takeWhile(({ position }) => last === undefined || position <= last),
    Stream.filter((one) => from === undefined || msOf(one) >= from),
    Stream.filter((one) => to === undefined || msOf(one) < to),
    Stream.runForEach((one) => Effect.andThen(pace(one), Console.log(line(one)))),
  )
  if (last !== undefined && last > end) {
    yield* Console.error(`The log ends at position ${end}, before --last ${last}.`)
  }
})

const Positions = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))
const Speed = Schema.Finite.check(Schema.isGreaterThan(0))
const PartText = Schema.String.check(
  Schema.isPattern(/^[\w-]+(\.[\w-]+){0,2}$/, { expected: "service[.aggregate[.id]]" }),
)

const position = (name: string, description: string) =>
  Flag.Int(name).pipe(Flag.withDescription(description), Flag.withSchema(Positions), Flag.optional)

export const replay = Command.make(
  "replay",
  {
    part: Flag.String("of").pipe(
      Flag.withDescription("Only this service, service.aggregate or service.aggregate.id"),
      Flag.withSchema(PartText),
      Flag.optional,
    ),
    first: position("first", "First position"),
    last: position("last", "Last position"),
    from: time("from", "Start time"),
    to: time("to", "End time, exclusive"),
    speed: Flag.Finite("speed").pipe(
      Flag.withDescription("Factor of the original speed (default: without pauses)"),
      Flag.withSchema(Speed),
      Flag.optional,
    ),
  },
  Effect.fn(function* ({ part, first, last, from, to, speed }) {
    const configured = yield* settings
    const range: LogRange = {
      part: Option.getOrElse(part, () => ""),
      first: Option.getOrUndefined(first),
      last: Option.getOrUndefined(last),
      from: Option.getOrUndefined(from),
      to: Option.getOrUndefined(to),
      speed: Option.getOrUndefined(speed),
    }
    yield* requirePast("--from", range.from)
    yield* Effect.provide(replayLog(range), attachedLogReadOnly(configured))
  }),
).pipe(
  Command.withDescription("Print a range of the log as stored, one JSON commit per line"),
  Command.withExamples([
    {
      command: "almanac audit replay --of blob-storage.cluster.almanac --first 1 --last 500",
      description: "Commits of one aggregate among the first 500",
    },
    {
      command: "almanac audit replay --from 2026-11-20T10:00:00Z --speed 60",
      description: "Commits since ten o'clock, one minute per second",
    },
  ]),
)
