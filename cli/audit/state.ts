/** `almanac audit state`: the state of one aggregate at a time or position. */
import { Console, DateTime, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { Instance } from "#adapters/data-folder/instance-file.ts"
import { time } from "#cli/audit/flags.ts"
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

/** The current state: no commit has this position. */
const now: Moment = { position: Number.MAX_SAFE_INTEGER }

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
      : { position: String(Math.min(moment.position, position_max)) }
  return `/v1/admin/audit/${service}/${aggregate}/${id}?${new URLSearchParams(query)}`
}

/** Requests the state from a running instance. CannotRun if the aggregate did not exist. */
const stateBy = (running: Instance, of: Settings, path: string) =>
  callInstance(running, of, "GET", path).pipe(
    Effect.flatMap(Schema.decodeEffect(State)),
    Effect.catchIf(isNotFound, ({ message }) => new CannotRun({ message })),
  )

export const state = Command.make(
  "state",
  {
    stream: Argument.String("aggregate").pipe(
      Argument.withDescription("service.aggregate.id"),
      Argument.withSchema(Name),
    ),
    at: time("at", "As of this time"),
    position: Flag.Int("position").pipe(
      Flag.withDescription("As of this position of the log"),
      Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: position_max }))),
      Flag.optional,
    ),
  },
  Effect.fn(function* ({ stream, at, position }) {
    const configured = yield* settings
    if (Option.isSome(at) && Option.isSome(position)) {
      return yield* new CannotRun({ message: "Give --at or --position, not both." })
    }
    const name = nameOf(stream)
    const moment: Moment = Option.isSome(at)
      ? { at: at.value }
      : Option.match(position, { onNone: () => now, onSome: (position) => ({ position }) })
    const running = yield* instance(configured)
    const found =
      running === undefined
        ? yield* Effect.provide(stateAt(name, moment), attachedLogReadOnly(configured))
        : yield* stateBy(running, configured, pathOf(name, moment))
    if (found === undefined) {
      return yield* new CannotRun({ message: `The log held nothing of ${stream} then.` })
    }
    yield* Console.log(JSON.stringify(found, null, 2))
  }),
).pipe(
  Command.withDescription(
    "One aggregate's state, now or as of a time or position; exit code 2 where it was not there",
  ),
  Command.withExamples([
    {
      command: "almanac audit state blob-storage.cluster.almanac --at 2026-11-20T12:00:00Z",
      description: "The cluster as it was at noon",
    },
  ]),
)
