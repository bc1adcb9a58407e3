/**
 * Errors of paths that belong to no service, in the envelope of document 2 §7 like all other `/v1`
 * paths.
 */
import { Schema } from "effect"

const tenant = Schema.tag("tenant_action_required")

export class Invalid extends Schema.Error<Invalid>("system/Invalid")(
  {
    code: Schema.tag("svc.validation_error"),
    title: Schema.tag("Validation error"),
    detail: Schema.String,
    category: tenant,
  },
  { httpApiStatus: 400 },
) {}

export class Forbidden extends Schema.Error<Forbidden>("system/Forbidden")(
  {
    code: Schema.tag("svc.forbidden"),
    title: Schema.tag("Forbidden"),
    detail: Schema.String,
    category: tenant,
  },
  { httpApiStatus: 403 },
) {}

export class NotFound extends Schema.Error<NotFound>("system/NotFound")(
  {
    code: Schema.tag("svc.not_found"),
    title: Schema.tag("Not found"),
    detail: Schema.String,
    category: tenant,
  },
  { httpApiStatus: 404 },
) {}

export class BackendUnavailable extends Schema.Error<BackendUnavailable>(
  "system/BackendUnavailable",
)(
  {
    code: Schema.tag("svc.backend_unavailable"),
    title: Schema.tag("Backend unavailable"),
    detail: Schema.String,
    category: Schema.tag("operator_action_required"),
  },
  { httpApiStatus: 503 },
) {}

export class Conflict extends Schema.Error<Conflict>("system/Conflict")(
  {
    code: Schema.tag("svc.conflict"),
    title: Schema.tag("Conflict"),
    detail: Schema.String,
    category: tenant,
  },
  { httpApiStatus: 409 },
) {}

/** The project's quota is used up. */
export class QuotaExceeded extends Schema.Error<QuotaExceeded>("system/QuotaExceeded")(
  {
    code: Schema.tag("svc.quota_exceeded"),
    title: Schema.tag("Quota exceeded"),
    detail: Schema.String,
    category: tenant,
  },
  { httpApiStatus: 403 },
) {}

/** The caller exceeds a limit per caller. */
export class TooMany extends Schema.Error<TooMany>("system/TooMany")(
  {
    code: Schema.tag("svc.quota_exceeded"),
    title: Schema.tag("Too many requests"),
    detail: Schema.String,
    category: tenant,
  },
  { httpApiStatus: 429 },
) {}

/** Rejections of webhook commands. */
export const WebhookRejection = Schema.Union([NotFound, Conflict])

/** Rejections of commands for issued tokens. */
export const TokenRejection = WebhookRejection
