/**
 * Errors of paths that belong to no service, in the envelope of document 2 §7 like all other `/v1`
 * paths.
 */
import { Schema } from "effect"

const resolver = {
  description: "The party that can resolve the error: the caller, or an operator of the server.",
} as const
const tenant = Schema.tag("tenant_action_required").annotateKey(resolver)
const Detail = Schema.String.annotate({ description: "One sentence about what is wrong." })

/** The code and the title of an error. */
const named = <const Code extends string, const Title extends string>(
  code: Code,
  title: Title,
) => ({
  code: Schema.tag(code).annotateKey({ description: "The machine-readable code." }),
  title: Schema.tag(title).annotateKey({ description: "The code in words." }),
})

export class Invalid extends Schema.Error<Invalid>("system/Invalid")(
  {
    ...named("svc.validation_error", "Validation error"),
    detail: Detail,
    category: tenant,
  },
  {
    httpApiStatus: 400,
    description:
      "A parameter or the body is malformed or has an invalid value. The detail names it.",
  },
) {}

export class Forbidden extends Schema.Error<Forbidden>("system/Forbidden")(
  {
    ...named("svc.forbidden", "Forbidden"),
    detail: Detail,
    category: tenant,
  },
  {
    httpApiStatus: 403,
    description: "The caller lacks the required role, or its token belongs to no project.",
  },
) {}

export class NotFound extends Schema.Error<NotFound>("system/NotFound")(
  {
    ...named("svc.not_found", "Not found"),
    detail: Detail,
    category: tenant,
  },
  {
    httpApiStatus: 404,
    description: "The resource does not exist, or belongs to another project.",
  },
) {}

export class BackendUnavailable extends Schema.Error<BackendUnavailable>(
  "system/BackendUnavailable",
)(
  {
    ...named("svc.backend_unavailable", "Backend unavailable"),
    detail: Detail,
    category: Schema.tag("operator_action_required").annotateKey(resolver),
  },
  {
    httpApiStatus: 503,
    description: "The log, the bus or another service is unavailable. Retry with backoff.",
  },
) {}

export class Conflict extends Schema.Error<Conflict>("system/Conflict")(
  {
    ...named("svc.conflict", "Conflict"),
    detail: Detail,
    category: tenant,
  },
  {
    httpApiStatus: 409,
    description: "The state of the resource does not allow the request.",
  },
) {}

/** The project's quota is used up. */
export class QuotaExceeded extends Schema.Error<QuotaExceeded>("system/QuotaExceeded")(
  {
    ...named("svc.quota_exceeded", "Quota exceeded"),
    detail: Detail,
    category: tenant,
  },
  {
    httpApiStatus: 403,
    description: "The project has as many of these resources as it may have.",
  },
) {}

/** The caller exceeds a limit per caller. */
export class TooMany extends Schema.Error<TooMany>("system/TooMany")(
  {
    ...named("svc.quota_exceeded", "Too many requests"),
    detail: Detail,
    category: tenant,
  },
  {
    httpApiStatus: 429,
    description: "The caller exceeds a limit per caller. Retry after `Retry-After` seconds.",
  },
) {}

/** Rejections of webhook commands. */
export const WebhookRejection = Schema.Union([NotFound, Conflict])

/** Rejections of commands for issued tokens. */
export const TokenRejection = WebhookRejection
