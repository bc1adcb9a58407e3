/**
 * A job's road: what a walk tells on its way, what each walk begins with, and how a call of the
 * engine is bounded.
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
  /** Where what is restored to be proven is for a moment: a folder of its own; absolute. */
  readonly scratch_dir: string
}

/** The job is not this worker's any more: whatever it does from here nobody waits for. */
export class Dropped extends Schema.TaggedError<Dropped>()("Dropped", {
  detail: Schema.String,
  /** Another run of the same order has it. */
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

/** What a walk tells on its way. */
export interface StepContext {
  /** Says that the job enters the step; nothing of the step is done before. */
  readonly enter: (step: JobStep) => Effect.Effect<void, Dropped>
  readonly onProgress: OnProgress
  /** From here on this is kept out of everything that is told. */
  readonly redact: (secret: Redacted.Redacted<string>) => void
  /** Whether what is left of the job in the repository is still this worker's to remove. */
  readonly mayClean: () => boolean
  /** The repository is open. */
  readonly setRepository: (repository: Repository) => void
  /** What is left outside when the job fails from here on: it is told with the failure. */
  readonly recordLeftover: (what: string) => void
  readonly recordUsage: (usage_stats: UsageStats) => Effect.Effect<void, Dropped>
}

/** Opens the repository: by the tenant's trust, with what the vault has of it. */
export const connect = Effect.fnUntraced(function* (
  order: Exclude<JobOrder, typeof EnrollmentOrder.Type>,
  road: StepContext,
) {
  yield* road.enter("connecting_repository")
  const { delegation, bucket } = yield* openBucket(order, road)
  const password = yield* (yield* Vault).read(delegation, order.repository_password_ref)
  road.redact(password)
  yield* (yield* Buckets).reach(bucket)
  const repository: Repository = { ...bucket, password }
  road.setRepository(repository)
  return repository
})

/** A token of the tenant's trust, for this job. */
export const redeemTrust = Effect.fnUntraced(function* ({ target }: JobOrder, { redact: hide }: StepContext) {
  const delegation = yield* (yield* Trusts).redeem(target.trust_id)
  hide(delegation.token)
  return delegation
})

export const openBucket = Effect.fnUntraced(function* (order: JobOrder, road: StepContext) {
  const delegation = yield* redeemTrust(order, road)
  const bucket = yield* withKeys(order.target, delegation)
  road.redact(bucket.access_key)
  road.redact(bucket.secret_key)
  return { delegation, bucket }
})

/** The backup is there: that nobody can tell now how long it is locked takes nothing from it. */
export const protectedUntil = Effect.fnUntraced(function* (bucket: Bucket) {
  return yield* Effect.orElseSucceed((yield* Buckets).protectedUntil(bucket), () => null)
})

/** What cannot be measured now is measured after the next job. */
export const measureUsage = Effect.fnUntraced(function* (bucket: Bucket, { recordUsage: measured }: StepContext) {
  const usage = yield* Effect.orElseSucceed((yield* Buckets).usage(bucket), () => undefined)
  if (usage !== undefined) yield* measured(usage)
})

/** One call of the engine, which is stopped when its time is over. */
export const withTimeout = <A>(
  { subprocess_timeout_seconds }: StepOptions,
  call: Effect.Effect<A, EngineFailure>,
) =>
  Effect.timeoutOrElse(call, {
    duration: Duration.seconds(subprocess_timeout_seconds),
    orElse: () => {
      const detail = `The engine did not end within ${subprocess_timeout_seconds} s.`
      return Effect.fail(new EngineFailed({ detail, wrote_nothing: false }))
    },
  })
