/** `almanac log`: the log's size and generations. */

import { Console, Effect, Layer } from "effect"
import { Command } from "effect/cli"
import { LogStanding, warningOf } from "#actors/system/log-standing.ts"
import { RollFailed, rollLog } from "#adapters/log/roll.ts"
import { logStanding } from "#adapters/log/size-monitor.ts"
import { json } from "#cli/audit/flags.ts"
import { summaries } from "#cli/client/summaries.ts"
import { acceptLossCommand } from "#cli/log/accept-loss.ts"
import { inUseReason } from "#cli/log/exclusive-access.ts"
import { acknowledgeCommand, quarantine } from "#cli/log/quarantine.ts"
import { settings } from "#cli/root.ts"
import type { LogFigures } from "#schemas/system/audit.ts"
import { attachedBus, busAlone, generations, standing, watching } from "#server/session.ts"

const figuresLine = ({ generation, position, aggregates, bytes, limit_bytes }: LogFigures) => {
  const limit = limit_bytes === null ? "without a limit" : `of ${limit_bytes}`
  return (
    `generation ${generation}: position ${position}, ${aggregates} aggregates, ` +
    `${bytes} bytes ${limit}`
  )
}

const show = Command.make(
  "show",
  { json },
  Effect.fn(function* ({ json }) {
    const configured = yield* settings
    const found = yield* Effect.flatMap(LogStanding, ({ figures }) => figures).pipe(
      Effect.provide(logStanding(standing(configured))),
      Effect.provide(attachedBus(configured)),
    )
    yield* Console.log(json ? JSON.stringify(found) : figuresLine(found))
    const warning = warningOf(found)
    if (warning !== undefined) yield* Console.error(warning.text)
  }),
).pipe(
  Command.withDescription("Show the size of the log and its limit"),
  Command.withExamples([{ command: "almanac log show", description: "Size and limit" }]),
)

const roll = Command.make(
  "roll",
  {},
  Effect.fn(function* () {
    const configured = yield* settings
    const why = yield* inUseReason(configured)
    if (why !== undefined) return yield* new RollFailed({ message: why })
    const options = generations(configured)
    const { generation, base, aggregates, archive_bytes } = yield* Effect.provide(
      rollLog(options),
      Layer.provideMerge(watching(configured), busAlone(configured)),
    )
    const done =
      archive_bytes === undefined
        ? "already exists; leftovers of the previous one were removed"
        : `begins after position ${base} with ${aggregates} aggregates`
    yield* Console.log(`generation ${generation} ${done}`)
    yield* Console.log(
      `${options.folder} holds the previous generations, which are part of the log: back it up`,
    )
  }),
).pipe(
  Command.withDescription(
    "Begin a new generation: archive the log to a file, and continue from the last states",
  ),
  Command.withExamples([
    {
      command: "almanac log roll",
      description: "No server may be running; safe to interrupt and repeat",
    },
  ]),
)

export const log = Command.make("log").pipe(
  Command.withDescription(summaries.log),
  Command.withExamples([{ command: "almanac log show", description: "Size and limit of the log" }]),
  Command.withSubcommands([show, roll, acceptLossCommand, quarantine, acknowledgeCommand]),
)
