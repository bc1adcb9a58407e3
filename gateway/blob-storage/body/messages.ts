/**
 * Splits a body into messages: one per line, or the elements of a JSON array, or a single one.
 *
 * Source: DECISIONS, document 1, framing of streams, limits not shown.
 */
import { Result } from "effect"
import {
  type DataSink,
  type FieldsRead,
  fieldsReader,
  newline,
} from "#gateway/blob-storage/body/fields.ts"
import { InvalidArgument, TooLarge } from "#schemas/blob-storage/rejection.ts"

/** How a body is divided into messages. */
export interface Framing {
  /** Maximum size of one message, including its braces. */
  readonly message_bytes_max: number
  /** Whether a line break ends a message, as in NDJSON. */
  readonly is_lined: boolean
  /** Whether an array of messages is accepted. */
  readonly is_array_allowed: boolean
}

type Refusal = InvalidArgument | TooLarge
type Scanned = Result.Result<ReadonlyArray<FieldsRead>, Refusal>

const open_brace = 0x7b
const open_bracket = 0x5b
const close_bracket = 0x5d
const comma = 0x2c
const blanks: ReadonlySet<number> = new Set([0x20, 0x09, 0x0d, newline])

/** State of the scanner between messages. */
interface Place {
  is_array: boolean
  is_closed: boolean
  /** Whether a message may begin here. */
  is_separated: boolean
  count: number
}

/**
 * Classifies a byte between messages: the start of a message, a separator or blank, or an error.
 */
const between = (place: Place, byte: number, framing: Framing) => {
  const { is_array, is_closed, is_separated, count } = place
  if (blanks.has(byte)) {
    if (!is_array && (byte === newline || !framing.is_lined)) place.is_separated = true
    return "skip"
  }
  if (is_closed) return "nonsense"
  if (byte === open_brace && is_separated) return "message"
  if (byte === open_bracket && count === 0 && !is_array && framing.is_array_allowed) {
    place.is_array = true
    return "skip"
  }
  if (byte === comma && is_array && !is_separated) {
    place.is_separated = true
    return "skip"
  }
  if (byte === close_bracket && is_array && (!is_separated || count === 0)) {
    place.is_closed = true
    return "skip"
  }
  return "nonsense"
}

/** A hint for a malformed first message: the body is most likely a plain file. */
const plain_bytes = " Plain bytes go to /v1/blobs/stream as application/octet-stream."

const malformed = (number: number) =>
  new InvalidArgument({
    detail: `Message ${number} of the body is not a JSON object.${number === 1 ? plain_bytes : ""}`,
  })

/**
 * Splits a body into its messages: `feed` takes the bytes, and `end` returns the state after the
 * last one. A `sink` is for bodies of a single message only.
 */
export const messageScanner = (framing: Framing, sink?: DataSink) => {
  const { message_bytes_max, is_lined } = framing
  const place: Place = { is_array: false, is_closed: false, is_separated: true, count: 0 }
  let reader: ReturnType<typeof fieldsReader> | undefined
  let message_bytes = 0

  const refusal = (): Refusal | undefined => {
    if (message_bytes > message_bytes_max) {
      const detail = `A message is larger than ${message_bytes_max} bytes.`
      return new TooLarge({ detail })
    }
    if (reader?.isFull()) {
      return new TooLarge({ detail: "The fields of a message other than its data are too large." })
    }
    const is_broken = is_lined && !place.is_array && reader?.isBroken() === true
    return is_broken ? malformed(place.count) : undefined
  }
  const feed = (bytes: Uint8Array): Scanned => {
    const messages: Array<FieldsRead> = []
    for (let at = 0; at < bytes.length; ) {
      if (reader === undefined) {
        const meaning = between(place, bytes[at] ?? 0, framing)
        if (meaning === "nonsense") return Result.fail(malformed(place.count + 1))
        if (meaning === "skip") {
          at += 1
          continue
        }
        place.count += 1
        reader = fieldsReader(sink)
        message_bytes = 0
      }
      const to = reader.read(bytes, at)
      message_bytes += to - at
      at = to
      const refused = refusal()
      if (refused) return Result.fail(refused)
      const message = reader.message()
      if (message === undefined) continue
      messages.push(message)
      reader = undefined
      place.is_separated = false
    }
    return Result.succeed(messages)
  }
  const end = () => {
    if (reader !== undefined) return "inside a message"
    return place.is_array && !place.is_closed ? "inside the array" : "between messages"
  }
  return { feed, end }
}
