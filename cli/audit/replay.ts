/** `almanac audit replay`: prints a range of the log as it is stored. */
import { Console, DateTime, Effect, Option, Schema, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { time } from "#cli/audit/flags.ts"
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

/** Prints the commits of a range, oldest first, as NDJSON. */
export const replayLog = Effect.fnUntraced(function* (range: LogRange) {
  const { part, first = 1, last, from, to, speed } = range
  const log = yield* Log
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
      Flag.withDescription("Only this part: service, service.aggregate or service.aggregate.id"),
      Flag.withSchema(PartText),
      Flag.optional,
    ),
    first: position("first", "First position"),
    last: position("last", "Last position"),
    from: time("from", "From this time on"),
    to: time("to", "Before this time"),
    speed: Flag.Finite("speed").pipe(
      Flag.withDescription("Times as fast as it happened; without it, at once"),
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
    yield* Effect.provide(replayLog(range), attachedLogReadOnly(configured))
  }),
).pipe(
  Command.withDescription("A stretch of the log as stored, one JSON commit a line"),
  Command.withExamples([
    {
      command: "almanac audit replay --of blob-storage.cluster.almanac --first 1 --last 500",
      description: "The commits of one aggregate among the first 500",
    },
    {
      command: "almanac audit replay --from 2026-11-20T10:00:00Z --speed 60",
      description: "All since ten o'clock, a minute in a second",
    },
  ]),
)
