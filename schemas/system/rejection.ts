/**
 * Errors of paths that belong to no service, in the envelope of document 2 §7 like all other `/v1`
 * paths.
 */
import { Schema } from "effect"

/** The party that can resolve an error. */
export const ErrorCategory = Schema.Literals(["tenant_action_required", "operator_action_required"])
export const tenant = Schema.tag("tenant_action_required")
export const operator = Schema.tag("operator_action_required")

/** The meaning of each member of the envelope, for the API reference. */
export const envelope_texts = {
  code: "The machine-readable code, such as `svc.not_found`.",
  title: "The code in words, always the same.",
  detail: "One sentence about the cause.",
  category: "The party that can resolve the error: the caller, or an operator of the server.",
} as const

/** The fields of an error: one row of the error table. */
export const row = <
  const Code extends string,
  const Title extends string,
  Category extends typeof tenant | typeof operator,
>(
  code: Code,
  title: Title,
  category: Category,
) => ({
  code: Schema.tag(code).annotateKey({ description: envelope_texts.code }),
  title: Schema.tag(title).annotateKey({ description: envelope_texts.title }),
  detail: Schema.String.annotateKey({ description: envelope_texts.detail }),
  category: category.annotateKey({ description: envelope_texts.category }),
})

export class Invalid extends Schema.Error<Invalid>("system/Invalid")(
  row("svc.validation_error", "Validation error", tenant),
  {
    httpApiStatus: 400,
    description:
      "A parameter or the body is malformed or has an invalid value. The detail names it.",
  },
) {}

export class Forbidden extends Schema.Error<Forbidden>("system/Forbidden")(
  row("svc.forbidden", "Forbidden", tenant),
  {
    httpApiStatus: 403,
    description: "The caller lacks the required role, or its token belongs to no project.",
  },
) {}

export class NotFound extends Schema.Error<NotFound>("system/NotFound")(
  row("svc.not_found", "Not found", tenant),
  {
    httpApiStatus: 404,
    description: "The resource does not exist, or belongs to another project.",
  },
) {}

export class BackendUnavailable extends Schema.Error<BackendUnavailable>(
  "system/BackendUnavailable",
)(row("svc.backend_unavailable", "Backend unavailable", operator), {
  httpApiStatus: 503,
  description: "The log, the bus or another service is unavailable. Retry with backoff.",
}) {}

export class Conflict extends Schema.Error<Conflict>("system/Conflict")(
  row("svc.conflict", "Conflict", tenant),
  {
    httpApiStatus: 409,
    description: "The state of the resource does not allow the request.",
  },
) {}

/** The project's quota is used up. */
export class QuotaExceeded extends Schema.Error<QuotaExceeded>("system/QuotaExceeded")(
  row("svc.quota_exceeded", "Quota exceeded", tenant),
  {
    httpApiStatus: 403,
    description: "The project has reached its maximum number of these resources.",
  },
) {}

/** The caller exceeds a limit per caller. */
export class TooMany extends Schema.Error<TooMany>("system/TooMany")(
  row("svc.quota_exceeded", "Too many requests", tenant),
  {
    httpApiStatus: 429,
    description: "The caller has exceeded a per-caller limit. Retry after `Retry-After` seconds.",
  },
) {}

/** Rejections of webhook commands. */
export const WebhookRejection = Schema.Union([NotFound, Conflict])

/** Rejections of commands for issued tokens. */
export const TokenRejection = WebhookRejection
