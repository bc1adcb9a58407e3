/**
 * The scheduler of the dashboard's ingest: at its ticks it starts `almanac ingest`, then
 * `almanac backfill-composite`, as processes of their own.
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
  runChild,
  verbProgram,
} from "#server/capital-pressure/child.ts"
import { leased } from "#server/leased.ts"
import type { SettingsSources } from "#server/program.ts"

/** A tick that was missed is made up for unless it is older, in milliseconds: a day. */
const missed_ms_max = 86_400_000

/** Longest sleep between two looks at what is due, in milliseconds: a clock may be set. */
const sleep_ms_max = 60_000

/** The code by which `ingest` ends where some feeds failed and others did not. */
const some_failed = 2

/** Pause between two looks whether this server has told where it is, in milliseconds. */
const look_ms = 100

const actor = "process:capital-pressure-scheduler"

const isoOf = (ms: number) => DateTime.formatIso(DateTime.makeUnsafe(ms))

/** Runs a job to its end; fails with what its processes said last. */
export type RunJob = (job: JobId) => Effect.Effect<void, ChildFailed>

const tell = Effect.fnUntraced(function* (job: JobId, command: ScheduleCommand) {
  const commands = yield* Commands
  const origin = { command_id: v7(), actor, at: command.at }
  yield* commands.send(origin, address(Schedule, job, command))
})

/**
 * The last tick that was taken, as epoch milliseconds, -Infinity before the first. A run that is
 * still open belongs to a process that died: it is told as failed.
 */
const takenUp = Effect.fnUntraced(function* ({ id }: ScheduledJob) {
  const log = yield* Log
  const last = yield* log.load(`${Schedule.name}.${id}`)
  if (last === undefined) return -Infinity
  const state = yield* stateAfter(log, Schedule, last)
  // The decider's context is deferred: it is that of its chart.
  const { tick } = state.context as { readonly tick: string | null }
  if (tick === null) return -Infinity
  if (state.value === "running") {
    const at = isoOf(yield* Clock.currentTimeMillis)
    yield* tell(id, FailRun.make({ tick, at, detail: "The server ended during this run." }))
  }
  return Date.parse(tick)
})

const now_iso = Effect.map(Clock.currentTimeMillis, isoOf)

/** One run, from its start to what became of it; its failure is told, and no failure of ours. */
const take = Effect.fnUntraced(function* (id: JobId, due: number, run: RunJob) {
  const tick = isoOf(due)
  yield* tell(id, StartRun.make({ tick, at: yield* now_iso }))
  yield* run(id).pipe(
    Effect.matchEffect({
      onSuccess: () => Effect.flatMap(now_iso, (at) => tell(id, EndRun.make({ tick, at }))),
      onFailure: ({ detail }) =>
        Effect.flatMap(now_iso, (at) => tell(id, FailRun.make({ tick, at, detail }))),
    }),
  )
})

/** Takes each job's ticks as they come, one run at a time, until it is interrupted. */
export const keepSchedule = Effect.fnUntraced(function* (
  jobs: ReadonlyArray<ScheduledJob>,
  run: RunJob,
) {
  const kept = yield* Effect.forEach(jobs, (job) =>
    Effect.map(takenUp(job), (taken) => ({
      id: job.id,
      cron: new Cron(job.cron, { mode: "5-part", paused: true, timezone: job.timezone }),
      taken,
    })),
  )
  /** The newest tick of a job that is still to be taken. */
  const dueOf = ({ cron, taken }: (typeof kept)[number], now: number) => {
    const [tick] = cron.previousRuns(1, new Date(now + 1))
    const due = tick?.getTime() ?? -Infinity
    return due > taken && now - due < missed_ms_max ? due : undefined
  }
  const looking = Effect.gen(function* () {
    for (const job of kept) {
      const due = dueOf(job, yield* Clock.currentTimeMillis)
      if (due === undefined) continue
      job.taken = due
      yield* take(job.id, due, run)
    }
    const now = yield* Clock.currentTimeMillis
    if (kept.some((job) => dueOf(job, now) !== undefined)) return
    const nexts = kept.map(({ cron }) => cron.nextRun(new Date(now))?.getTime() ?? Infinity)
    yield* Effect.sleep(Duration.millis(Math.min(Math.min(...nexts) - now, sleep_ms_max)))
  })
  return yield* Effect.forever(looking)
})

/** What a job's ingest is asked for: `release_ingest` leaves the daily series out. */
export const ingestArguments = (job: JobId): ReadonlyArray<string> => {
  if (job === "daily_ingest") return []
  return metrics
    .filter(({ stub, cadence }) => stub === null && cadence !== "daily")
    .flatMap(({ metric_id }) => ["--metric", metric_id])
}

/** How a verb is started as a process of its own. */
export type VerbProgram = (args: ReadonlyArray<string>) => ChildProgram

/** What came in is computed with even where some feeds failed, and then those are told. */
export const byVerbs =
  (programOf: VerbProgram): RunJob =>
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
 * Waits until this process has told where it is, which is the last thing of its start: a verb that
 * does not find its server takes the data folder for free.
 */
export const announced = Effect.fnUntraced(function* (data_dir: string) {
  const isOurs = Effect.map(findInstance(data_dir), (instance) =>
    Option.exists(instance, ({ pid }) => pid === process.pid),
  )
  while (!(yield* isOurs)) yield* Effect.sleep(look_ms)
})

/**
 * Keeps the schedule in the background whenever this node holds the lease, for as long as the
 * scope lives. Nothing where `capital.scheduler` is off.
 */
export const capitalScheduler = Effect.fnUntraced(function* (
  node_id: string,
  { capital, data }: Settings,
  sources: SettingsSources,
) {
  if (!capital.scheduler) return
  const run = byVerbs((args) => verbProgram(sources, args))
  yield* leased("capital-pressure-scheduler", node_id, () =>
    Effect.andThen(announced(data.dir), keepSchedule(scheduled_jobs, run)),
  )
})
