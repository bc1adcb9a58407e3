/**
 * The errors of share protection: one class per row of the error table.
 *
 * Source: document 2 §7 Errors.
 */
import { Schema } from "effect"

const tenant = Schema.tag("tenant_action_required")
const operator = Schema.tag("operator_action_required")

export const ErrorCategory = Schema.Literals(["tenant_action_required", "operator_action_required"])
export type ErrorCategory = typeof ErrorCategory.Type

const row = <
  const Code extends string,
  const Title extends string,
  Category extends typeof tenant | typeof operator,
>(
  code: Code,
  title: Title,
  category: Category,
) => ({
  code: Schema.tag(code),
  title: Schema.tag(title),
  detail: Schema.String,
  category,
})

/** A field is missing or invalid, or the JSON is malformed. */
export class ValidationError extends Schema.Error<ValidationError>("ValidationError")(
  row("svc.validation_error", "Validation error", tenant),
  { httpApiStatus: 400 },
) {}

/** A PATCH changes an immutable field. */
export class FieldImmutable extends Schema.Error<FieldImmutable>("FieldImmutable")(
  row("svc.field_immutable", "Field immutable", tenant),
  { httpApiStatus: 400 },
) {}

export class Unauthorized extends Schema.Error<Unauthorized>("Unauthorized")(
  row("svc.unauthorized", "Unauthorized", tenant),
  { httpApiStatus: 401 },
) {}

export class Forbidden extends Schema.Error<Forbidden>("Forbidden")(
  row("svc.forbidden", "Forbidden", tenant),
  { httpApiStatus: 403 },
) {}

/** The project's quota of targets, policies or backups is used up. */
export class QuotaExceeded extends Schema.Error<QuotaExceeded>("QuotaExceeded")(
  row("svc.quota_exceeded", "Quota exceeded", tenant),
  { httpApiStatus: 403 },
) {}

/** The trust or a secret is revoked or inaccessible. */
export class TrustAccessDenied extends Schema.Error<TrustAccessDenied>("TrustAccessDenied")(
  row("svc.trust_access_denied", "Trust access denied", tenant),
  { httpApiStatus: 403 },
) {}

/** The resource does not exist, or belongs to another project. */
export class NotFound extends Schema.Error<NotFound>("NotFound")(
  row("svc.not_found", "Not found", tenant),
  { httpApiStatus: 404 },
) {}

export class MethodNotAllowed extends Schema.Error<MethodNotAllowed>("MethodNotAllowed")(
  row("svc.method_not_allowed", "Method not allowed", tenant),
  { httpApiStatus: 405 },
) {}

/** A duplicate identity, or a change that the present state does not allow. */
export class Conflict extends Schema.Error<Conflict>("Conflict")(
  row("svc.conflict", "Conflict", tenant),
  { httpApiStatus: 409 },
) {}

/** An in-place restore without force. */
export class ForceRequired extends Schema.Error<ForceRequired>("ForceRequired")(
  row("svc.force_required", "Force required", tenant),
  { httpApiStatus: 409 },
) {}

/** Policies or backups reference the target to be deleted. */
export class TargetHasDependents extends Schema.Error<TargetHasDependents>("TargetHasDependents")(
  row("svc.target_has_dependents", "Target has dependents", tenant),
  { httpApiStatus: 409 },
) {}

/** A backup of the policy to be deleted is in progress. */
export class PolicyHasInflightBackup extends Schema.Error<PolicyHasInflightBackup>(
  "PolicyHasInflightBackup",
)(row("svc.policy_has_inflight_backup", "Policy has an in-flight backup", tenant), {
  httpApiStatus: 409,
}) {}

/** Another job holds the repository's single-writer lock. */
export class RepositoryLocked extends Schema.Error<RepositoryLocked>("RepositoryLocked")(
  row("svc.repository_locked", "Repository locked", operator),
  { httpApiStatus: 409 },
) {}

