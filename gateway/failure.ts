/** The failure that a client gets for a cause. */
import { Cause, Predicate, type Schema, SchemaIssue } from "effect"
import { HttpServerError, HttpServerResponse } from "effect/http"
import { HttpApiError } from "effect/http-api"
import { Exhausted } from "#gateway/budget.ts"
import { type Envelope, type Failure, messageOf } from "#gateway/envelope.ts"
import { KeyReused } from "#gateway/request-context.ts"

/** Where a field is in the request, in terms that clients know. */
const places: Readonly<Record<string, string>> = {
  Payload: "body",
  Params: "path",
  Query: "query",
  Headers: "header",
}

/** Maximum number of errors to report: enough to correct a request, which may have thousands. */
const issues_shown_max = 3

const format = SchemaIssue.makeFormatterStandardSchemaV1()

/** The failure of input that does not match its schema; `detail` names each field. */
export const refusedInput = (kind: string, cause: Schema.SchemaError, envelope: Envelope) => {
  const { issues } = format(cause.issue)
  const details = issues.slice(0, issues_shown_max).map(({ path = [], message }) => {
    const field = path.map(String).join(".")
    return `${places[kind] ?? kind}${field === "" ? "" : `.${field}`}: ${message}`
  })
  const [field = ""] = issues[0]?.path ?? []
  const failure: Failure = {
    status: kind === "Query" ? envelope.wrong_query : 400,
    detail: details.join("; "),
    ...messageOf(envelope, typeof field === "string" ? field : ""),
  }
  return failure
}

const too_large: Failure = { status: 413, detail: "The request body is too large." }
const late: Failure = { status: 504, detail: "The request took longer than its deadline." }
const slow: Failure = {
  status: 408,
  detail: "The request body came too slowly: send it faster, or in smaller requests.",
}
/** The failure of a request whose deadline has passed. */
export const tooLate = ({ is_slow }: { readonly is_slow: boolean }) => (is_slow ? slow : late)
export const internal: Failure = { status: 500, detail: "" }
const stopping: Failure = { status: 503, detail: "The server is shutting down." }

/** Failures behind the gateway that a retry may avoid. */
const unavailable = new Set([
  "LogUnavailable",
  "OutcomeUnknown",
  "VersionConflict",
  "Behind",
  // A read model's query throws this while the database server is offline.
  "DatabaseUnusable",
])

/** Source: the IETF's draft of the header Idempotency-Key, section 2.7; decision 0167. */
const key_reused: Failure = {
  status: 422,
  detail: "The Idempotency-Key was used before, by a request with another body or query.",
}

const ofError = (error: unknown, envelope: Envelope): Failure | undefined => {
  if (HttpApiError.HttpApiSchemaError.is(error)) {
    const is_ours = error.kind === "Body" || error.kind === "ResponseHeaders"
    return is_ours ? undefined : refusedInput(error.kind, error.cause, envelope)
  }
  if (HttpApiError.HttpApiPayloadTooLarge.is(error)) return too_large
  if (HttpServerError.isHttpServerError(error)) {
    if (error.reason._tag === "RouteNotFound") return { status: 404, detail: "No such path." }
    if (error.reason._tag !== "RequestParseError") return undefined
    if (error.reason.reason === "BodyTooLarge") return too_large
    return { status: 400, detail: "The request body could not be read." }
  }
  if (Predicate.isTagged(error, "MultipartError")) {
    const reason = Predicate.hasProperty(error, "reason") ? error.reason : undefined
    const tag = Predicate.hasProperty(reason, "_tag") ? String(reason._tag) : ""
    return tag.endsWith("TooLarge") || tag === "TooManyParts"
      ? too_large
      : { status: 400, detail: "The multipart body could not be read." }
  }
  if (error instanceof KeyReused) return key_reused
  if (error instanceof Exhausted) {
    const { status, detail, retry_after_s } = error
    return { status, detail, headers: { "retry-after": String(retry_after_s) } }
  }
  if (Predicate.hasProperty(error, "_tag") && unavailable.has(String(error._tag))) {
    const detail = Predicate.hasProperty(error, "detail") ? String(error.detail) : ""
    return { status: 503, detail, headers: { "retry-after": "1" } }
  }
  return undefined
}

/** A thrown response, or the failure; undefined for a defect. */
export const failureOf = (
  cause: Cause.Cause<unknown>,
  envelope: Envelope,
): Failure | HttpServerResponse.HttpServerResponse | undefined => {
  for (const reason of cause.reasons) {
    if (Cause.isInterruptReason(reason)) continue
    const error = Cause.isFailReason(reason) ? reason.error : reason.defect
    return HttpServerResponse.isHttpServerResponse(error) ? error : ofError(error, envelope)
  }
  return stopping
}

/** Whether the client disconnected, so that no response is needed. */
export const isClientGone = (cause: Cause.Cause<unknown>) =>
  cause.reasons.some(
    (reason) =>
      Cause.isInterruptReason(reason) && reason.annotations.has(HttpServerError.ClientAbort.key),
  )
