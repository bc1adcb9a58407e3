/** What the capital pressure actors refuse, and what its API answers instead. */
import { Schema } from "effect"

/** Generated data and real data never meet in one series. */
export class DemoMixed extends Schema.TaggedError<DemoMixed>()("DemoMixed", {
  detail: Schema.String,
}) {}

/** A value that is not of this stream's year. */
export class WrongYear extends Schema.TaggedError<WrongYear>()("WrongYear", {
  detail: Schema.String,
}) {}

export const Rejection = Schema.Union([DemoMixed, WrongYear])
export type Rejection = typeof Rejection.Type

/** Document 3 §7 A: no such metric, no such tier. */
export class NotFound extends Schema.Error<NotFound>("CapitalNotFound")(
  { detail: Schema.String },
  { httpApiStatus: 404 },
) {}

/** A query that cannot be read. */
export class Unprocessable extends Schema.Error<Unprocessable>("CapitalUnprocessable")(
  { detail: Schema.String },
  { httpApiStatus: 422 },
) {}

/** Document 3 §7 A: the file is missing or cannot be read. One fixed text. */
export class Unreadable extends Schema.Error<Unreadable>("CapitalUnreadable")(
  { detail: Schema.String },
  { httpApiStatus: 500 },
) {}

/** `capital.token` is set, and the request has no token that is known. */
export class Unauthorized extends Schema.Error<Unauthorized>("CapitalUnauthorized")(
  { detail: Schema.String },
  { httpApiStatus: 401 },
) {}

/** The token is known, and is not for the dashboard. */
export class Forbidden extends Schema.Error<Forbidden>("CapitalForbidden")(
  { detail: Schema.String },
  { httpApiStatus: 403 },
) {}

export class TooManyRequests extends Schema.Error<TooManyRequests>("CapitalTooManyRequests")(
  { detail: Schema.String },
  { httpApiStatus: 429 },
) {}

/** The service could not start, or the server is about to stop. */
export class Unavailable extends Schema.Error<Unavailable>("CapitalUnavailable")(
  { detail: Schema.String },
  { httpApiStatus: 503 },
) {}

export class TooLate extends Schema.Error<TooLate>("CapitalTooLate")(
  { detail: Schema.String },
  { httpApiStatus: 504 },
) {}

/** What every endpoint that reads the file may answer. */
export const anywhere = [
  Unauthorized,
  Forbidden,
  TooManyRequests,
  Unreadable,
  Unavailable,
  TooLate,
] as const
