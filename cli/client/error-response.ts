/** Turns error responses into failures with advice. Source: document 1 §7, document 2 §7. */

import type { Access } from "#cli/client/access.ts"
import { endingOf } from "#cli/client/exit-code.ts"
import { failure } from "#cli/client/failure.ts"
import { printable } from "#cli/client/format.ts"
import { fromJson, type Json, textAt } from "#cli/client/json.ts"
import { notFoundAdvice } from "#cli/client/not-found.ts"

/** Characters to show of a response body that is not an error envelope. */
const text_chars_max = 300

/** Advice by error code. */
const by_code: Readonly<Record<string, string>> = {
  "svc.force_required":
    "repeat the command with --force, which overwrites the contents of the share",
  "svc.target_has_dependents":
    "delete them first: almanac policies list --target-id ID; almanac backups list --target-id ID",
  "svc.policy_has_inflight_backup": "wait for it: almanac backups list --policy-id ID",
  "svc.repository_locked": "wait for the job that holds it: almanac jobs list --target-id ID",
  "svc.quota_exceeded": "delete data, or let an operator raise the quota: almanac domains update",
  "svc.trust_access_denied":
    "create a trust and readable secrets, then: almanac targets update --trust-id ID",
  "svc.target_preflight_failed": "fix the bucket, then: almanac targets enroll ID",
  "svc.field_immutable": "create a new resource instead",
  FAILED_PRECONDITION: "see how many nodes are active: almanac cluster status",
}

const by_status: Readonly<Record<number, string>> = {
  403: "use a token with the required role or scope; on a development server: --as admin",
  429: "wait, then repeat the command",
  503: "read the cause at /readyz of the server",
}

interface ErrorResponse {
  readonly status: number
  readonly text: string
  readonly access: Access
  readonly request: { readonly method: string; readonly path: string }
  readonly location?: string | undefined
  readonly retry_after?: string | undefined
}

/** Parses Retry-After, in seconds or as a date, into ms; 0 without the header. */
export const retryAfter = (header = "0") => {
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now()
  return Number.isNaN(ms) ? 0 : Math.max(0, ms)
}

/** Whether a retry may help: too many requests, or a server error. */
const isTransient = (status: number) => status === 429 || status >= 500

const envelopeOf = (text: string): Json => {
  try {
    return fromJson(text)
  } catch {
    return null
  }
}

const adviceFor = (code: string | undefined, response: ErrorResponse) => {
  const { status, access, request, location } = response
  if (status === 401) return access.sign_in
  // Redirections are not followed: they would send the token to another server.
  if (status < 400) return `use the address of the redirection: ${printable(location ?? "unknown")}`
  const next = by_code[code ?? ""]
  if (next !== undefined) return next
  return status === 404 ? notFoundAdvice(request) : by_status[status]
}

/** The failure for a response of 300 or above. */
export const responseFailure = (response: ErrorResponse) => {
  const { status, text, request } = response
  const envelope = envelopeOf(text)
  const code = textAt(envelope, "code")
  const message =
    textAt(envelope, "detail") ||
    textAt(envelope, "message") ||
    textAt(envelope, "error") ||
    // Keystone's envelope.
    textAt(envelope, "error.message")
  const detail = printable(message ?? text.trim().slice(0, text_chars_max))
  const name = code === undefined ? String(status) : `${status} ${printable(code)}`
  const what = detail === "" ? `${name} to ${request.method} ${request.path}` : `${name}: ${detail}`
  const again_ms = isTransient(status) ? retryAfter(response.retry_after) : undefined
  return failure(endingOf(status), what, adviceFor(code, response), again_ms)
}

const codeOf = (cause: unknown): string => {
  if (!(cause instanceof Error)) return ""
  // A host name with several addresses has one error per address.
  if (cause instanceof AggregateError && cause.errors.length > 0) return codeOf(cause.errors[0])
  return "code" in cause ? String(cause.code) : ""
}

const certificate = /CERT|SELF_SIGNED|UNABLE_TO|SSL|ALTNAME/

const unreachableAdvice = (code: string, { start }: Access) => {
  if (code === "ECONNREFUSED") return start
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "check the address"
  if (certificate.test(code))
    return "trust its authority with ALMANAC_CACERT=ca.pem, or ca in a profile"
  return "repeat the command; the server may have carried out the first request"
}

const reasonOf = (code: string, cause: unknown) => {
  if (code === "ECONNREFUSED") return "connection refused"
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "unknown host"
  if (code === "ETIMEDOUT") return "timeout"
  if (code === "ECONNRESET" || code === "EPIPE") return "connection lost"
  return cause instanceof Error ? cause.message : String(cause)
}

/** The failure for a request without a response. */
export const noResponseFailure = (
  cause: unknown,
  access: Access,
  { method, path }: { readonly method: string; readonly path: string },
) => {
  const code = codeOf(cause)
  const what = `No response from ${access.url} to ${method} ${path}: ${reasonOf(code, cause)}`
  return failure("unreachable", what, unreachableAdvice(code, access), 0)
}
