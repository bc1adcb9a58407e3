/**
 * A request's body as messages, read as they are asked for, and their fields checked.
 *
 * Source: document 1 §4 PutChunk; DECISIONS, document 1, `data`, framing of streams.
 */
import { Effect, Pull, Result, Schema, Stream } from "effect"
import type { HttpServerRequest } from "effect/http"
import { base64Decoder } from "#gateway/blob-storage/body/base64.ts"
import type { FieldsRead } from "#gateway/blob-storage/body/fields.ts"
import { type Framing, messageScanner } from "#gateway/blob-storage/body/messages.ts"
import { blob } from "#gateway/envelope.ts"
import { refusedInput } from "#gateway/failure.ts"
import { withoutNulls } from "#gateway/json.ts"
import { Internal, InvalidArgument, TooLarge } from "#schemas/blob-storage/rejection.ts"

/** The client is gone, or what it sends is no HTTP any more. */
export const cut_off = new Internal({ detail: "The connection was lost before the body's end." })

export const bodyTooLarge = (bytes_max: number) =>
  new TooLarge({ detail: `The request body is larger than ${bytes_max} bytes.` })

export type BodyRefusal = InvalidArgument | TooLarge | Internal

export interface BodyLimits extends Framing {
  readonly body_bytes_max: number
}

export interface BodyMessages {
  /** The next message, or what the body ended in where there is none. */
  readonly next: Effect.Effect<FieldsRead | BodyEnd, BodyRefusal>
}
export type BodyEnd = "between messages" | "inside a message" | "inside the array"

/** Opens a body for reading message by message; what is unread at the scope's end stays unread. */
export const openMessages = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  { body_bytes_max, ...framing }: BodyLimits,
) {
  const pull = yield* Stream.toPull(Stream.mapError(request.stream, () => cut_off))
  const scanner = messageScanner(framing)
  const waiting: Array<FieldsRead> = []
  let body_bytes = 0

  const scan = (parts: ReadonlyArray<Uint8Array>) => {
    for (const part of parts) {
      body_bytes += part.length
      if (body_bytes > body_bytes_max) return Result.fail(bodyTooLarge(body_bytes_max))
      const scanned = scanner.feed(part)
      if (Result.isFailure(scanned)) return Result.fail(scanned.failure)
      waiting.push(...scanned.success)
    }
    return Result.succeed(undefined)
  }
  const more = Effect.flatMap(pull, (parts) => Effect.fromResult(scan(parts)))
  const next: BodyMessages["next"] = Effect.gen(function* () {
    while (waiting.length === 0) yield* more
    return waiting.shift() ?? scanner.end()
  }).pipe(Pull.catchDone(() => Effect.sync(scanner.end)))
  const messages: BodyMessages = { next }
  return messages
})

/** Where the fields are, as the answer to a mistake in them says it. */
type Where = "Payload" | `Message ${number}`

const refused = (where: Where, cause: Schema.SchemaError) => {
  const { detail, message } = refusedInput(where, cause, blob)
  return new InvalidArgument({ detail, ...(message === undefined ? {} : { message }) })
}

const places = (where: Where) => (where === "Payload" ? "body" : where)

/** The bytes of `data`; it is still in the fields where its name was written with escapes. */
const dataOf = ({ data }: FieldsRead, text: string) => {
  if (text === "") return data
  const decoder = base64Decoder()
  decoder.push(utf8.encode(text))
  return decoder.end()
}
const utf8 = new TextEncoder()

/**
 * Checks a message against `schema`, whose `data` is the text that was taken out; answers the
 * fields and the bytes that `data` stood for. A mistake is 400 and names the field.
 */
export const messageFields = <S extends Schema.ConstraintDecoder<{ readonly data: string }>>(
  schema: S,
) => {
  const decode = Schema.decodeUnknownEffect(schema)
  return Effect.fnUntraced(function* (read: FieldsRead, where: Where) {
    const json = yield* Effect.try({
      try: (): unknown => JSON.parse(read.json),
      catch: () => new InvalidArgument({ detail: `${places(where)}: Expected valid JSON.` }),
    })
    const fields = yield* decode(withoutNulls(json)).pipe(
      Effect.mapError((cause) => refused(where, cause)),
    )
    const data = "data" in read || fields.data !== "" ? dataOf(read, fields.data) : []
    if (data === undefined) {
      return yield* new InvalidArgument({ detail: `${places(where)}.data: Expected base64.` })
    }
    return { fields, data }
  })
}
