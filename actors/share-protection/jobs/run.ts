/**
 * A job's run: one worker takes one job from its first step to its report.
 *
 * Every report carries the fence of the job's hold and, in its command's id, the run: what is sent
 * twice is done once, and an order that the bus repeats begins nothing that had begun. A log out
 * of reach delays a run. What a refused report would have freed is freed all the same, since
 * nothing of the job runs any more.
 *
 * Source: document 2 §3 Job, §8 worker.max_command_duration_seconds; DECISIONS, document 2, cancel.
 */
import { Cause, Clock, DateTime, Duration, Effect, Exit, Random, Redacted, Schedule } from "effect"
import { address, Commands, Unavailable } from "#actors/commands.ts"
import { Job } from "#actors/share-protection/job.ts"
import {
  completeJob,
  failJob,
  type Hold,
  type JobFacts,
  type JobFailure,
  type Result,
  settleJob,
  startJob,
  unassignJob,
} from "#actors/share-protection/jobs/course.ts"
import {
  Dropped,
  type StepContext,
  type StepFailure,
  type StepOptions,
  wasDropped,
} from "#actors/share-protection/jobs/road.ts"
import { discardSnapshot, runSteps } from "#actors/share-protection/jobs/walk.ts"
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

/** Pause before a log is asked again that could not be reached, in milliseconds. */
const retry_ms = 500

/** A run's end alone says that all is done. */
const progress_max = 99

export interface RunOptions extends StepOptions {
  /** worker.max_command_duration_seconds */
  readonly max_command_duration_seconds: number
}

export type RunServices = Effect.Services<ReturnType<typeof runJob>>

/** A run as its agent sees it. */
export interface Run {
  readonly order: JobOrder
  last_progress: JobProgress
  /** The job ended for its tenant already: the run ends without a report. */
  is_cancelled: boolean
  /** Its worker is none any more: what it held may be another's. */
  is_dismissed: boolean
  /** Whether a report that the log cannot take is not tried again. */
  readonly hasGivenUp: () => boolean
}

/** What the agent keeps in mind of a run that has yet to begin. */
export const newRun = (order: JobOrder, isGivenUp: () => boolean): Run => ({
  order,
  last_progress: { job_id: order.job_id, progress: 0, bytes_done: 0, bytes_total: 0 },
  is_cancelled: false,
  is_dismissed: false,
  hasGivenUp: isGivenUp,
})

/**
 * Runs a job to its end, whatever comes. Interrupted it stops what it does outside, lets go of the
 * share, and then reports: so it is forked as uninterruptible.
 */
export const runJob = Effect.fnUntraced(function* (run: Run, options: RunOptions) {
  const { order } = run
  const report = yield* reporting(run)
  const state: State = { secrets: [], step: "provisioning_network", is_begun: false }

  const walking = Effect.gen(function* () {
    yield* report("start", startJob(factsOf(order), holdOf(order))).pipe(Effect.mapError(dropped))
    state.is_begun = true
    return yield* runSteps(order, roadOf(run, state, report), options)
  }).pipe(timeLimited(options))
  const walked = yield* Effect.exit(Effect.interruptible(walking))

  const batch = yield* outcome(run, state, walked)
  const told = isUntaken(state, walked)
    ? report("untaken", unassignJob(factsOf(order), holdOf(order))).pipe(
        // It had begun after all.
        Effect.catchIf(isRefusal, () => report("end", batch)),
      )
    : report("end", batch)
  yield* told.pipe(
    Effect.catchIf(isRefusal, (refusal) =>
      Effect.logWarning(`The report was refused: ${refusal.detail}`).pipe(
        Effect.andThen(run.is_dismissed ? Effect.void : takeBack(state, walked)),
        Effect.andThen(
          report("settle", isAnothers(refusal) ? [] : settleJob(factsOf(order), holdOf(order))),
        ),
      ),
    ),
    Effect.catch(({ detail }) => Effect.logWarning(`The job's hold could not be freed: ${detail}`)),
  )
})

/** Stopped before the log was known to have its start: the job is given back, hold and all. */
const isUntaken = ({ is_begun }: State, walked: Exit.Exit<unknown, Dropped | StepFailure>) =>
  !(is_begun || (Exit.isFailure(walked) && wasDropped(walked.cause)))

const isRefusal = (failure: Rejection | Unavailable): failure is Rejection =>
  !(failure instanceof Unavailable)

