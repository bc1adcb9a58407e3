/** JSON with exact 64-bit integers. Source: DECISIONS, int64 in JSON. */
import { Context, Effect, Schema, SchemaIssue } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiError } from "effect/http-api"
import type { Settings } from "#schemas/settings.ts"

/** The format of 64-bit integers (`json.int64`), provided once when the gateway starts. */
export const Int64Form = Context.Reference<Settings["json"]["int64"]>("gateway/Int64Form", {
  defaultValue: () => "number",
})

/** Part of ES2025 and Node 21, but still missing in TypeScript's library. */
interface ExactJson {
  readonly rawJSON: (text: string) => unknown
  readonly parse: (
    text: string,
    reviver: (key: string, value: unknown, at: { readonly source?: string }) => unknown,
  ) => unknown
}
// JSON itself, with the two functions that its type lacks.
const json = JSON as unknown as ExactJson

const asInteger = (_key: string, value: unknown) =>
  typeof value === "bigint" ? json.rawJSON(value.toString()) : value

const asText = (_key: string, value: unknown) =>
  typeof value === "bigint" ? value.toString() : value

/** Serializes to JSON. A bigint becomes an exact integer, or a string as in proto3's JSON. */
export const stringify = (value: unknown, form: Settings["json"]["int64"]): string =>
  JSON.stringify(value, form === "number" ? asInteger : asText)

const exact = (_key: string, value: unknown, { source }: { readonly source?: string }) => {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value
  return source !== undefined && /^-?\d+$/.test(source) ? BigInt(source) : value
}

/** Parses JSON; an integer beyond 2^53 becomes a bigint. Throws SyntaxError. */
export const parse = (text: string): unknown => json.parse(text, exact)

/** Encodes values of `schema` as a JSON response; an invalid value is a defect. */
export const answer = <S extends Schema.ConstraintEncoder<unknown>>(
  schema: S,
  options: { readonly status?: number } = {},
) => {
  const encode = Schema.encodeSync(schema)
  return (value: S["Type"]): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
    Effect.map(Int64Form, (form) =>
      HttpServerResponse.text(stringify(encode(value), form), {
        ...options,
        contentType: "application/json",
      }),
    )
}

const malformed = new Schema.SchemaError(
  new SchemaIssue.InvalidValue({ message: "Expected a valid JSON body" }),
)

const refuse = (cause: Schema.SchemaError) =>
  Effect.die(new HttpApiError.HttpApiSchemaError({ kind: "Payload", cause }))

/** Removes null fields, because in proto3's JSON null means absent. */
export const withoutNulls = (fields: unknown) =>
  typeof fields === "object" && fields !== null && !Array.isArray(fields)
    ? Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
    : fields

/**
 * Decodes a request's JSON body with `schema`, including integers beyond 2^53. Dies like HttpApi's
 * own decoding, so that the door responds with 400 and names the field.
 */
export const jsonBody = <S extends Schema.ConstraintDecoder<unknown>>(schema: S) => {
  const decode = Schema.decodeUnknownEffect(schema)
  return (request: HttpServerRequest.HttpServerRequest) =>
    Effect.gen(function* () {
      const text = yield* Effect.orDie(request.text)
      const body = yield* Effect.try({
        try: () => (text === "" ? undefined : parse(text)),
        catch: () => malformed,
      })
      return yield* decode(withoutNulls(body))
    }).pipe(Effect.catchIf(Schema.isSchemaError, refuse))
}
