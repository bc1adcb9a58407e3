/**
 * Validates the fields of a message.
 *
 * Source: document 1 §4 PutChunk; DECISIONS, document 1, `data`.
 */
import { Result, Schema } from "effect"
import { base64Decoder } from "#gateway/blob-storage/body/base64.ts"
import type { FieldsRead } from "#gateway/blob-storage/body/fields.ts"
import { blob } from "#gateway/envelope.ts"
import { refusedInput } from "#gateway/failure.ts"
import { withoutNulls } from "#gateway/json.ts"
import { InvalidArgument } from "#schemas/blob-storage/rejection.ts"

/** Where the fields are, for error messages. */
type Where = "Payload" | `Message ${number}`

/** The rejection of input that does not match its schema. */
export const refusedFields = (kind: string, cause: Schema.SchemaError) => {
  const { detail, message } = refusedInput(kind, cause, blob)
  return new InvalidArgument({ detail, ...(message === undefined ? {} : { message }) })
}

const places = (where: Where) => (where === "Payload" ? "body" : where)

/** The bytes of `data`. If its name contains escapes, it is still in the fields. */
const dataOf = ({ data }: FieldsRead, text: string) => {
  if (text === "") return data
  const decoder = base64Decoder()
  decoder.push(utf8.encode(text))
  return decoder.end()
}
const utf8 = new TextEncoder()

const parsed = (json: string, where: Where): unknown => {
  try {
    return JSON.parse(json)
  } catch {
    throw new InvalidArgument({ detail: `${places(where)}: Expected valid JSON.` })
  }
}

/**
 * Validates a message against `schema`, in which `data` is a string; returns the fields and the
 * decoded bytes. Throws InvalidArgument, which names the field.
 */
export const messageFields = <S extends Schema.ConstraintDecoder<{ readonly data: string }>>(
  schema: S,
) => {
  const decode = Schema.decodeUnknownResult(schema)
  return (read: FieldsRead, where: Where) => {
    const decoded = decode(withoutNulls(parsed(read.json, where)))
    if (Result.isFailure(decoded)) throw refusedFields(where, decoded.failure)
    const fields = decoded.success
    const data = "data" in read || fields.data !== "" ? dataOf(read, fields.data) : []
    if (data === undefined) {
      throw new InvalidArgument({ detail: `${places(where)}.data: Expected base64.` })
    }
    return { fields, data }
  }
}
