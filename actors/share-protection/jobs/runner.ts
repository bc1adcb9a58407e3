/**
 * Runs one job on one worker, from its first step to its final report.
 *
 * Every report carries the fence of the job's hold, and its command id names the run. So reports
 * are idempotent, and an order that the bus delivers twice does not start a second run. An
 * unavailable log delays a run. If the final report is rejected, its slot and lease are freed
 * anyway, because no part of the job is still running.
 *
 * Source: document 2 §3 Job, §8 worker.max_command_duration_seconds; DECISIONS, document 2, cancel.
 */
import { Cause, Clock, DateTime, Duration, Effect, Exit, Random, Redacted, Schedule } from "effect"
import { address, Commands, Unavailable } from "#actors/commands.ts"
import { Job } from "#actors/share-protection/job.ts"
import {
  Dropped,
  type StepContext,
  type StepFailure,
  type StepOptions,
  wasDropped,
} from "#actors/share-protection/jobs/step-context.ts"
import { discardSnapshot, runSteps } from "#actors/share-protection/jobs/steps.ts"
import {
  completeJob,
  failJob,
  type Hold,
  type JobFacts,
  type JobFailure,
  type JobResult,
  settleJob,
  startJob,
  unassignJob,
} from "#actors/share-protection/jobs/transitions.ts"
import { Engine, EngineFailed, type Repository } from "#actors/share-protection/ports/engine.ts"
import type { JobProgress } from "#actors/share-protection/ports/live-workers.ts"
import type { Batch } from "#actors/share-protection/requests.ts"
import { backupTag } from "#actors/share-protection/snapshot-tag.ts"
import { Target } from "#actors/share-protection/target.ts"
import { AdvanceJob, type JobStep, job_steps } from "#schemas/share-protection/job.ts"
import type { JobOrder } from "#schemas/share-protection/job-order.ts"
import { InvalidStateTransition, type Rejection } from "#schemas/share-protection/rejection.ts"
import { RecordTargetUsage } from "#schemas/share-protection/target.ts"
import { reasonOf } from "#schemas/share-protection/text.ts"

/** Pause before a report to an unavailable log is sent again, in milliseconds. */
const retry_ms = 500

/** Progress reaches 100 only when the job has completed. */
const progress_max = 99

export interface RunOptions extends StepOptions {
  /** worker.max_command_duration_seconds */
  readonly max_command_duration_seconds: number
}

export type RunServices = Effect.Services<ReturnType<typeof runJob>>

/** The state of a run that its agent reads and sets. */
export interface Run {
  readonly order: JobOrder
  last_progress: JobProgress
  /** The job has already ended for its tenant, so the run ends without a report. */
  is_cancelled: boolean
  /** The worker was dismissed, so another worker may own what it held. */
  is_dismissed: boolean
  /** Whether to stop retrying reports to an unavailable log. */
  readonly hasGivenUp: () => boolean
}

/** The state of a run that has not started. */
export const newRun = (order: JobOrder, isGivenUp: () => boolean): Run => ({
  order,
  last_progress: { job_id: order.job_id, progress: 0, bytes_done: 0, bytes_total: 0 },
  is_cancelled: false,
  is_dismissed: false,
  hasGivenUp: isGivenUp,
})

/**
 * Runs a job to its end. On interruption, stops the current step, releases the share and then
 * reports, so callers fork it as uninterruptible.
 */
export const runJob = Effect.fnUntraced(function* (run: Run, options: RunOptions) {
  const { order } = run
  const report = yield* makeReport(run)
  const state: State = { secrets: [], step: "provisioning_network", has_started: false }

  const running = Effect.gen(function* () {
    yield* report("start", startJob(factsOf(order), holdOf(order))).pipe(Effect.mapError(dropped))
    state.has_started = true
    return yield* runSteps(order, stepContext(run, state, report), options)
  }).pipe(timeLimited(options))
  const exit = yield* Effect.exit(Effect.interruptible(running))

  const batch = yield* outcome(run, state, exit)
  const sent = hasNotStarted(state, exit)
    ? report("untaken", unassignJob(factsOf(order), holdOf(order))).pipe(
        // The job had started after all.
        Effect.catchIf(isRefusal, () => report("end", batch)),
      )
    : report("end", batch)
  yield* sent.pipe(
    Effect.catchIf(isRefusal, (refusal) =>
      Effect.logWarning(`The report was rejected: ${refusal.detail}`).pipe(
        Effect.andThen(run.is_dismissed ? Effect.void : discardUnrecorded(state, exit)),
        Effect.andThen(
          report("settle", isFromOtherRun(refusal) ? [] : settleJob(factsOf(order), holdOf(order))),
        ),
      ),
    ),
    Effect.catch(({ detail }) =>
      Effect.logWarning(`The job's lease could not be released: ${detail}`),
    ),
  )
})

