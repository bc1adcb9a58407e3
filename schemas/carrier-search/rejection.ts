/** What carrier search answers instead of carriers: `{error}`. Source: document 3 §7 B. */
import { Schema } from "effect"

/** The range is missing, wrong or too large. */
export class BadRange extends Schema.Error<BadRange>("CarrierBadRange")(
  { error: Schema.String },
  { httpApiStatus: 400 },
) {}

/** Nothing that can be answered is wanted. */
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

/** The registry did not answer for each number; nothing partial is told. */
export class RegistryFailed extends Schema.Error<RegistryFailed>("CarrierRegistryFailed")(
  { error: Schema.String },
  { httpApiStatus: 502 },
) {}

/** The service could not start, or the server is about to stop. */
export class Unavailable extends Schema.Error<Unavailable>("CarrierUnavailable")(
  { error: Schema.String },
  { httpApiStatus: 503 },
) {}

/** Nothing came of it within the deadline of a request. */
export class Late extends Schema.Error<Late>("CarrierLate")(
  { error: Schema.String },
  { httpApiStatus: 504 },
) {}

/** What every endpoint may answer. */
export const anywhere = [TooManyRequests, Internal, Unavailable] as const
