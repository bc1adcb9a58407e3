/** Failures of a request to a publisher, with text for people and whether to retry. */
import { advice, type FeedRequest } from "#adapters/capital-pressure/feeds/plan.ts"

export interface RequestFailure {
  /** A clause that follows the publisher's name, without a full stop. */
  readonly reason: string
  readonly next: string
  /** Whether a retry may succeed. */
  readonly is_temporary: boolean
  /** The host rejects further requests, so none are sent for a while. */
  readonly is_rejection?: boolean
  /** The delay from Retry-After. */
  readonly after_ms?: number
}

const temporary = (reason: string, next: string = advice.later): RequestFailure => ({
  reason,
  next,
  is_temporary: true,
})
const permanent = (reason: string, next: string): RequestFailure => ({
  reason,
  next,
  is_temporary: false,
})

/** The failure of a response status. */
export const statusFailure = (
  status: number,
  { secret }: Pick<FeedRequest, "secret">,
  after_ms: number | undefined,
): RequestFailure => {
  const wait = after_ms === undefined ? {} : { after_ms }
  if (status === 429) {
    return { ...temporary("returned status 429, too many requests"), is_rejection: true, ...wait }
  }
  if (status >= 500) return { ...temporary(`returned status ${status}`), ...wait }
  if (secret && [400, 401, 403].includes(status)) {
    return permanent(
      `returned status ${status}; the key may be invalid`,
      `Check ${secret.setting}.`,
    )
  }
  if (status === 401 || status === 403) {
    return {
      ...permanent(`returned status ${status}: it rejects our requests`, advice.refused),
      is_rejection: true,
    }
  }
  if (status === 404 || status === 410) return permanent(`returned status ${status}`, advice.moved)
  return permanent(`returned status ${status}`, advice.form)
}

const certificate = /CERT|SELF_SIGNED|UNABLE_TO_|ERR_TLS|HOSTNAME_MISMATCH|UNTRUSTED/

/** The failure of a connection or an incomplete response. */
export const connectionFailure = (code: string): RequestFailure => {
  switch (code) {
    case "TOO_LARGE":
    case "UND_ERR_RES_EXCEEDED_MAX_SIZE":
      return permanent("exceeded the maximum response size", advice.form)
    case "BAD_ENCODING":
      return permanent("sent an encoding that was not requested", advice.form)
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return temporary("has a host name that cannot be resolved", advice.network)
    case "ETIMEDOUT":
    case "UND_ERR_HEADERS_TIMEOUT":
    case "UND_ERR_BODY_TIMEOUT":
      return temporary("did not respond in time")
    case "ERR_OTHER_HOST":
      return permanent(
        "can be fetched from one host only, because its certificate is not verified",
        advice.moved,
      )
  }
  if (certificate.test(code)) {
    return permanent(`has a certificate that cannot be verified (${code})`, advice.clock)
  }
  if (code.startsWith("Z_")) return temporary(`returned data that cannot be decompressed (${code})`)
  return temporary(`cannot be reached, or closed the connection (${code})`, advice.network)
}

/** A redirect to another host; `hostname` is "" for a redirect loop. */
export const redirectFailure = (hostname: string): RequestFailure =>
  hostname === ""
    ? permanent("redirects too many times", advice.moved)
    : permanent(
        `redirects to another host (${hostname.slice(0, hostname_chars_max)})`,
        advice.moved,
      )

const hostname_chars_max = 100
const minute_ms = 60_000

/** The host is paused after an earlier rejection. */
export const pausedFailure = (pause_ms: number): RequestFailure => {
  const minutes = Math.ceil(pause_ms / minute_ms)
  return permanent(
    "rejected an earlier request, so no more are sent for now",
    `Try again in ${minutes} ${minutes === 1 ? "minute" : "minutes"}.`,
  )
}