/** Stopped before the log confirmed the start: the job and its hold are given back. */
const hasNotStarted = ({ has_started }: State, exit: Exit.Exit<unknown, Dropped | StepFailure>) =>
  !(has_started || (Exit.isFailure(exit) && wasDropped(exit.cause)))

const isRefusal = (failure: Rejection | Unavailable): failure is Rejection =>
  !(failure instanceof Unavailable)

/** Forgets the snapshot of a job that had ended before its result was recorded. */
const discardUnrecorded = ({ repository }: State, exit: Exit.Exit<JobResult, unknown>) =>
  Exit.isSuccess(exit) && exit.value.job_type === "backup" && repository !== undefined
    ? discardSnapshot(repository, exit.value.made.engine_snapshot_id)
    : Effect.void

interface State {
  readonly secrets: Array<Redacted.Redacted<string>>
  step: JobStep
  /** The log has recorded the start. */
  has_started: boolean
  repository?: Repository
  /** A sentence about resources that a failure leaves behind. */
  leftover?: string
}

type Report = (what: string, batch: Batch) => Effect.Effect<void, Rejection | Unavailable>

/** Sends a batch until the log responds; does nothing for an empty batch. */
const makeReport = Effect.fnUntraced(function* ({ order, hasGivenUp: isGivenUp }: Run) {
  const { send } = yield* Commands
  const { job_id, worker_id, attempt, fence } = order
  const run = (yield* Random.nextInt).toString(36)
  const report: Report = (what, batch) =>
    Effect.gen(function* () {
      if (batch.length === 0) return
      const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
      const command_id = `run-${job_id}-${attempt}-${fence}-${run}-${what}`
      const origin = { command_id, actor: `worker:${worker_id}`, at }
      yield* Effect.retry(send(origin, ...batch), {
        while: (failure) => failure instanceof Unavailable && !isGivenUp(),
        schedule: Schedule.spaced(retry_ms),
      })
    })
  return report
})

const dropped = (refusal: Rejection | Unavailable) =>
  new Dropped({ detail: refusal.detail, by_another_run: isFromOtherRun(refusal) })

/** This worker still holds the job, but another run of the same order is ahead. */
const isFromOtherRun = (refusal: Rejection | Unavailable) =>
  refusal instanceof InvalidStateTransition

const stepContext = (run: Run, state: State, report: Report): StepContext => {
  const { job_id, worker_id, fence, target_id } = run.order
  return {
    enter: (step) =>
      report(step, [address(Job, job_id, AdvanceJob.make({ worker_id, fence, to: step }))]).pipe(
        Effect.mapError(dropped),
        Effect.andThen(
          Effect.sync(() => {
            state.step = step
          }),
        ),
      ),
    // The engine's percentage may decrease; the reported progress never does.
    onProgress: ({ percent, bytes_done, bytes_total }) =>
      Effect.sync(() => {
        const progress = Math.min(
          progress_max,
          Math.max(run.last_progress.progress, Math.floor(percent)),
        )
        run.last_progress = { job_id, progress, bytes_done, bytes_total }
      }),
    redact: (secret) => {
      state.secrets.push(secret)
    },
    mayClean: () => !run.is_dismissed,
    setRepository: (repository) => {
      state.repository = repository
    },
    recordLeftover: (what) => {
      state.leftover = what
    },
    // A deleted target needs no usage.
    recordUsage: (usage_stats) =>
      report("usage", [address(Target, target_id, RecordTargetUsage.make({ usage_stats }))]).pipe(
        Effect.catch(() => Effect.void),
      ),
  }
}

