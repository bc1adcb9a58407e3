/** Rejections of the capital pressure actors, and the errors of its API. */
import { Schema } from "effect"

/** Generated and real data are never mixed in one series. */
export class DemoMixed extends Schema.TaggedError<DemoMixed>()("DemoMixed", {
  detail: Schema.String,
}) {}

/** The value is not in this stream's year. */
export class WrongYear extends Schema.TaggedError<WrongYear>()("WrongYear", {
  detail: Schema.String,
}) {}

export const Rejection = Schema.Union([DemoMixed, WrongYear])
export type Rejection = typeof Rejection.Type

/** Document 3 §7 A: no such metric or tier. */
export class NotFound extends Schema.Error<NotFound>("CapitalNotFound")(
  { detail: Schema.String },
  { httpApiStatus: 404 },
) {}

/** The query is invalid. */
export class Unprocessable extends Schema.Error<Unprocessable>("CapitalUnprocessable")(
  { detail: Schema.String },
  { httpApiStatus: 422 },
) {}

/** Document 3 §7 A: the file is missing or unreadable. The text is fixed. */
export class Unreadable extends Schema.Error<Unreadable>("CapitalUnreadable")(
  { detail: Schema.String },
  { httpApiStatus: 500 },
) {}

/** `capital.token` is set, and the request has no known token. */
export class Unauthorized extends Schema.Error<Unauthorized>("CapitalUnauthorized")(
  { detail: Schema.String },
  { httpApiStatus: 401 },
) {}

/** The token is known, but does not permit the dashboard. */
export class Forbidden extends Schema.Error<Forbidden>("CapitalForbidden")(
  { detail: Schema.String },
  { httpApiStatus: 403 },
) {}

export class TooManyRequests extends Schema.Error<TooManyRequests>("CapitalTooManyRequests")(
  { detail: Schema.String },
  { httpApiStatus: 429 },
) {}

/** The service could not start, or the server is shutting down. */
export class Unavailable extends Schema.Error<Unavailable>("CapitalUnavailable")(
  { detail: Schema.String },
  { httpApiStatus: 503 },
) {}

export class TooLate extends Schema.Error<TooLate>("CapitalTooLate")(
  { detail: Schema.String },
  { httpApiStatus: 504 },
) {}

/** Errors of every endpoint that reads the file. */
export const anywhere = [
  Unauthorized,
  Forbidden,
  TooManyRequests,
  Unreadable,
  Unavailable,
  TooLate,
] as const
