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

const body = { detail: Schema.String.annotateKey({ description: "Description of the error." }) }

/** Document 3 §7 A: no such metric or tier. */
export class NotFound extends Schema.Error<NotFound>("CapitalNotFound")(body, {
  httpApiStatus: 404,
  description: "No metric or tier has this id. `detail` repeats the id.",
}) {}

/** The query is invalid. */
export class Unprocessable extends Schema.Error<Unprocessable>("CapitalUnprocessable")(body, {
  httpApiStatus: 422,
  description: "`since` is not a date.",
}) {}

/** Document 3 §7 A: the file is missing or unreadable. The text is fixed. */
export class Unreadable extends Schema.Error<Unreadable>("CapitalUnreadable")(body, {
  httpApiStatus: 500,
  description: "The dashboard's file is missing or unreadable. `ingest` creates it.",
}) {}

/** `capital.token` is set, and the request has no known token. */
export class Unauthorized extends Schema.Error<Unauthorized>("CapitalUnauthorized")(body, {
  httpApiStatus: 401,
  description: "`capital.token` is set, and the request has no valid token.",
}) {}

/** The token is known, but does not permit the dashboard. */
export class Forbidden extends Schema.Error<Forbidden>("CapitalForbidden")(body, {
  httpApiStatus: 403,
  description: "The token has neither the scope `dashboard:read` nor the role `admin`.",
}) {}

export class TooManyRequests extends Schema.Error<TooManyRequests>("CapitalTooManyRequests")(body, {
  httpApiStatus: 429,
  description:
    "The caller has exceeded the rate limit. Wait for the number of seconds in `Retry-After`.",
}) {}

/** The service could not start, or the server is shutting down. */
export class Unavailable extends Schema.Error<Unavailable>("CapitalUnavailable")(body, {
  httpApiStatus: 503,
  description:
    "The service could not start, or the server is starting or stopping. Retry with backoff.",
}) {}

export class TooLate extends Schema.Error<TooLate>("CapitalTooLate")(body, {
  httpApiStatus: 504,
  description: "The request took longer than its deadline.",
}) {}

/** Errors of every endpoint that reads the file. */
export const anywhere = [
  Unauthorized,
  Forbidden,
  TooManyRequests,
  Unreadable,
  Unavailable,
  TooLate,
] as const
