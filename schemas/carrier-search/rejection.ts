/** The errors of carrier search: `{error}`. Source: document 3 §7 B. */
import { Schema } from "effect"

/** The range is missing, invalid or too large. */
export class BadRange extends Schema.Error<BadRange>("CarrierBadRange")(
  { error: Schema.String },
  { httpApiStatus: 400 },
) {}

/** The client accepts none of the response formats. */
export class NotAcceptable extends Schema.Error<NotAcceptable>("CarrierNotAcceptable")(
  { error: Schema.String },
  { httpApiStatus: 406 },
) {}

export class TooManyRequests extends Schema.Error<TooManyRequests>("CarrierTooManyRequests")(
  { error: Schema.String },
  { httpApiStatus: 429 },
) {}

export class Internal extends Schema.Error<Internal>("CarrierInternal")(
  { error: Schema.String },
  { httpApiStatus: 500 },
) {}

/** A lookup failed, so the response has no partial results. */
export class RegistryFailed extends Schema.Error<RegistryFailed>("CarrierRegistryFailed")(
  { error: Schema.String },
  { httpApiStatus: 502 },
) {}

/** The service could not start, or the server is shutting down. */
export class Unavailable extends Schema.Error<Unavailable>("CarrierUnavailable")(
  { error: Schema.String },
  { httpApiStatus: 503 },
) {}

/** The request exceeded its deadline. */
export class Late extends Schema.Error<Late>("CarrierLate")(
  { error: Schema.String },
  { httpApiStatus: 504 },
) {}

/** Errors of every endpoint. */
export const anywhere = [TooManyRequests, Internal, Unavailable] as const
