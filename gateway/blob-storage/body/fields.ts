/**
 * Reads the fields of one JSON message as its bytes arrive. `data` is decoded incrementally and
 * removed, so that only the remaining few hundred bytes are parsed as JSON.
 */
import { base64Decoder, placeOfByte } from "#gateway/blob-storage/body/base64.ts"

/**
 * Maximum size of all fields except `data`: room for 16 KiB of labels in six-byte escapes, and
 * more.
 */
export const fields_bytes_max = 256 * 1024

const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const backslash = 0x5c
const openers: ReadonlySet<number> = new Set([0x5b, 0x7b])
const closers: ReadonlySet<number> = new Set([0x5d, 0x7d])
export const newline = 0x0a

/** Not a base64 digit: replaces escapes that do not encode one. */
const no_digit = 0x21

/** Length of an escape such as `\u002f`, and of the others. */
const unicode_escape_length = 6
const escape_length = 2

/** One message: its JSON with an empty `data`, and the decoded bytes of `data`. */
export interface FieldsRead {
  readonly json: string
  /**
   * Undefined if `data` was not base64; absent if there was no such field. With a sink, only the
   * rest.
   */
  readonly data?: ReadonlyArray<Uint8Array> | undefined
}

/** Receives `data` as it arrives, so that large blobs are not held in memory. */
export interface DataSink {
  readonly take: (bytes: Uint8Array) => void
  /** Discards all bytes so far, because the message contains `data` again. */
  readonly restart: () => void
}

const digitOf = (sequence: string) => {
  if (sequence === "\\/") return 0x2f
  const code = /^\\u00([2-7][0-9a-f])$/i.exec(sequence)?.[1]
  return code === undefined ? no_digit : Number.parseInt(code, 16)
}

/**
 * Decodes the digits of a JSON string, in which some encoders escape the slash, the plus or the
 * equals sign.
 */
const digitsReader = (sink?: DataSink) => {
  const decoder = base64Decoder(sink?.take)
  let sequence = ""
  const unescaped = (bytes: Uint8Array) => {
    const digits = new Uint8Array(bytes.length)
    let count = 0
    for (const byte of bytes) {
      if (sequence === "" && byte !== backslash) digits[count++] = byte
      else {
        sequence += String.fromCharCode(byte)
        const length = sequence[1] === "u" ? unicode_escape_length : escape_length
        if (sequence.length < length) continue
        digits[count++] = digitOf(sequence)
        sequence = ""
      }
    }
    return digits.subarray(0, count)
  }
  return {
    push: (bytes: Uint8Array) =>
      decoder.push(
        sequence === "" && placeOfByte(bytes, backslash, 0) === -1 ? bytes : unescaped(bytes),
      ),
    end: () => (sequence === "" ? decoder.end() : undefined),
  }
}

/** A growing buffer. */
const makeBuffer = () => {
  let buffer = new Uint8Array(1024)
  let length = 0
  return {
    length: () => length,
    text: (from: number) => utf8.decode(buffer.subarray(from, length - 1)),
    /** The whole text; if it is not UTF-8, an empty text, which is invalid JSON. */
    json: () => {
      try {
        return exact_utf8.decode(buffer.subarray(0, length))
      } catch {
        return ""
      }
    },
    append: (bytes: Uint8Array) => {
      if (length + bytes.length > buffer.length) {
        const larger = new Uint8Array(Math.max(2 * buffer.length, length + bytes.length))
        larger.set(buffer.subarray(0, length))
        buffer = larger
      }
      buffer.set(bytes, length)
      length += bytes.length
    },
  }
}
const utf8 = new TextDecoder("utf-8", { ignoreBOM: true })
const exact_utf8 = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true })
const empty_text = Uint8Array.of(quote, quote)

/** Tracks the structure outside of strings: the depth, and whether a name or a value comes next. */
const makeOutline = () => {
  let depth = 0
  let is_value = false
  let is_broken = false
  return {
    depth: () => depth,
    isName: () => depth === 1 && !is_value,
    isValue: () => depth === 1 && is_value,
    isBroken: () => is_broken,
    take: (byte: number) => {
      if (openers.has(byte)) depth += 1
      else if (closers.has(byte)) depth -= 1
      else if (byte === newline) is_broken = true
      else if (depth === 1 && byte === colon) is_value = true
      else if (depth === 1 && byte === comma) is_value = false
    },
  }
}

/**
 * Reads one message, beginning with its opening brace. `read` returns the index after the last byte
 * that it has read: it stops after the closing brace, when `message` becomes available, or once
 * `isFull`.
 */
export const fieldsReader = (sink?: DataSink) => {
  const fields = makeBuffer()
  const outline = makeOutline()
  let mode: "structure" | "text" | "data" = "structure"
  let is_escaped = false
  let name_start = 0
  let name = ""
  let digits: ReturnType<typeof digitsReader> | undefined

  const structure = (bytes: Uint8Array, at: number) => {
    const byte = bytes[at] ?? 0
    if (byte !== quote) outline.take(byte)
    else if (outline.isValue() && name === "data") {
      mode = "data"
      if (digits !== undefined) sink?.restart()
      digits = digitsReader(sink)
      return at + 1
    } else {
      mode = "text"
      name_start = fields.length() + 1
    }
    fields.append(bytes.subarray(at, at + 1))
    return at + 1
  }
  const text = (bytes: Uint8Array, from: number) => {
    let at = from
    for (; at < bytes.length && mode === "text"; at++) {
      const byte = bytes[at]
      if (is_escaped) is_escaped = false
      else if (byte === backslash) is_escaped = true
      else if (byte === quote) mode = "structure"
    }
    fields.append(bytes.subarray(from, at))
    if (mode === "structure" && outline.isName()) {
      name = fields.text(name_start)
    }
    return at
  }
  const data = (bytes: Uint8Array, from: number) => {
    const end = placeOfByte(bytes, quote, from)
    const to = end === -1 ? bytes.length : end
    digits?.push(bytes.subarray(from, to))
    if (end === -1) return to
    mode = "structure"
    fields.append(empty_text)
    return end + 1
  }
  const steps = { structure, text, data }
  const isFull = () => fields.length() > fields_bytes_max

  return {
    read: (bytes: Uint8Array, from: number) => {
      let at = from
      do at = steps[mode](bytes, at)
      while (at < bytes.length && outline.depth() > 0 && !isFull())
      return at
    },
    isFull,
    /** Whether the message has a line break between its fields, which is invalid in NDJSON. */
    isBroken: outline.isBroken,
    message: (): FieldsRead | undefined => {
      if (outline.depth() > 0) return undefined
      const json = fields.json()
      return digits === undefined ? { json } : { json, data: digits.end() }
    },
  }
}
