/** The errors of carrier search: `{error}`. Source: document 3 §7 B. */
import { Schema } from "effect"

const body = { error: Schema.String.annotateKey({ description: "Description of the error." }) }

/** The range is missing, invalid or too large. */
export class BadRange extends Schema.Error<BadRange>("CarrierBadRange")(body, {
  httpApiStatus: 400,
  description:
    "`start` or `end` is missing or not an integer from 1 to 99999999, `end` is less than " +
    "`start`, or the range has more than `carrier.max_range` numbers.",
}) {}

/** The client accepts none of the response formats. */
export class NotAcceptable extends Schema.Error<NotAcceptable>("CarrierNotAcceptable")(body, {
  httpApiStatus: 406,
  description: "`Accept` permits neither JSON, NDJSON nor CSV.",
}) {}

export class TooManyRequests extends Schema.Error<TooManyRequests>("CarrierTooManyRequests")(body, {
  httpApiStatus: 429,
  description:
    "The caller has exceeded the rate limit. Wait for the number of seconds in `Retry-After`.",
}) {}

export class Internal extends Schema.Error<Internal>("CarrierInternal")(body, {
  httpApiStatus: 500,
  description: "The server failed unexpectedly. Its log has the cause.",
}) {}

/** A lookup failed, so the response has no partial results. */
export class RegistryFailed extends Schema.Error<RegistryFailed>("CarrierRegistryFailed")(body, {
  httpApiStatus: 502,
  description:
    "No registry is configured, or a lookup failed after retries. No partial result is " +
    "returned. `error` has the number of failed lookups, or what to set up.",
}) {}

/** The service could not start, or the server is shutting down. */
export class Unavailable extends Schema.Error<Unavailable>("CarrierUnavailable")(body, {
  httpApiStatus: 503,
  description:
    "The service could not start, or the server is starting or stopping. Retry with backoff.",
}) {}

/** The request exceeded its deadline. */
export class Late extends Schema.Error<Late>("CarrierLate")(body, {
  httpApiStatus: 504,
  description: "The request took longer than its deadline.",
}) {}

/** Errors of every endpoint. */
export const anywhere = [TooManyRequests, Internal, Unavailable] as const
