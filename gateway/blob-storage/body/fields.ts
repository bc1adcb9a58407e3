/**
 * The fields of one JSON message as its bytes come: `data` is decoded on the way and taken out, so
 * that only the few hundred bytes that are left are ever parsed at once.
 */
import { base64Decoder, placeOfByte } from "#gateway/blob-storage/body/base64.ts"

/** All fields but `data`: the labels' 16 KiB, each byte as a six-byte escape, and then as much. */
export const fields_bytes_max = 256 * 1024

const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const backslash = 0x5c
const openers: ReadonlySet<number> = new Set([0x5b, 0x7b])
const closers: ReadonlySet<number> = new Set([0x5d, 0x7d])
export const newline = 0x0a

/** Not a base64 digit, and so what an escape that stands for none becomes. */
const no_digit = 0x21

/** The longest escape, `\u002f`, and the others. */
const unicode_escape_length = 6
const escape_length = 2

/** One message: its JSON with `data` as an empty text, and the bytes that `data` held. */
export interface FieldsRead {
  readonly json: string
  /** Undefined where `data` was no base64; absent where there was no such text. A sink has more. */
  readonly data?: ReadonlyArray<Uint8Array> | undefined
}

/** Takes `data` as it arrives, so that a long one is not held in memory. */
export interface DataSink {
  readonly take: (bytes: Uint8Array) => void
  /** Discards what was taken: the message has another `data`. */
  readonly restart: () => void
}

const digitOf = (sequence: string) => {
  if (sequence === "\\/") return 0x2f
  const code = /^\\u00([2-7][0-9a-f])$/i.exec(sequence)?.[1]
  return code === undefined ? no_digit : Number.parseInt(code, 16)
}

/** The digits of a JSON text: some encoders write the slash, the plus and the equals as escapes. */
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

/** Bytes that are kept, up to a bound. */
const keeper = () => {
  let kept = new Uint8Array(1024)
  let length = 0
  return {
    length: () => length,
    text: (from: number) => utf8.decode(kept.subarray(from, length - 1)),
    /** All that was kept; empty, which is no JSON, where it is not UTF-8. */
    json: () => {
      try {
        return exact_utf8.decode(kept.subarray(0, length))
      } catch {
        return ""
      }
    },
    keep: (bytes: Uint8Array) => {
      if (length + bytes.length > kept.length) {
        const larger = new Uint8Array(Math.max(2 * kept.length, length + bytes.length))
        larger.set(kept.subarray(0, length))
        kept = larger
      }
      kept.set(bytes, length)
      length += bytes.length
    },
  }
}
const utf8 = new TextDecoder("utf-8", { ignoreBOM: true })
const exact_utf8 = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true })
const empty_text = Uint8Array.of(quote, quote)

/** The structure between texts: the depth, and whether a name or a value is next. */
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
 * Reads one message from its opening brace on. `read` answers how far it came in these bytes; it
 * stops behind the closing brace, which is when `message` answers, or where `isFull`.
 */
export const fieldsReader = (sink?: DataSink) => {
  const fields = keeper()
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
    fields.keep(bytes.subarray(at, at + 1))
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
    fields.keep(bytes.subarray(from, at))
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
    fields.keep(empty_text)
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
    /** Whether the message has a line break between its fields, which no line of a stream has. */
    isBroken: outline.isBroken,
    message: (): FieldsRead | undefined => {
      if (outline.depth() > 0) return undefined
      const json = fields.json()
      return digits === undefined ? { json } : { json, data: digits.end() }
    },
  }
}
