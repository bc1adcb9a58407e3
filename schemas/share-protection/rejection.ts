/**
 * The errors of share protection: one class per row of the error table.
 *
 * Source: document 2 §7 Errors.
 */
import { Schema } from "effect"
import { operator, row, tenant } from "#schemas/system/rejection.ts"

export class ValidationError extends Schema.Error<ValidationError>("ValidationError")(
  row("svc.validation_error", "Validation error", tenant),
  {
    httpApiStatus: 400,
    description:
      "`svc.validation_error`: a parameter or a field is missing or invalid, or the " +
      "JSON is malformed.",
  },
) {}

export class FieldImmutable extends Schema.Error<FieldImmutable>("FieldImmutable")(
  row("svc.field_immutable", "Field immutable", tenant),
  {
    httpApiStatus: 400,
    description: "`svc.field_immutable`: the body changes a field that cannot be changed.",
  },
) {}

export class Unauthorized extends Schema.Error<Unauthorized>("Unauthorized")(
  row("svc.unauthorized", "Unauthorized", tenant),
  {
    httpApiStatus: 401,
    description: "`svc.unauthorized`: the request has no valid token.",
  },
) {}

export class Forbidden extends Schema.Error<Forbidden>("Forbidden")(
  row("svc.forbidden", "Forbidden", tenant),
  {
    httpApiStatus: 403,
    description:
      "`svc.forbidden`: the token lacks the role, or is not scoped to a project or " +
      "domain as required.",
  },
) {}

export class QuotaExceeded extends Schema.Error<QuotaExceeded>("QuotaExceeded")(
  row("svc.quota_exceeded", "Quota exceeded", tenant),
  {
    httpApiStatus: 403,
    description: "`svc.quota_exceeded`: the project has used up its quota.",
  },
) {}

export class TrustAccessDenied extends Schema.Error<TrustAccessDenied>("TrustAccessDenied")(
  row("svc.trust_access_denied", "Trust access denied", tenant),
  {
    httpApiStatus: 403,
    description:
      "`svc.trust_access_denied`: the trust or a secret is revoked, inaccessible or " +
      "not the caller's.",
  },
) {}

export class NotFound extends Schema.Error<NotFound>("NotFound")(
  row("svc.not_found", "Not found", tenant),
  {
    httpApiStatus: 404,
    description: "`svc.not_found`: the resource does not exist, or belongs to another project.",
  },
) {}

export class MethodNotAllowed extends Schema.Error<MethodNotAllowed>("MethodNotAllowed")(
  row("svc.method_not_allowed", "Method not allowed", tenant),
  {
    httpApiStatus: 405,
    description: "`svc.method_not_allowed`: the path does not support the method.",
  },
) {}

export class Conflict extends Schema.Error<Conflict>("Conflict")(
  row("svc.conflict", "Conflict", tenant),
  {
    httpApiStatus: 409,
    description:
      "`svc.conflict`: the resource exists already, or its state does not allow the request.",
  },
) {}

export class ForceRequired extends Schema.Error<ForceRequired>("ForceRequired")(
  row("svc.force_required", "Force required", tenant),
  {
    httpApiStatus: 409,
    description: "`svc.force_required`: a restore in place needs `force: true`.",
  },
) {}

export class TargetHasDependents extends Schema.Error<TargetHasDependents>("TargetHasDependents")(
  row("svc.target_has_dependents", "Target has dependents", tenant),
  {
    httpApiStatus: 409,
    description: "`svc.target_has_dependents`: policies or backups still reference the target.",
  },
) {}

export class PolicyHasInflightBackup extends Schema.Error<PolicyHasInflightBackup>(
  "PolicyHasInflightBackup",
)(row("svc.policy_has_inflight_backup", "Policy has an in-flight backup", tenant), {
  httpApiStatus: 409,
  description: "`svc.policy_has_inflight_backup`: a backup of the policy has not ended.",
}) {}

export class RepositoryLocked extends Schema.Error<RepositoryLocked>("RepositoryLocked")(
  row("svc.repository_locked", "Repository locked", operator),
  {
    httpApiStatus: 409,
    description:
      "`svc.repository_locked`: another job holds the repository's lock. Retry when it " +
      "has ended.",
  },
) {}

export class TargetPreflightFailed extends Schema.Error<TargetPreflightFailed>(
  "TargetPreflightFailed",
)(row("svc.target_preflight_failed", "Target preflight failed", tenant), {
  httpApiStatus: 422,
  description: "`svc.target_preflight_failed`: the bucket failed the check that `detail` names.",
}) {}

export class WorkerUnavailable extends Schema.Error<WorkerUnavailable>("WorkerUnavailable")(
  row("svc.worker_unavailable", "Worker unavailable", operator),
  {
    httpApiStatus: 503,
    description: "`svc.worker_unavailable`: no worker has a free slot.",
  },
) {}

export class BackendUnavailable extends Schema.Error<BackendUnavailable>("BackendUnavailable")(
  row("svc.backend_unavailable", "Backend unavailable", operator),
  {
    httpApiStatus: 503,
    description:
      "`svc.backend_unavailable`: a service that this one needs is unreachable. Retry later.",
  },
) {}

export class InvalidStateTransition extends Schema.Error<InvalidStateTransition>(
  "InvalidStateTransition",
)(row("svc.invalid_state_transition", "Invalid state transition", operator), {
  httpApiStatus: 500,
  description: "`svc.invalid_state_transition`: the job cannot change to that state.",
}) {}

export class EngineError extends Schema.Error<EngineError>("EngineError")(
  row("svc.engine_error", "Engine error", operator),
  {
    httpApiStatus: 500,
    description: "`svc.engine_error`: the backup engine exited with an error.",
  },
) {}

export class NetworkStrategyPrecondition extends Schema.Error<NetworkStrategyPrecondition>(
  "NetworkStrategyPrecondition",
)(row("svc.network_strategy_precondition", "Network strategy precondition", operator), {
  httpApiStatus: 500,
  description:
    "`svc.network_strategy_precondition`: the share's metadata do not allow a " +
    "network attachment.",
}) {}

export class SnapshotStrategyPrecondition extends Schema.Error<SnapshotStrategyPrecondition>(
  "SnapshotStrategyPrecondition",
)(row("svc.snapshot_strategy_precondition", "Snapshot strategy precondition", operator), {
  httpApiStatus: 500,
  description:
    "`svc.snapshot_strategy_precondition`: the share does not support the snapshot strategy.",
}) {}

export class InternalError extends Schema.Error<InternalError>("InternalError")(
  row("svc.internal_error", "Internal error", operator),
  {
    httpApiStatus: 500,
    description: "`svc.internal_error`: an unexpected failure. The server's log has the cause.",
  },
) {}

/** The rejection with a description of when this endpoint responds with it. */
export const when = <Rejected extends Schema.Top>(rejection: Rejected, description: string) =>
  rejection.annotate({ description })

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
