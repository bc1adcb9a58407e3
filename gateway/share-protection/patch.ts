/**
 * A PATCH: what may change, and what may only be sent as it is.
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

/** A body as it is written, and what it means. */
export const taken = <Body, Meant>(
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

const Fixed = Schema.optionalKey(Schema.Json)

/** The PATCH of a resource that shows the fields of `View`. */
export const patchOf = <const Fields extends Schema.Struct.Fields, Meant>(
  changeable: Schema.Struct<Fields>,
  View: { readonly fields: Schema.Struct.Fields },
  meaning: (changes: Schema.Struct<Fields>["Type"]) => Meant,
): Schema.Codec<Patch<Meant>, unknown> => {
  const names = Object.keys(View.fields).filter((name) => !(name in changeable.fields))
  const body = Schema.Struct({
    ...changeable.fields,
    ...Object.fromEntries(names.map((name) => [name, Fixed])),
  })
  const isFixed = (name: string) => names.includes(name)
  // The names of the fixed fields are known at run time only.
  return taken(body as unknown as Schema.Codec<object, unknown>, (asked) => {
    const entries = Object.entries(asked)
    const changes = Object.fromEntries(entries.filter(([name]) => !isFixed(name)))
    return {
      // What is not fixed was decoded by the schemas of what may change.
      changes: meaning(changes as Schema.Struct<Fields>["Type"]),
      fixed: Object.fromEntries(entries.filter(([name]) => isFixed(name))),
    }
  })
}

/** Refuses what is sent otherwise than it is shown. */
export const unchanged = Effect.fnUntraced(function* (
  { fixed }: Patch<unknown>,
  shown: Readonly<Record<string, unknown>>,
) {
  const names = Object.keys(fixed).filter((name) => !Equal.equals(fixed[name], shown[name]))
  if (names.length === 0) return
  return yield* new FieldImmutable({ detail: `body.${names.join(", body.")}: cannot be changed` })
})
