/** Metrics of the log: append durations, commits and failures. */
import { Effect, Metric } from "effect"
import type { LogUnavailable, OutcomeUnknown, VersionConflict } from "#events/log.ts"
import { counter, histogram } from "#schemas/metric.ts"

const duration = histogram(
  "almanac_log_append_duration_seconds",
  "Time of an append to the log in seconds, including the queue and the sync.",
  [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
)
const commits = counter(
  "almanac_log_commits_total",
  "Commits that this process appended to the log.",
  {},
)
/** Why an append failed, by the failure's tag. */
const reasons = {
  VersionConflict: { reason: "conflict" },
  LogUnavailable: { reason: "unavailable" },
  OutcomeUnknown: { reason: "unknown" },
}
const failures = counter(
  "almanac_log_append_failures_total",
  "Failed appends, by reason: conflict, no connection, or no response.",
  ...Object.values(reasons),
)

const ns_per_s = 1e9

type AppendFailure = VersionConflict | LogUnavailable | OutcomeUnknown

/** Measures one append of `count` commits. */
export const measuringAppend =
  (count: number) =>
  <A, R>(append: Effect.Effect<A, AppendFailure, R>): Effect.Effect<A, AppendFailure, R> =>
    Effect.clockWith((clock) => {
      const began = clock.monotonicTimeNanosUnsafe()
      const took_s = () => Number(clock.monotonicTimeNanosUnsafe() - began) / ns_per_s
      return append.pipe(
        Effect.tap(() =>
          Effect.andThen(
            Metric.update(commits, count),
            Effect.suspend(() => Metric.update(duration, took_s())),
          ),
        ),
        Effect.tapError(({ _tag }) =>
          Metric.update(Metric.withAttributes(failures, reasons[_tag]), 1),
        ),
      )
    })
