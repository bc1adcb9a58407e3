/** A page of a collection. Source: document 2 §2 Pagination object; DECISIONS, pagination. */
import { DateTime, Schema, SchemaGetter } from "effect"
import { Instant } from "#schemas/instant.ts"
import { Uuid } from "#schemas/share-protection/id.ts"
import { Count } from "#schemas/share-protection/text.ts"
import { documented_instant, InstantMs, PageLimit } from "#schemas/system/audit.ts"

const UuidText = Schema.String.check(
  Schema.isPattern(
    /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/u,
    { expected: "a UUID" },
  ),
)

/** An id in a query or a path, with hex digits in either case. */
export const idText = <Id extends string>(id: Schema.Codec<Id, string>) =>
  UuidText.pipe(
    Schema.decodeTo(id, {
      decode: SchemaGetter.transform((text: string) => text.toLowerCase()),
      encode: SchemaGetter.passthrough(),
    }),
    Schema.annotate({ documentedAs: { type: "string", format: "uuid" } }),
  )

/** The path parameter of a resource. An id that is not a UUID results in 404. */
export const pathId = (noun: string) => ({
  id: Schema.String.annotate({ description: `ID of the ${noun}, a UUID.`, format: "uuid" }),
})

/** An optional filter of a list. */
export const filterBy = <S extends Schema.Top>(schema: S, description: string) =>
  Schema.optionalKey(schema).annotateKey({ description })

export const page_query = {
  limit: filterBy(
    PageLimit,
    "Maximum number of items on the page, 1 to 1000 (`api.max_limit`). 100 by default " +
      "(`api.default_limit`).",
  ),
  marker: filterBy(
    idText(Uuid),
    "The `next_marker` of the previous page: the id of its last item, which may have been " +
      "deleted since.",
  ),
}

export const Pagination = Schema.Struct({
  limit: Schema.Int.annotateKey({ description: "Maximum number of items on the page." }),
  count: Count.annotateKey({ description: "Number of items on the page." }),
  next_marker: Schema.NullOr(Schema.String).annotateKey({
    description: "Send it as `marker` to get the next page. Null on the last page.",
  }),
}).annotate({ identifier: "Pagination", description: "The position of a page in its list." })

const Moment = InstantMs.pipe(
  Schema.decodeTo(Instant, {
    decode: SchemaGetter.transform((ms: number) => DateTime.formatIso(DateTime.makeUnsafe(ms))),
    encode: SchemaGetter.transform((instant: string) => Date.parse(instant)),
  }),
  Schema.annotate(documented_instant),
)

/** `as_of` requests the state at a time (RFC 3339). */
export const as_of_query = {
  as_of: filterBy(
    Moment,
    "Time (RFC 3339) for which to return the state. Now by default. Resources that did not exist " +
      "then are left out.",
  ),
}

/** A boolean in a query, in the spellings of common languages. */
export const Flag = Schema.String.check(
  Schema.isPattern(/^(true|false|1|0)$/i, { expected: "true or false" }),
).pipe(
  Schema.decodeTo(Schema.Boolean, {
    decode: SchemaGetter.transform((text: string) => /^(true|1)$/i.test(text)),
    encode: SchemaGetter.transform(String),
  }),
  Schema.annotate({ documentedAs: { type: "boolean" } }),
)
