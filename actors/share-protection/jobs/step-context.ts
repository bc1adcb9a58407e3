/**
 * The context of a job's steps: progress reports, the repository's keys, and the time limit of
 * engine calls.
 *
 * Source: document 2 §1 Secrets, §3 Job, §8 engine.subprocess_timeout.
 */
import { Cause, Duration, Effect, type Redacted, Schema } from "effect"
import { withKeys } from "#actors/share-protection/bucket-keys.ts"
import { type Bucket, Buckets } from "#actors/share-protection/ports/buckets.ts"
import {
  EngineFailed,
  type EngineFailure,
  type OnProgress,
  type Repository,
} from "#actors/share-protection/ports/engine.ts"
import { Trusts } from "#actors/share-protection/ports/trusts.ts"
import { Vault } from "#actors/share-protection/ports/vault.ts"
import type { JobStep } from "#schemas/share-protection/job.ts"
import type { EnrollmentOrder, JobOrder } from "#schemas/share-protection/job-order.ts"
import type {
  BackendUnavailable,
  Conflict,
  NetworkStrategyPrecondition,
  NotFound,
  SnapshotStrategyPrecondition,
  TargetPreflightFailed,
  TrustAccessDenied,
} from "#schemas/share-protection/rejection.ts"
import type { UsageStats } from "#schemas/share-protection/target.ts"

export interface StepOptions {
  readonly shape: "A" | "B"
  /** engine.require_fips_profile */
  readonly require_fips_profile: boolean
  /** engine.subprocess_timeout */
  readonly subprocess_timeout_seconds: number
  /** A new password of at least 128 random bits. */
  readonly new_password: Effect.Effect<Redacted.Redacted<string>>
  /** Absolute path of the directory for the temporary files of restore tests. */
  readonly scratch_dir: string
}

/** This worker no longer owns the job, so its remaining work has no effect. */
export class Dropped extends Schema.TaggedError<Dropped>()("Dropped", {
  detail: Schema.String,
  /** Another run of the same order owns the job. */
  by_another_run: Schema.Boolean,
}) {}

export const wasDropped = (cause: Cause.Cause<unknown>) =>
  cause.reasons.some((reason) => Cause.isFailReason(reason) && reason.error instanceof Dropped)

export type StepFailure =
  | BackendUnavailable
  | Conflict
  | EngineFailure
  | NetworkStrategyPrecondition
  | NotFound
  | SnapshotStrategyPrecondition
  | TargetPreflightFailed
  | TrustAccessDenied

/** Callbacks through which the steps of a job report. */
export interface StepContext {
  /** Reports that the job enters the step; a step does no work before this. */
  readonly enter: (step: JobStep) => Effect.Effect<void, Dropped>
  readonly onProgress: OnProgress
  /** Removes this secret from all later reports. */
  readonly redact: (secret: Redacted.Redacted<string>) => void
  /** Whether this worker may still remove the job's data from the repository. */
  readonly mayClean: () => boolean
  /** Records the open repository. */
  readonly setRepository: (repository: Repository) => void
  /** Adds a sentence to the detail of later failures: an unfinished resource that remains. */
  readonly recordLeftover: (what: string) => void
  readonly recordUsage: (usage_stats: UsageStats) => Effect.Effect<void, Dropped>
}

/** Opens the repository with the tenant's trust and the password from the vault. */
export const connect = Effect.fnUntraced(function* (
  order: Exclude<JobOrder, typeof EnrollmentOrder.Type>,
  context: StepContext,
) {
  yield* context.enter("connecting_repository")
  const { delegation, bucket } = yield* openBucket(order, context)
  const password = yield* (yield* Vault).read(delegation, order.repository_password_ref)
  context.redact(password)
  yield* (yield* Buckets).reach(bucket)
  const repository: Repository = { ...bucket, password }
  context.setRepository(repository)
  return repository
})

/** Redeems the tenant's trust for a token for this job. */
export const redeemTrust = Effect.fnUntraced(function* (
  { target }: JobOrder,
  { redact: hide }: StepContext,
) {
  const delegation = yield* (yield* Trusts).redeem(target.trust_id)
  hide(delegation.token)
  return delegation
})

export const openBucket = Effect.fnUntraced(function* (order: JobOrder, context: StepContext) {
  const delegation = yield* redeemTrust(order, context)
  const bucket = yield* withKeys(order.target, delegation)
  context.redact(bucket.access_key)
  context.redact(bucket.secret_key)
  return { delegation, bucket }
})

/** Null if the lock cannot be read: the backup exists all the same. */
export const protectedUntil = Effect.fnUntraced(function* (bucket: Bucket) {
  return yield* Effect.orElseSucceed((yield* Buckets).protectedUntil(bucket), () => null)
})

/** Measures the bucket. A failure is ignored: the next job measures again. */
export const measureUsage = Effect.fnUntraced(function* (
  bucket: Bucket,
  { recordUsage: measured }: StepContext,
) {
  const usage = yield* Effect.orElseSucceed((yield* Buckets).usage(bucket), () => undefined)
  if (usage !== undefined) yield* measured(usage)
})

/** Runs one engine call and stops it after the time limit. */
export const withTimeout = <A>(
  { subprocess_timeout_seconds }: StepOptions,
  call: Effect.Effect<A, EngineFailure>,
) =>
  Effect.timeoutOrElse(call, {
    duration: Duration.seconds(subprocess_timeout_seconds),
    orElse: () => {
      const detail = `The engine did not finish within ${subprocess_timeout_seconds} s.`
      return Effect.fail(new EngineFailed({ detail, wrote_nothing: false }))
    },
  })