const timeLimited =
  ({ max_command_duration_seconds }: RunOptions) =>
  <A, E, R>(running: Effect.Effect<A, E, R>) =>
    Effect.timeoutOrElse(running, {
      duration: Duration.seconds(max_command_duration_seconds),
      orElse: () => {
        const detail = `The job did not finish within ${max_command_duration_seconds} s.`
        return Effect.fail(new EngineFailed({ detail, wrote_nothing: false }))
      },
    })

/** The batch that reports the end of a run. */
const outcome = Effect.fnUntraced(function* (
  run: Run,
  state: State,
  exit: Exit.Exit<JobResult, Dropped | StepFailure>,
) {
  const facts = factsOf(run.order)
  const hold = holdOf(run.order)
  if (Exit.isSuccess(exit)) return completeJob(facts, hold, exit.value)
  const { cause } = exit
  const [failure] = cause.reasons.filter(Cause.isFailReason).map(({ error }) => error)
  if (failure instanceof Dropped) yield* Effect.logWarning(`Report dropped: ${failure.detail}`)
  // The other run shares this hold. If that run is gone, the conductor detects it.
  if (failure instanceof Dropped && failure.by_another_run) return []
  if (run.is_cancelled || failure instanceof Dropped) return settleJob(facts, hold)
  const wrote_nothing = yield* wroteNothing(run, state, failure)
  const has_died = failure === undefined && Cause.hasDies(cause)
  if (has_died) yield* Effect.logError(hidden(state, Cause.pretty(cause)))
  const reason =
    failure === undefined ? (has_died ? unexpected : stopped) : jobFailure(state, failure)
  const detail =
    state.leftover === undefined ? reason.detail : reasonOf(`${reason.detail} ${state.leftover}`)
  return failJob(facts, hold, { ...reason, detail, wrote_nothing })
})

const operator = "operator_action_required"

const stopped = {
  code: "svc.worker_unavailable",
  detail: "The worker was stopped.",
  category: operator,
} as const

const unexpected = {
  code: "svc.internal_error",
  detail: "The worker failed unexpectedly; its log has the cause.",
  category: operator,
} as const

const jobFailure = (state: State, failure: StepFailure): Omit<JobFailure, "wrote_nothing"> => {
  const detail = reasonOf(hidden(state, failure.detail))
  if (failure instanceof EngineFailed)
    return { code: "svc.engine_error", detail, category: operator }
  return { code: failure.code, detail, category: failure.category }
}

/** Replaces the secrets of the run in a text. */
const hidden = ({ secrets }: State, text: string) =>
  secrets
    .map((secret) => Redacted.value(secret))
    .filter((secret) => secret !== "")
    .reduce((rest, secret) => rest.replaceAll(secret, "<redacted>"), text)

/** Whether the repository provably has no snapshot of this job's backup. */
const wroteNothing = Effect.fnUntraced(function* (
  { order, is_dismissed }: Run,
  { step, repository }: State,
  failure: StepFailure | undefined,
) {
  if (order.job_type !== "backup") return true
  if (job_steps.indexOf(step) < job_steps.indexOf("transferring")) return true
  if (repository === undefined || is_dismissed) return false
  if (failure instanceof EngineFailed && failure.wrote_nothing) return true
  const tag = backupTag(order.backup_id)
  const listed = (yield* Engine).snapshots(repository)
  return yield* listed.pipe(
    Effect.timeout(proof_timeout),
    Effect.interruptible,
    Effect.map((snapshots) => snapshots.every(({ tags }) => !tags.includes(tag))),
    // A failure or an interruption proves nothing.
    Effect.catchCause(() => Effect.succeed(false)),
  )
})

/** Time limit for the list of snapshots that the proof needs. */
const proof_timeout = Duration.minutes(5)

const holdOf = ({ worker_id, fence }: JobOrder): Hold => ({ worker_id, fence })

const factsOf = (order: JobOrder): JobFacts => {
  const { job_id, job_type, resource_id, target_id, project_id } = order
  return {
    job_id,
    job_type,
    resource_id,
    target_id,
    project_id,
    hold: holdOf(order),
    share_id: "share_id" in order ? order.share_id : null,
    backup_id: "backup_id" in order ? order.backup_id : null,
  }
}
