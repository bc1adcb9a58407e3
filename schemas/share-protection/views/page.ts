/** A page of a collection. Source: document 2 §2 Pagination object; DECISIONS, pagination. */
import { DateTime, Schema, SchemaGetter } from "effect"
import { Instant } from "#schemas/instant.ts"
import { Uuid } from "#schemas/share-protection/id.ts"
import { Count } from "#schemas/share-protection/text.ts"
import { InstantMs, PageLimit } from "#schemas/system/audit.ts"

/** An id in a query, with hex digits in either case. */
export const idText = <Id extends string>(id: Schema.Codec<Id, string>) =>
  Schema.String.pipe(
    Schema.decodeTo(id, {
      decode: SchemaGetter.transform((text: string) => text.toLowerCase()),
      encode: SchemaGetter.passthrough(),
    }),
  )

/** `marker` is the id of the last item of the previous page, which may have been deleted since. */
export const page_query = {
  limit: Schema.optionalKey(PageLimit),
  marker: Schema.optionalKey(idText(Uuid)),
}

export const Pagination = Schema.Struct({
  limit: Schema.Int,
  /** Number of items on this page. */
  count: Count,
  /** Null on the last page. */
  next_marker: Schema.NullOr(Schema.String),
}).annotate({ identifier: "Pagination" })

const Moment = InstantMs.pipe(
  Schema.decodeTo(Instant, {
    decode: SchemaGetter.transform((ms: number) => DateTime.formatIso(DateTime.makeUnsafe(ms))),
    encode: SchemaGetter.transform((instant: string) => Date.parse(instant)),
  }),
)

/** `as_of` requests the state at a time (RFC 3339). */
export const as_of_query = { as_of: Schema.optionalKey(Moment) }

/** A boolean in a query, in the spellings of common languages. */
export const Flag = Schema.String.check(
  Schema.isPattern(/^(true|false|1|0)$/i, { expected: "true or false" }),
).pipe(
  Schema.decodeTo(Schema.Boolean, {
    decode: SchemaGetter.transform((text: string) => /^(true|1)$/i.test(text)),
    encode: SchemaGetter.transform(String),
  }),
)
