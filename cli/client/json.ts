/** JSON as the server has it: an integer beyond 2^53, nanoseconds for example, is not rounded. */

export type Json =
  | (string | number | bigint | boolean | null)
  | ReadonlyArray<Json>
  | { readonly [name: string]: Json }

export type JsonObject = { readonly [name: string]: Json }

type Exact = (
  text: string,
  revive: (key: string, value: Json, at: { source?: string }) => Json,
) => Json

// The library's types do not know yet that the reviver is shown the source, nor of raw JSON.
const parse = JSON.parse as Exact
const raw = (JSON as unknown as { readonly rawJSON: (text: string) => unknown }).rawJSON

/** Throws a SyntaxError where it is none. */
export const fromJson = (text: string): Json =>
  parse(text, (_, value, { source }) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(source ?? "")
      ? BigInt(source ?? 0)
      : value,
  )

/** With two spaces a level where `indent` is given, on one line else. */
export const toJson = (value: Json, indent?: number) =>
  JSON.stringify(value, (_, one) => (typeof one === "bigint" ? raw(String(one)) : one), indent)

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const isList = (value: Json | undefined): value is ReadonlyArray<Json> =>
  Array.isArray(value)

/** The member at `a.b`; undefined where there is none. */
export const memberAt = (value: Json | undefined, path: string): Json | undefined =>
  path
    .split(".")
    .reduce<Json | undefined>((at, name) => (isObject(at) ? at[name] : undefined), value)

/** The text at `path`; undefined where there is none. */
export const textAt = (value: Json | undefined, path: string) => {
  const found = memberAt(value, path)
  return typeof found === "string" ? found : undefined
}

/** The object with `value` at `a.b`. */
export const withMember = (object: JsonObject, path: string, value: Json): JsonObject => {
  const [name = "", ...rest] = path.split(".")
  if (rest.length === 0) return { ...object, [name]: value }
  const inner = object[name]
  return { ...object, [name]: withMember(isObject(inner) ? inner : {}, rest.join("."), value) }
}
