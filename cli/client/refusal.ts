/** What went wrong in words, and what to do about it. Source: document 1 §7, document 2 §7. */
import { nextOfAbsence } from "#cli/client/absent.ts"
import type { Access } from "#cli/client/access.ts"
import { endingOf } from "#cli/client/exit-code.ts"
import { failure } from "#cli/client/failure.ts"
import { fromJson, type Json, textAt } from "#cli/client/json.ts"
import { printable } from "#cli/client/shown.ts"

/** Characters of an answer that is no envelope which are worth showing. */
const text_chars_max = 300

/** What to do about a refusal, by its code. */
const by_code: Readonly<Record<string, string>> = {
  "svc.force_required": "repeat it with --force: what is in the share is overwritten",
  "svc.target_has_dependents":
    "delete them first: almanac policies list --target-id ID; almanac backups list --target-id ID",
  "svc.policy_has_inflight_backup": "wait for it: almanac backups list --policy-id ID",
  "svc.repository_locked": "wait for the job that holds it: almanac jobs list --target-id ID",
  "svc.quota_exceeded": "delete what is not needed, or ask an operator: almanac domains update",
  "svc.trust_access_denied":
    "make a trust and secrets that the service may read: almanac targets update --trust-id ID",
  "svc.target_preflight_failed": "mend the bucket, then: almanac targets enroll ID",
  "svc.field_immutable": "make a new one in its place",
  FAILED_PRECONDITION: "see how many nodes are active: almanac cluster status",
}

const by_status: Readonly<Record<number, string>> = {
  403: "another role or scope is needed; beside a development server: --as admin, or domain_owner",
  429: "wait, then repeat it",
  503: "see what is wrong: the server's /readyz says it",
}

interface Refused {
  readonly status: number
  readonly text: string
  readonly access: Access
  readonly asked: { readonly method: string; readonly path: string }
  readonly location?: string | undefined
  readonly retry_after?: string | undefined
}

/** How long an answer asks to wait, in ms: seconds, or until a date; 0 where it does not say. */
export const retryAfter = (header = "0") => {
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now()
  return Number.isNaN(ms) ? 0 : Math.max(0, ms)
}

/** Whether it is for now only: too many requests, or a server that cannot. */
const isPassing = (status: number) => status === 429 || status >= 500

const envelopeOf = (text: string): Json => {
  try {
    return fromJson(text)
  } catch {
    return null
  }
}

const nextOfRefusal = (code: string | undefined, refused: Refused) => {
  const { status, access, asked, location } = refused
  if (status === 401) return access.sign_in
  // Not followed: the token would go to another than it was given for.
  if (status < 400) return `it is elsewhere, give that address: ${printable(location ?? "unknown")}`
  const next = by_code[code ?? ""]
  if (next !== undefined) return next
  return status === 404 ? nextOfAbsence(asked) : by_status[status]
}

/** The failure that an answer of 300 or more is. */
export const refusal = (refused: Refused) => {
  const { status, text, asked } = refused
  const envelope = envelopeOf(text)
  const code = textAt(envelope, "code")
  const said =
    textAt(envelope, "detail") ||
    textAt(envelope, "message") ||
    textAt(envelope, "error") ||
    // Keystone's.
    textAt(envelope, "error.message")
  const detail = printable(said ?? text.trim().slice(0, text_chars_max))
  const name = code === undefined ? String(status) : `${status} ${printable(code)}`
  const what = detail === "" ? `${name} to ${asked.method} ${asked.path}` : `${name}: ${detail}`
  const again_ms = isPassing(status) ? retryAfter(refused.retry_after) : undefined
  return failure(endingOf(status), what, nextOfRefusal(code, refused), again_ms)
}

const codeOf = (cause: unknown): string => {
  if (!(cause instanceof Error)) return ""
  // Where a name has several addresses, each has its error.
  if (cause instanceof AggregateError && cause.errors.length > 0) return codeOf(cause.errors[0])
  return "code" in cause ? String(cause.code) : ""
}

const certificate = /CERT|SELF_SIGNED|UNABLE_TO|SSL|ALTNAME/

const nextOfSilence = (code: string, { start }: Access) => {
  if (code === "ECONNREFUSED") return start
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "check the address"
  if (certificate.test(code)) return "name its authority: ALMANAC_CACERT=ca.pem, or ca in a profile"
  return "repeat it; what was sent may have been done"
}

const reasonOf = (code: string, cause: unknown) => {
  if (code === "ECONNREFUSED") return "nothing listens there"
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "there is no such host"
  if (code === "ETIMEDOUT") return "no answer in time"
  if (code === "ECONNRESET" || code === "EPIPE") return "the connection broke"
  return cause instanceof Error ? cause.message : String(cause)
}

/** The failure that no answer is. */
export const unreachable = (
  cause: unknown,
  access: Access,
  { method, path }: { readonly method: string; readonly path: string },
) => {
  const code = codeOf(cause)
  const what = `${access.url} does not answer ${method} ${path}: ${reasonOf(code, cause)}`
  return failure("unreachable", what, nextOfSilence(code, access), 0)
}
