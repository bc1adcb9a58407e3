/** Metrics of commands: outcomes, durations and failed attempts. */
import { Context, Effect, Exit, Metric, Result } from "effect"
import type { Addressed } from "#actors/commands.ts"
import { counter, histogram } from "#schemas/metric.ts"

const ended = counter(
  "almanac_commands_total",
  "Commands, by aggregate and result: done, rejected, unavailable or broken.",
)
const failed = counter(
  "almanac_command_failed_tries_total",
  "Failed attempts of commands, most of which are retried, by reason.",
)
const duration = histogram(
  "almanac_command_duration_seconds",
  "Time of a command at its aggregate in seconds, including the queue.",
  [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15],
)

const ns_per_s = 1e9

/** Metrics are global to the process: every context leads to the same registry. */
const no_context = Context.empty()

/** Caches one series per pair of labels: there are about thirty aggregates. */
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

type Recipients = ReadonlyArray<Pick<Addressed<unknown>, "to">>

/** Counts commands by the outcome of `work`; the duration goes to the first one's aggregate. */
export const measuring =
  (commands: Recipients) =>
  <A, F, E, R>(
    work: Effect.Effect<Result.Result<A, F>, E, R>,
  ): Effect.Effect<Result.Result<A, F>, E, R> =>
    Effect.clockWith((clock) => {
      const began = clock.monotonicTimeNanosUnsafe()
      return Effect.onExit(work, (exit) =>
        Effect.sync(() => {
          const outcome = outcomeOf(exit)
          const took_s = Number(clock.monotonicTimeNanosUnsafe() - began) / ns_per_s
          for (const { to } of commands) endedOf(to.name, outcome).updateUnsafe(1, no_context)
          const [first] = commands
          if (first) durationOf(first.to.name).updateUnsafe(took_s, no_context)
        }),
      )
    })

/** Counts a failed attempt. */
export const countFailedTry = (commands: Recipients, reason: string) => {
  for (const { to } of commands) failedOf(to.name, reason).updateUnsafe(1, no_context)
}
