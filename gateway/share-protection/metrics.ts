/**
 * Metrics of share protection as Prometheus text. They come from the read model, so that every
 * process reports the same values, and counters survive restarts.
 *
 * Source: issue 10 §7; DECISIONS, document 2, rollouts, coverage and usage.
 */
import { Clock, Context, Effect, type Exit, Fiber, Stream } from "effect"
import { Shares } from "#actors/share-protection/ports/shares.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { findReconciliation } from "#projections/share-protection/reconciliation.ts"
import { type Counted, statisticsOf } from "#projections/share-protection/statistics.ts"
import { type CoverageRow, coverageOf } from "#projections/share-protection/usage.ts"
import { familyText, plainText, type Sample } from "#schemas/metric.ts"
import { JobState } from "#schemas/share-protection/job.ts"
import { RolloutState } from "#schemas/share-protection/rollout.ts"
import { WorkerState } from "#schemas/share-protection/worker.ts"

const ms_per_s = 1000

/** Lifetime of a coverage result, in ms: computing it lists all shares of the share service. */
const coverage_ttl_ms = 60_000
/** A slower share service counts as unreachable. */
const coverage_timeout = "1 minute"
/** How long a metrics request waits for a new result before it gets an earlier one. */
const coverage_wait = "1 second"

/** States reported from the start, so that an alert can distinguish zero from missing. */
const families: Readonly<Record<Counted, readonly [help: string, states: ReadonlyArray<string>]>> =
  {
    jobs: ["Jobs, by state.", JobState.literals],
    backups: ["Backups, by status.", ["creating", "queued", "running", "available", "error"]],
    restores: ["Restores, by status.", ["pending", "queued", "running", "available", "error"]],
    targets: ["Targets, by status.", ["pending", "available", "error"]],
    workers: ["Workers, by state.", WorkerState.literals],
    rollouts: ["Rollouts, by state.", RolloutState.literals],
  }

const secondsSince = (at: string | null, now_ms: number) =>
  at === null ? 0 : Math.max(0, (now_ms - Date.parse(at)) / ms_per_s)

const statistics = Effect.gen(function* () {
  const { db, reader } = yield* ShareProtectionModel
  const { counts, queued, running } = yield* statisticsOf(reader)
  const { drift_count, last_run_at } = yield* findReconciliation(db)
  const now_ms = yield* Clock.currentTimeMillis
  const counted = [...counts].map(([kind, values]) => {
    const [help, states] = families[kind]
    const all = new Map([...states.map((state) => [state, 0] as const), ...values])
    const samples = [...all].map(([state, count]): Sample => [count, { state }])
    return familyText({ name: `almanac_${kind}`, type: "gauge", help }, samples)
  })
  const failed = counts.get("rollouts")?.get("halted") ?? 0
  const last_run_s = last_run_at === null ? 0 : Date.parse(last_run_at) / ms_per_s
  const rows = plainText("almanac_", [
    ["gauge", "job_oldest_queued_seconds", oldest_queued, secondsSince(queued, now_ms)],
    ["gauge", "job_oldest_running_seconds", oldest_running, secondsSince(running, now_ms)],
    ["counter", "rollouts_failed_total", "Rollouts halted by a failure.", failed],
    ["gauge", "reconciliation_drift", "Differences found by the last run.", drift_count],
    ["gauge", "reconciliation_last_run_timestamp_seconds", last_run, last_run_s],
  ])
  return counted.join("") + rows
})

const oldest_queued = "Time since the oldest waiting job was queued, in seconds; 0: none waits."
const oldest_running = "Run time of the oldest running job in seconds; 0: none runs."
const last_run = "Start of the last reconciliation run, in Unix time; 0: never."

const coverageText = (rows: ReadonlyArray<CoverageRow>, unknown_shares: number, now_ms: number) => {
  const safe = rows.filter((row) => row.protected)
  const unprotected = rows.length - safe.length + unknown_shares
  const count = (is_so: (row: CoverageRow) => boolean) => safe.filter(is_so).length
  const ages_s = safe.map(({ last_backup_at }) => secondsSince(last_backup_at, now_ms))
  // A loop: there may be more shares than a call takes arguments.
  const oldest_s = ages_s.reduce((oldest, age) => Math.max(oldest, age), 0)
  return plainText("almanac_shares_", [
    ["gauge", "protected", "Shares with an enabled policy.", safe.length],
    ["gauge", "unprotected", "Shares without an enabled policy.", unprotected],
    ["gauge", "without_backup", no_backup, count(({ backup_count }) => backup_count === 0)],
    ["gauge", "oldest_backup_seconds", oldest_backup, oldest_s],
    [
      "gauge",
      "restore_test_failed",
      failed_tests,
      count((row) => row.restore_test_failure !== null),
    ],
  ])
}

const no_backup = "Protected shares without an available backup."
const oldest_backup = "Longest time since the newest backup of a protected share, in seconds."
const failed_tests = "Protected shares whose last restore test failed."

/** Only the shares in the read model: available before the share service has responded. */
const knownCoverage = Effect.gen(function* () {
  const rows = yield* coverageOf((yield* ShareProtectionModel).reader)
  return coverageText(rows, 0, yield* Clock.currentTimeMillis)
})

/** Every share listed by the share service, and every share in the read model. */
const coverage = Effect.gen(function* () {
  const { reader } = yield* ShareProtectionModel
  const rows = yield* coverageOf(reader)
  const known = new Set<string>(rows.map(({ share_id }) => share_id))
  const unknown_shares = yield* Stream.runFold(
    (yield* Shares).list,
    () => 0,
    (count, { id }) => (known.has(id) ? count : count + 1),
  )
  return coverageText(rows, unknown_shares, yield* Clock.currentTimeMillis)
}).pipe(Effect.timeout(coverage_timeout))

/**
 * Refreshes the result in the background, at most once a minute; returns or fails with the last
 * one, or with `initial` before the first one.
 */
const cached = <E, R>(initial: Effect.Effect<string, E, R>, refresh: Effect.Effect<string, E, R>) =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    let result: Exit.Exit<string, E> | undefined
    let refreshed_ms = Number.NEGATIVE_INFINITY
    return Effect.gen(function* () {
      const now_ms = yield* Clock.currentTimeMillis
      if (now_ms - refreshed_ms >= coverage_ttl_ms) {
        refreshed_ms = now_ms
        const refreshing = Effect.map(Effect.exit(refresh), (exit) => {
          result = exit
        })
        const fiber = yield* Effect.forkIn(refreshing, scope)
        yield* Effect.timeoutOption(Fiber.join(fiber), coverage_wait)
      }
      return yield* result ?? initial
    })
  })

/** Two Prometheus texts; `coverage` fails if the share service failed at the last refresh. */
export const shareProtectionMetrics = Effect.gen(function* () {
  const around = yield* Effect.context<ShareProtectionModel | Shares>()
  const known = Context.pick(ShareProtectionModel, Shares)(around)
  return {
    statistics: Effect.provideContext(statistics, known),
    coverage: Effect.provideContext(yield* cached(knownCoverage, coverage), known),
  }
})
