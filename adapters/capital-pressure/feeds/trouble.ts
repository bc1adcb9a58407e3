/** What may go wrong when a publisher is asked, in words, and whether asking again may help. */
import { advice, type FeedRequest } from "#adapters/capital-pressure/feeds/plan.ts"

export interface Trouble {
  /** A clause that follows the publisher's name, without a full stop. */
  readonly reason: string
  readonly next: string
  /** Whether the next try may go better. */
  readonly is_passing: boolean
  /** The host wants fewer requests, or none from here: others are not sent either. */
  readonly is_refusal?: boolean
  /** How long it wants to be left alone. */
  readonly after_ms?: number
}

const passing = (reason: string, next: string = advice.later): Trouble => ({
  reason,
  next,
  is_passing: true,
})
const lasting = (reason: string, next: string): Trouble => ({ reason, next, is_passing: false })

/** An answer that is neither data nor the way to it. */
export const ofStatus = (
  status: number,
  { secret }: Pick<FeedRequest, "secret">,
  after_ms: number | undefined,
): Trouble => {
  const wait = after_ms === undefined ? {} : { after_ms }
  if (status === 429) {
    return { ...passing("answered 429, too many requests"), is_refusal: true, ...wait }
  }
  if (status >= 500) return { ...passing(`answered ${status}`), ...wait }
  if (secret && [400, 401, 403].includes(status)) {
    return lasting(`answered ${status}, so it may not know the key`, `Check ${secret.setting}.`)
  }
  if (status === 401 || status === 403) {
    return { ...lasting(`answered ${status}, so it refuses us`, advice.refused), is_refusal: true }
  }
  if (status === 404 || status === 410) return lasting(`answered ${status}`, advice.moved)
  return lasting(`answered ${status}`, advice.form)
}

const certificate = /CERT|SELF_SIGNED|UNABLE_TO_|ERR_TLS|HOSTNAME_MISMATCH|UNTRUSTED/

/** A connection that failed, or an answer that came only in part. */
export const ofCode = (code: string): Trouble => {
  switch (code) {
    case "TOO_LARGE":
    case "UND_ERR_RES_EXCEEDED_MAX_SIZE":
      return lasting("answered more bytes than a feed has", advice.form)
    case "BAD_ENCODING":
      return lasting("answered in an encoding that was not asked for", advice.form)
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return passing("is at a name that cannot be resolved", advice.network)
    case "ETIMEDOUT":
    case "UND_ERR_HEADERS_TIMEOUT":
    case "UND_ERR_BODY_TIMEOUT":
      return passing("did not answer in time")
    case "ERR_OTHER_HOST":
      return lasting("is asked without verification at one host only", advice.moved)
  }
  if (certificate.test(code)) {
    return lasting(`has a certificate that cannot be verified (${code})`, advice.clock)
  }
  if (code.startsWith("Z_")) return passing(`answered data that cannot be unpacked (${code})`)
  return passing(`cannot be reached, or broke off (${code})`, advice.network)
}

/** Sent to another place than its own, or around in circles where `hostname` is "". */
export const strayed = (hostname: string): Trouble =>
  hostname === ""
    ? lasting("sends us on without end", advice.moved)
    : lasting(`sends us to another place (${hostname.slice(0, hostname_chars_max)})`, advice.moved)

const hostname_chars_max = 100
const minute_ms = 60_000

/** It refused before, and is not asked again yet. */
export const exhausted = (rest_ms: number): Trouble => {
  const minutes = Math.ceil(rest_ms / minute_ms)
  return lasting(
    "refused an earlier request, so it is left alone",
    `Try again in ${minutes} ${minutes === 1 ? "minute" : "minutes"}.`,
  )
}