/** What was made for a job that had ended before it could be told is nobody's. */
const takeBack = ({ repository }: State, walked: Exit.Exit<Result, unknown>) =>
  Exit.isSuccess(walked) && walked.value.job_type === "backup" && repository !== undefined
    ? discardSnapshot(repository, walked.value.made.engine_snapshot_id)
    : Effect.void

interface State {
  readonly secrets: Array<Redacted.Redacted<string>>
  step: JobStep
  /** The log has it. */
  is_begun: boolean
  repository?: Repository
  /** What a failure leaves behind, as a sentence. */
  left?: string
}

type Report = (what: string, batch: Batch) => Effect.Effect<void, Rejection | Unavailable>

/** Sends a batch until it is answered; an empty one tells nothing. */
const reporting = Effect.fnUntraced(function* ({ order, hasGivenUp: isGivenUp }: Run) {
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
  new Dropped({ detail: refusal.detail, by_another_run: isAnothers(refusal) })

/** The job is still this worker's by this hold, and another run of the order is further on. */
const isAnothers = (refusal: Rejection | Unavailable) => refusal instanceof InvalidStateTransition

const roadOf = (run: Run, state: State, report: Report): StepContext => {
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
    // It may fall as the engine tells it, and rises as it is told on.
    onProgress: ({ percent, bytes_done, bytes_total }) =>
      Effect.sync(() => {
        const progress = Math.min(progress_max, Math.max(run.last_progress.progress, Math.floor(percent)))
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
      state.left = what
    },
    // A target that is gone is measured no more.
    recordUsage: (usage_stats) =>
      report("usage", [address(Target, target_id, RecordTargetUsage.make({ usage_stats }))]).pipe(
        Effect.catch(() => Effect.void),
      ),
  }
}

const timeLimited =
  ({ max_command_duration_seconds }: RunOptions) =>
  <A, E, R>(walking: Effect.Effect<A, E, R>) =>
    Effect.timeoutOrElse(walking, {
      duration: Duration.seconds(max_command_duration_seconds),
      orElse: () => {
        const detail = `The job did not end within ${max_command_duration_seconds} s.`
        return Effect.fail(new EngineFailed({ detail, wrote_nothing: false }))
      },
    })

/** What is to be told of a walk's end. */
const outcome = Effect.fnUntraced(function* (
  run: Run,
  state: State,
  walked: Exit.Exit<Result, Dropped | StepFailure>,
) {
  const facts = factsOf(run.order)
  const hold = holdOf(run.order)
  if (Exit.isSuccess(walked)) return completeJob(facts, hold, walked.value)
  const { cause } = walked
  const [failure] = cause.reasons.filter(Cause.isFailReason).map(({ error }) => error)
  if (failure instanceof Dropped) yield* Effect.logWarning(`Dropped: ${failure.detail}`)
  // The hold is that run's, too; if nothing runs any more, its conductor finds out.
  if (failure instanceof Dropped && failure.by_another_run) return []
  if (run.is_cancelled || failure instanceof Dropped) return settleJob(facts, hold)
  const wrote_nothing = yield* wroteNothing(run, state, failure)
  const has_died = failure === undefined && Cause.hasDies(cause)
  if (has_died) yield* Effect.logError(hidden(state, Cause.pretty(cause)))
  const why = failure === undefined ? (has_died ? unexpected : stopped) : jobFailure(state, failure)
  const detail = state.left === undefined ? why.detail : reasonOf(`${why.detail} ${state.left}`)
  return failJob(facts, hold, { ...why, detail, wrote_nothing })
})

const operator = "operator_action_required"

const stopped = {
  code: "svc.worker_unavailable",
  detail: "The worker was stopped.",
  category: operator,
} as const

const unexpected = {
  code: "svc.internal_error",
  detail: "The worker met something unexpected.",
  category: operator,
} as const

const jobFailure = (state: State, failure: StepFailure): Omit<JobFailure, "wrote_nothing"> => {
  const detail = reasonOf(hidden(state, failure.detail))
  if (failure instanceof EngineFailed)
    return { code: "svc.engine_error", detail, category: operator }
  return { code: failure.code, detail, category: failure.category }
}

/** The text without the secrets that the run has seen. */
const hidden = ({ secrets }: State, text: string) =>
  secrets
    .map((secret) => Redacted.value(secret))
    .filter((secret) => secret !== "")
    .reduce((rest, secret) => rest.replaceAll(secret, "<redacted>"), text)

/** Whether it is proven that the repository has no snapshot of this job's backup. */
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
    // What is not known is not proven: not even when this is interrupted.
    Effect.catchCause(() => Effect.succeed(false)),
  )
})

/** A repository that does not list its snapshots within this proves nothing. */
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
