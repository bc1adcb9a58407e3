/**
 * The scheduler of the dashboard's ingest: at each tick it runs `almanac ingest` and then
 * `almanac backfill-composite`, as child processes.
 *
 * Source: document 3 §1 A, "run manually or by a scheduler process"; decisions of document 3,
 * scheduler.
 */
import { Cron } from "croner"
import { Clock, DateTime, Duration, Effect, Option } from "effect"
import { v7 } from "uuid"
import { Schedule } from "#actors/capital-pressure/schedule.ts"
import { address, Commands } from "#actors/commands.ts"
import { stateAfter } from "#actors/host.ts"
import { findInstance } from "#adapters/data-folder/instance-file.ts"
import { Log } from "#events/log.ts"
import { metrics } from "#schemas/capital-pressure/registry.ts"
import {
  EndRun,
  FailRun,
  type JobId,
  type ScheduleCommand,
  type ScheduledJob,
  StartRun,
  scheduled_jobs,
} from "#schemas/capital-pressure/schedule.ts"
import type { Settings } from "#schemas/settings.ts"
import {
  type ChildFailed,
  type ChildProgram,
  commandProgram,
  runChild,
} from "#server/capital-pressure/child.ts"
import { withLease } from "#server/lease.ts"
import type { SettingsSources } from "#server/program.ts"

/** A missed tick is run late unless it is older than this, in milliseconds: a day. */
const missed_ms_max = 86_400_000

/** Longest sleep between two checks for due ticks, in milliseconds: the clock may be changed. */
const sleep_ms_max = 60_000

/** The exit code of `ingest` if some feeds failed and others did not. */
const some_failed = 2

/** Interval between checks for this server's instance file, in milliseconds. */
const look_ms = 100

const actor = "process:capital-pressure-scheduler"

const isoOf = (ms: number) => DateTime.formatIso(DateTime.makeUnsafe(ms))

/** Runs a job to its end; fails with the last output of its processes. */
export type RunJob = (job: JobId) => Effect.Effect<void, ChildFailed>

const record = Effect.fnUntraced(function* (job: JobId, command: ScheduleCommand) {
  const commands = yield* Commands
  const origin = { command_id: v7(), actor, at: command.at }
  yield* commands.send(origin, address(Schedule, job, command))
})

/**
 * The job's last tick in epoch milliseconds, -Infinity before the first. A run that is still open
 * belongs to a process that died, and is recorded as failed.
 */
const lastTick = Effect.fnUntraced(function* ({ id }: ScheduledJob) {
  const log = yield* Log
  const last = yield* log.load(`${Schedule.name}.${id}`)
  if (last === undefined) return -Infinity
  const state = yield* stateAfter(log, Schedule, last)
  // The decider's context is deferred: it is that of its chart.
  const { tick } = state.context as { readonly tick: string | null }
  if (tick === null) return -Infinity
  if (state.value === "running") {
    const at = isoOf(yield* Clock.currentTimeMillis)
    yield* record(id, FailRun.make({ tick, at, detail: "The server stopped during this run." }))
  }
  return Date.parse(tick)
})

const now_iso = Effect.map(Clock.currentTimeMillis, isoOf)

/** Runs a job and records its start and outcome; a failed job does not fail the scheduler. */
const take = Effect.fnUntraced(function* (id: JobId, due: number, run: RunJob) {
  const tick = isoOf(due)
  yield* record(id, StartRun.make({ tick, at: yield* now_iso }))
  yield* run(id).pipe(
    Effect.matchEffect({
      onSuccess: () => Effect.flatMap(now_iso, (at) => record(id, EndRun.make({ tick, at }))),
      onFailure: ({ detail }) =>
        Effect.flatMap(now_iso, (at) => record(id, FailRun.make({ tick, at, detail }))),
    }),
  )
})

/** Runs jobs at their ticks, one at a time, until it is interrupted. */
export const keepSchedule = Effect.fnUntraced(function* (
  jobs: ReadonlyArray<ScheduledJob>,
  run: RunJob,
) {
  const schedules = yield* Effect.forEach(jobs, (job) =>
    Effect.map(lastTick(job), (last_tick) => ({
      id: job.id,
      cron: new Cron(job.cron, { mode: "5-part", paused: true, timezone: job.timezone }),
      last_tick,
    })),
  )
  /** The newest tick of a job that has not run yet. */
  const dueOf = ({ cron, last_tick }: (typeof schedules)[number], now: number) => {
    const [tick] = cron.previousRuns(1, new Date(now + 1))
    const due = tick?.getTime() ?? -Infinity
    return due > last_tick && now - due < missed_ms_max ? due : undefined
  }
  const looking = Effect.gen(function* () {
    for (const job of schedules) {
      const due = dueOf(job, yield* Clock.currentTimeMillis)
      if (due === undefined) continue
      job.last_tick = due
      yield* take(job.id, due, run)
    }
    const now = yield* Clock.currentTimeMillis
    if (schedules.some((job) => dueOf(job, now) !== undefined)) return
    const nexts = schedules.map(({ cron }) => cron.nextRun(new Date(now))?.getTime() ?? Infinity)
    yield* Effect.sleep(Duration.millis(Math.min(Math.min(...nexts) - now, sleep_ms_max)))
  })
  return yield* Effect.forever(looking)
})

/** The arguments of a job's ingest: `release_ingest` excludes the daily series. */
export const ingestArguments = (job: JobId): ReadonlyArray<string> => {
  if (job === "daily_ingest") return []
  return metrics
    .filter(({ stub, cadence }) => stub === null && cadence !== "daily")
    .flatMap(({ metric_id }) => ["--metric", metric_id])
}

/** Returns the child program for the arguments of a command. */
export type CommandProgram = (args: ReadonlyArray<string>) => ChildProgram

/** Runs the backfill even if some feeds failed; their failure is reported afterwards. */
export const byCommands =
  (programOf: CommandProgram): RunJob =>
  (job) => {
    const backfill = runChild(programOf(["backfill-composite"]))
    return runChild(programOf(["ingest", ...ingestArguments(job)])).pipe(
      Effect.matchEffect({
        onSuccess: () => backfill,
        onFailure: (failure) =>
          failure.code === some_failed
            ? Effect.andThen(backfill, Effect.fail(failure))
            : Effect.fail(failure),
      }),
    )
  }

/**
 * Waits until this process has written its instance file, the last step of its startup: a command
 * that finds no running server would try to lock the data folder.
 */
export const announced = Effect.fnUntraced(function* (data_dir: string) {
  const isOurs = Effect.map(findInstance(data_dir), (instance) =>
    Option.exists(instance, ({ pid }) => pid === process.pid),
  )
  while (!(yield* isOurs)) yield* Effect.sleep(look_ms)
})

/**
 * Runs the schedule in the background whenever this node holds the lease, until the scope closes.
 * Does nothing if `capital.scheduler` is off.
 */
export const capitalScheduler = Effect.fnUntraced(function* (
  node_id: string,
  { capital, data }: Settings,
  sources: SettingsSources,
) {
  if (!capital.scheduler) return
  const run = byCommands((args) => commandProgram(sources, args))
  yield* withLease("capital-pressure-scheduler", node_id, () =>
    Effect.andThen(announced(data.dir), keepSchedule(scheduled_jobs, run)),
  )
})
