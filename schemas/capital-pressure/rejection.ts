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