/** The bucket failed a check; the detail names it. */
export class TargetPreflightFailed extends Schema.Error<TargetPreflightFailed>(
  "TargetPreflightFailed",
)(row("svc.target_preflight_failed", "Target preflight failed", tenant), {
  httpApiStatus: 422,
}) {}

/** No worker has a free slot. */
export class WorkerUnavailable extends Schema.Error<WorkerUnavailable>("WorkerUnavailable")(
  row("svc.worker_unavailable", "Worker unavailable", operator),
  { httpApiStatus: 503 },
) {}

/** The secrets manager, the shared file system service, or the bus is unreachable. */
export class BackendUnavailable extends Schema.Error<BackendUnavailable>("BackendUnavailable")(
  row("svc.backend_unavailable", "Backend unavailable", operator),
  { httpApiStatus: 503 },
) {}

/** The job's chart has no such transition. */
export class InvalidStateTransition extends Schema.Error<InvalidStateTransition>(
  "InvalidStateTransition",
)(row("svc.invalid_state_transition", "Invalid state transition", operator), {
  httpApiStatus: 500,
}) {}

/** The backup engine exited with an error. */
export class EngineError extends Schema.Error<EngineError>("EngineError")(
  row("svc.engine_error", "Engine error", operator),
  { httpApiStatus: 500 },
) {}

/** The share's metadata do not say how to attach it to a network. */
export class NetworkStrategyPrecondition extends Schema.Error<NetworkStrategyPrecondition>(
  "NetworkStrategyPrecondition",
)(row("svc.network_strategy_precondition", "Network strategy precondition", operator), {
  httpApiStatus: 500,
}) {}

/** The share does not support the snapshot strategy. */
export class SnapshotStrategyPrecondition extends Schema.Error<SnapshotStrategyPrecondition>(
  "SnapshotStrategyPrecondition",
)(row("svc.snapshot_strategy_precondition", "Snapshot strategy precondition", operator), {
  httpApiStatus: 500,
}) {}

/** Unexpected failures; the detail is withheld. */
export class InternalError extends Schema.Error<InternalError>("InternalError")(
  row("svc.internal_error", "Internal error", operator),
  { httpApiStatus: 500 },
) {}

/** Errors of every endpoint. */
const anywhere = [
  ValidationError,
  Unauthorized,
  Forbidden,
  BackendUnavailable,
  InternalError,
] as const

/** An endpoint's `error`: those of every endpoint, and its own. */
export const rejections = <const Own extends ReadonlyArray<Schema.Constraint>>(...own: Own) =>
  [...anywhere, ...own] as const

export const Rejection = Schema.Union([
  ...anywhere,
  FieldImmutable,
  QuotaExceeded,
  TrustAccessDenied,
  NotFound,
  MethodNotAllowed,
  Conflict,
  ForceRequired,
  TargetHasDependents,
  PolicyHasInflightBackup,
  RepositoryLocked,
  TargetPreflightFailed,
  WorkerUnavailable,
  InvalidStateTransition,
  EngineError,
  NetworkStrategyPrecondition,
  SnapshotStrategyPrecondition,
])
export type Rejection = typeof Rejection.Type

/** Error codes of jobs. */
export const ErrorCode = Schema.Literals([
  "svc.validation_error",
  "svc.field_immutable",
  "svc.unauthorized",
  "svc.forbidden",
  "svc.quota_exceeded",
  "svc.trust_access_denied",
  "svc.not_found",
  "svc.method_not_allowed",
  "svc.conflict",
  "svc.force_required",
  "svc.target_has_dependents",
  "svc.policy_has_inflight_backup",
  "svc.repository_locked",
  "svc.target_preflight_failed",
  "svc.worker_unavailable",
  "svc.backend_unavailable",
  "svc.invalid_state_transition",
  "svc.engine_error",
  "svc.network_strategy_precondition",
  "svc.snapshot_strategy_precondition",
  "svc.internal_error",
])
export type ErrorCode = typeof ErrorCode.Type
