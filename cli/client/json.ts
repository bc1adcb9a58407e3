/** JSON without rounding: integers beyond 2^53, such as nanoseconds, become bigints. */

export type Json =
  | (string | number | bigint | boolean | null)
  | ReadonlyArray<Json>
  | { readonly [name: string]: Json }

export type JsonObject = { readonly [name: string]: Json }

type Exact = (
  text: string,
  revive: (key: string, value: Json, at: { source?: string }) => Json,
) => Json

// The library's types lack the reviver's source argument and raw JSON.
const parse = JSON.parse as Exact
const raw = (JSON as unknown as { readonly rawJSON: (text: string) => unknown }).rawJSON

/** Parses JSON; throws a SyntaxError. */
export const fromJson = (text: string): Json =>
  parse(text, (_, value, { source }) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(source ?? "")
      ? BigInt(source ?? 0)
      : value,
  )

/** Serializes to one line, or indented by `indent` spaces. */
export const toJson = (value: Json, indent?: number) =>
  JSON.stringify(value, (_, one) => (typeof one === "bigint" ? raw(String(one)) : one), indent)

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const isList = (value: Json | undefined): value is ReadonlyArray<Json> =>
  Array.isArray(value)

/** The member at `a.b`; undefined if absent. */
export const memberAt = (value: Json | undefined, path: string): Json | undefined =>
  path
    .split(".")
    .reduce<Json | undefined>((at, name) => (isObject(at) ? at[name] : undefined), value)

/** The string at `path`; undefined if absent. */
export const textAt = (value: Json | undefined, path: string) => {
  const found = memberAt(value, path)
  return typeof found === "string" ? found : undefined
}

/** A copy of the object with `value` at `a.b`. */
export const withMember = (object: JsonObject, path: string, value: Json): JsonObject => {
  const [name = "", ...rest] = path.split(".")
  if (rest.length === 0) return { ...object, [name]: value }
  const inner = object[name]
  return { ...object, [name]: withMember(isObject(inner) ? inner : {}, rest.join("."), value) }
}
