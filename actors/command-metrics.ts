/** What is measured of commands: how they ended, how long they took, and how often others won. */
import { Context, Effect, Exit, Metric, Result } from "effect"
import type { Addressed } from "#actors/commands.ts"
import { counter, histogram } from "#schemas/metric.ts"

const ended = counter(
  "almanac_commands_total",
  "Commands, by aggregate and how they ended: done, rejected, unavailable or broken.",
)
const failed = counter(
  "almanac_command_failed_tries_total",
  "Tries of commands that came to nothing, most of them made again, by what happened.",
)
const duration = histogram(
  "almanac_command_duration_seconds",
  "From a command's arrival at its aggregate until it ended, its turn included.",
  [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15],
)

const ns_per_s = 1e9

/** Metrics live in the process: every context of ours leads to the same registry. */
const nowhere = Context.empty()

/** One series for each pair of labels, made once: there are some thirty aggregates. */
const seriesOf = <Input, State>(metric: Metric.Metric<Input, State>, label?: string) => {
  const all = new Map<string, Metric.Metric<Input, State>>()
  return (aggregate: string, value = "") => {
    const key = `${aggregate} ${value}`
    const known = all.get(key)
    if (known !== undefined) return known
    const more = label === undefined ? {} : { [label]: value }
    const made = Metric.withAttributes(metric, { aggregate, ...more })
    all.set(key, made)
    return made
  }
}

const endedOf = seriesOf(ended, "outcome")
const failedOf = seriesOf(failed, "reason")
const durationOf = seriesOf(duration)

const outcomeOf = (exit: Exit.Exit<Result.Result<unknown, unknown>, unknown>) => {
  if (Exit.isSuccess(exit)) return Result.isSuccess(exit.value) ? "done" : "rejected"
  return Exit.hasDies(exit) ? "broken" : "unavailable"
}

type Asked = ReadonlyArray<Pick<Addressed<unknown>, "to">>

/** Counts the commands by how the work for them ends; its time is the first one's. */
export const measuring =
  (commands: Asked) =>
  <A, F, E, R>(
    work: Effect.Effect<Result.Result<A, F>, E, R>,
  ): Effect.Effect<Result.Result<A, F>, E, R> =>
    Effect.clockWith((clock) => {
      const began = clock.monotonicTimeNanosUnsafe()
      return Effect.onExit(work, (exit) =>
        Effect.sync(() => {
          const outcome = outcomeOf(exit)
          const took_s = Number(clock.monotonicTimeNanosUnsafe() - began) / ns_per_s
          for (const { to } of commands) endedOf(to.name, outcome).updateUnsafe(1, nowhere)
          const [first] = commands
          if (first) durationOf(first.to.name).updateUnsafe(took_s, nowhere)
        }),
      )
    })

/** Counts a try that came to nothing. */
export const countFailedTry = (commands: Asked, reason: string) => {
  for (const { to } of commands) failedOf(to.name, reason).updateUnsafe(1, nowhere)
}
