/** `almanac audit state`: the state of one aggregate at a time or position. */
import { Console, DateTime, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { Instance } from "#adapters/data-folder/instance-file.ts"
import { time } from "#cli/audit/flags.ts"
import { lastPosition, lastPositionOf, requirePast, requireReached } from "#cli/audit/log-end.ts"
import { CannotRun } from "#cli/audit/outcome.ts"
import { callInstance, instance, isNotFound } from "#cli/instance.ts"
import { settings } from "#cli/root.ts"
import { parseStream } from "#events/log.ts"
import { type AggregateName, type Moment, stateAt } from "#projections/system/history.ts"
import type { Settings } from "#schemas/settings.ts"
import { AuditState } from "#schemas/system/audit.ts"
import { attachedLogReadOnly } from "#server/session.ts"

const Name = Schema.String.check(
  Schema.isPattern(/^[\w-]+\.[\w-]+\.[\w-]+$/, { expected: "service.aggregate.id" }),
)
const State = Schema.fromJsonString(AuditState)

const nameOf = (stream: string): AggregateName => {
  const { name, id } = parseStream(stream)
  const [service = "", aggregate = ""] = name.split(".")
  return { service, aggregate, id }
}

/** Maximum position in a URL: 15 digits. */
const position_max = 10 ** 15 - 1

const pathOf = ({ service, aggregate, id }: AggregateName, moment: Moment) => {
  const query =
    "at" in moment
      ? { at: DateTime.formatIso(DateTime.makeUnsafe(moment.at)) }
      : { position: String(moment.position) }
  return `/v1/admin/audit/${service}/${aggregate}/${id}?${new URLSearchParams(query)}`
}

/** Requests the state from a running instance; undefined if the aggregate did not exist. */
const stateBy = (running: Instance, of: Settings, path: string) =>
  callInstance(running, of, "GET", path).pipe(
    Effect.flatMap(Schema.decodeEffect(State)),
    Effect.catchIf(isNotFound, () => Effect.succeed(undefined)),
  )

export const state = Command.make(
  "state",
  {
    stream: Argument.String("aggregate").pipe(
      Argument.withDescription("Aggregate, service.aggregate.id"),
      Argument.withSchema(Name),
    ),
    at: time("at", "State at this time"),
    position: Flag.Int("position").pipe(
      Flag.withDescription("State after the commit at this position of the log"),
      Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: position_max }))),
      Flag.optional,
    ),
  },
  Effect.fn(function* ({ stream, at, position }) {
    const configured = yield* settings
    if (Option.isSome(at) && Option.isSome(position)) {
      return yield* new CannotRun({ message: "Use either --at or --position, not both." })
    }
    const name = nameOf(stream)
    yield* requirePast("--at", Option.getOrUndefined(at))
    /** The requested moment, or now, in a log that ends at `last`. */
    const momentIn = Effect.fnUntraced(function* (last: number) {
      const requested = Option.getOrElse(position, () => last)
      yield* requireReached(requested, last)
      const moment: Moment = Option.isSome(at) ? { at: at.value } : { position: requested }
      return moment
    })
    const running = yield* instance(configured)
    const fromLog = Effect.gen(function* () {
      return yield* stateAt(name, yield* momentIn(yield* lastPosition))
    })
    const fromInstance = Effect.fnUntraced(function* (by: Instance) {
      const moment = yield* momentIn(yield* lastPositionOf(by, configured))
      return yield* stateBy(by, configured, pathOf(name, moment))
    })
    const found = yield* running === undefined
      ? Effect.provide(fromLog, attachedLogReadOnly(configured))
      : fromInstance(running)
    if (found === undefined) {
      return yield* new CannotRun({ message: `${stream} did not exist at that time.` })
    }
    yield* Console.log(JSON.stringify(found, null, 2))
  }),
).pipe(
  Command.withDescription(
    "Print the state of an aggregate, now or as of a time or position; exit code 2 if it did not " +
      "exist, or if the log has not reached that time or position",
  ),
  Command.withExamples([
    {
      command: "almanac audit state blob-storage.cluster.almanac --at 2026-11-20T12:00:00Z",
      description: "State of the cluster at noon",
    },
  ]),
)
