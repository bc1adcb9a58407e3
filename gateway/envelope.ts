/**
 * The format of errors: the envelopes, and a table from path to envelope.
 *
 * Source: decisions of all services, "error envelope on a path no service owns"; document 1 §7,
 * document 2 §7, document 3 §7 of each service.
 */
import { Context, Effect, Schema } from "effect"
import { RequestContext } from "#gateway/request-context.ts"
import { type Code, grpc_codes, messages, Rejection } from "#schemas/blob-storage/rejection.ts"
import { type Settings, settings } from "#schemas/settings.ts"

/** An error before it is formatted for a service. */
export interface Failure {
  readonly status: number
  readonly detail: string
  /** A short stable text, if the document specifies one for this case. */
  readonly message?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Fields of an error that only the door knows. */
export interface Edge {
  readonly request_id: string
  readonly error: Settings["error"]
}

type Body = Readonly<Record<string, unknown>>

export interface Envelope {
  readonly body: (failure: Failure, edge: Edge) => Body
  /** Adds the door's fields to a service's rejection. */
  readonly complete: (body: Body, edge: Edge) => Body
  /** Headers of every response on these paths. */
  readonly headers?: (request_id: string) => Readonly<Record<string, string>>
  /** The status if a path does not support the method. */
  readonly wrong_method: 405 | 501
  /** The status for an invalid query. */
  readonly wrong_query: 400 | 422
}

const unchanged = (body: Body) => body

/** Truncates a text to a number of bytes in UTF-8, never inside a character. */
export const cut = (text: string, bytes_max: number) => {
  if (text.length * utf8_bytes_max <= bytes_max) return text
  const bytes = new Uint8Array(bytes_max)
  return text.slice(0, utf8.encodeInto(text, bytes).read)
}

/** A UTF-16 code unit takes at most three bytes in UTF-8. */
const utf8_bytes_max = 3
const utf8 = new TextEncoder()

const isCode = (code: unknown): code is Code =>
  typeof code === "string" && Object.hasOwn(grpc_codes, code)

const blob_rows: Readonly<Record<number, readonly [Code, string]>> = {
  400: ["INVALID_ARGUMENT", "invalid argument"],
  401: ["UNAUTHENTICATED", "unauthenticated"],
  403: ["PERMISSION_DENIED", "permission denied"],
  404: ["NOT_FOUND", "not found"],
  408: ["DEADLINE_EXCEEDED", "deadline exceeded"],
  409: ["ALREADY_EXISTS", "already exists"],
  412: ["FAILED_PRECONDITION", "failed precondition"],
  413: ["RESOURCE_EXHAUSTED", "request too large"],
  414: ["INVALID_ARGUMENT", "URL too long"],
  415: ["INVALID_ARGUMENT", "unsupported media type"],
  416: ["OUT_OF_RANGE", "range not satisfiable"],
  429: ["RESOURCE_EXHAUSTED", "rate limit exceeded"],
  501: ["UNIMPLEMENTED", "unimplemented"],
  503: ["UNAVAILABLE", "unavailable"],
  504: ["DEADLINE_EXCEEDED", "deadline exceeded"],
}

const blobRow = (status: number) =>
  blob_rows[status] ??
  (status < 500
    ? (["INVALID_ARGUMENT", "invalid argument"] as const)
    : (["INTERNAL", "internal error"] as const))

const completeBlob = (body: Body, { request_id, error }: Edge): Body => {
  const { code, detail } = body
  const is_shown = error.include_detail && typeof detail === "string"
  return {
    ...body,
    detail: is_shown ? cut(detail, error.max_detail_bytes) : "",
    request_id,
    ...(error.include_grpc_code && isCode(code) ? { grpc_code: grpc_codes[code] } : {}),
  }
}

/** Document 1 §7, shape 2. */
export const blob: Envelope = {
  body: ({ status, detail, message }, edge) => {
    const [code, usual] = blobRow(status)
    return completeBlob({ code, message: message ?? usual, detail }, edge)
  },
  complete: completeBlob,
  wrong_method: 501,
  wrong_query: 400,
}

const share_rows: Readonly<Record<number, readonly [string, string]>> = {
  401: ["svc.unauthorized", "Unauthorized"],
  403: ["svc.forbidden", "Forbidden"],
  404: ["svc.not_found", "Not found"],
  405: ["svc.method_not_allowed", "Method not allowed"],
  408: ["svc.validation_error", "Request timeout"],
  409: ["svc.conflict", "Conflict"],
  413: ["svc.validation_error", "Request too large"],
  414: ["svc.validation_error", "URL too long"],
  415: ["svc.validation_error", "Unsupported media type"],
  429: ["svc.quota_exceeded", "Too many requests"],
  503: ["svc.backend_unavailable", "Backend unavailable"],
  504: ["svc.backend_unavailable", "Deadline exceeded"],
}

/** Document 2 §7; every response has OpenStack's request id. */
export const share_protection: Envelope = {
  body: ({ status, detail }) => {
    const [code, title] =
      share_rows[status] ??
      (status < 500
        ? ["svc.validation_error", "Validation error"]
        : ["svc.internal_error", "Internal error"])
    const category = status < 500 ? "tenant_action_required" : "operator_action_required"
    return { code, title, detail, category }
  },
  complete: unchanged,
  headers: (request_id) => ({ "x-openstack-request-id": `req-${request_id}` }),
  wrong_method: 405,
  wrong_query: 400,
}

/** DECISIONS, document 3, "500 body of the dashboard": one fixed text. */
const internal_server_error = "Internal Server Error"

/** Document 3, the dashboard: `{detail}`. */
export const dashboard: Envelope = {
  body: ({ status, detail }) => ({ detail: status === 500 ? internal_server_error : detail }),
  complete: unchanged,
  wrong_method: 405,
  // DECISIONS, document 3: a wrong `since`.
  wrong_query: 422,
}

/** Clients get no details of defects. */
const internal_error = "internal error"

/** Document 3, carrier search and plant disease: `{error}`. */
const plain: Envelope = {
  body: ({ status, detail }) => ({ error: status === 500 ? internal_error : detail }),
  complete: unchanged,
  wrong_method: 405,
  wrong_query: 400,
}
export const carrier = plain
export const plant = plain

/** The first matching row applies; a trailing star matches any suffix. */
export const envelopes: ReadonlyArray<readonly [path: string, envelope: Envelope]> = [
  ["/v1/blobs*", blob],
  ["/v1/cluster*", blob],
  ["/internal/v1*", blob],
  ["/api/search*", carrier],
  ["/api*", dashboard],
  ["/health", dashboard],
  ["/predict*", plant],
  // KServe's errors have the same format.
  ["/v2*", plant],
  ["/*", share_protection],
]

const fits = (path: string, pattern: string) =>
  pattern.endsWith("*") ? path.startsWith(pattern.slice(0, -1)) : path === pattern

/** The envelope of a path without its query; doubled and trailing slashes are ignored. */
export const envelopeOf = (path: string): Envelope => {
  const plain = path.replace(/\/{2,}/g, "/").replace(/(?<=.)\/$/, "")
  return envelopes.find(([pattern]) => fits(plain, pattern))?.[1] ?? share_protection
}

/** The current `[error]` settings, provided once when the gateway starts. */
export const ErrorSettings = Context.Reference<() => Settings["error"]>("gateway/ErrorSettings", {
  defaultValue: () => () => ({
    include_detail: settings.error.include_detail.initial === true,
    include_grpc_code: settings.error.include_grpc_code.initial === true,
    max_detail_bytes: Number(settings.error.max_detail_bytes.initial),
  }),
})

const encodeRejection = Schema.encodeSync(Rejection)

/** The body of a blob rejection in a stream after the status 200 was sent. */
export const failureBody = Effect.fnUntraced(function* (rejection: Rejection) {
  const { request_id } = yield* RequestContext
  const error = (yield* ErrorSettings)()
  return completeBlob(encodeRejection(rejection), { request_id, error })
})

/** The message for a field, if the blob service's table has one. */
export const messageOf = (envelope: Envelope, field: string) =>
  envelope === blob && field === "id" ? { message: messages.invalid_blob_id } : {}
