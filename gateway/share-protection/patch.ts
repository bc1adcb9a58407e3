/**
 * A PATCH: fields that may change, and fields that may only be repeated unchanged.
 *
 * Source: document 2 §4 rule 2; DECISIONS, document 2, policy.
 */
import { Effect, Equal, Schema, SchemaGetter } from "effect"
import { FieldImmutable } from "#schemas/share-protection/rejection.ts"

export interface Patch<Changes> {
  readonly changes: Changes
  /** Fields of the resource that cannot change. */
  readonly fixed: Readonly<Record<string, unknown>>
}

/** A body that is transformed after decoding. */
export const mappedBody = <Body, Meant>(
  body: Schema.Codec<Body, unknown>,
  meaning: (body: Body) => Meant,
): Schema.Codec<Meant, unknown> =>
  body.pipe(
    Schema.decodeTo(
      Schema.declare<Meant>((_): _ is Meant => true),
      {
        decode: SchemaGetter.transform(meaning),
        encode: SchemaGetter.forbiddenEncoding,
      },
    ),
  )

const Fixed = Schema.optionalKey(Schema.Json).annotateKey({
  description: "Cannot be changed: accepted with the current value only.",
  readOnly: true,
})

/** The PATCH of a resource with the fields of `View`. */
export const patchOf = <const Fields extends Schema.Struct.Fields, Meant>(
  changeable: Schema.Struct<Fields>,
  View: { readonly fields: Schema.Struct.Fields },
  meaning: (changes: Schema.Struct<Fields>["Type"]) => Meant,
): Schema.Codec<Patch<Meant>, unknown> => {
  const names = Object.keys(View.fields).filter((name) => !(name in changeable.fields))
  const body = Schema.Struct({
    ...changeable.fields,
    ...Object.fromEntries(names.map((name) => [name, Fixed])),
  }).annotate({ description: "The fields to change. Absent fields stay unchanged." })
  const isFixed = (name: string) => names.includes(name)
  // The names of the fixed fields are only known at run time.
  return mappedBody(body as unknown as Schema.Codec<object, unknown>, (request) => {
    const entries = Object.entries(request)
    const changes = Object.fromEntries(entries.filter(([name]) => !isFixed(name)))
    return {
      // All other fields were decoded by the schemas of the changeable ones.
      changes: meaning(changes as Schema.Struct<Fields>["Type"]),
      fixed: Object.fromEntries(entries.filter(([name]) => isFixed(name))),
    }
  })
}

/** Rejects a fixed field whose value differs from the current one. */
export const requireUnchanged = Effect.fnUntraced(function* (
  { fixed }: Patch<unknown>,
  current: Readonly<Record<string, unknown>>,
) {
  const names = Object.keys(fixed).filter((name) => !Equal.equals(fixed[name], current[name]))
  if (names.length === 0) return
  return yield* new FieldImmutable({ detail: `body.${names.join(", body.")}: cannot be changed` })
})
