/**
 * A body split at arbitrary places yields the same messages as JSON.parse and Node's base64 do for
 * the whole body. Properties print their seed on failure.
 */
import { Result } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { base64Decoder, base64Encoder, base64Length } from "#gateway/blob-storage/body/base64.ts"
import { type FieldsRead, fields_bytes_max } from "#gateway/blob-storage/body/fields.ts"
import { type Framing, messageScanner } from "#gateway/blob-storage/body/messages.ts"
import { base64 } from "../../world/blob-storage/service.ts"

const lines: Framing = { message_bytes_max: 4096, is_lined: true, is_array_allowed: true }
const json: Framing = { ...lines, is_lined: false }

/** Splits the bytes at these places. */
const cutAt = (bytes: Uint8Array, places: ReadonlyArray<number>) => {
  const ends = [...places.map((place) => place % (bytes.length + 1)), bytes.length]
  const sorted = ends.toSorted((a, b) => a - b)
  return sorted.map((end, index) => bytes.subarray(sorted[index - 1] ?? 0, end))
}

const scan = (framing: Framing, parts: ReadonlyArray<Uint8Array | string>) => {
  const scanner = messageScanner(framing)
  const messages: Array<FieldsRead> = []
  for (const part of parts) {
    const fed = scanner.feed(Buffer.from(part))
    if (Result.isFailure(fed)) return { code: fed.failure.code, detail: fed.failure.detail }
    messages.push(...fed.success)
  }
  return { messages, end: scanner.end() }
}

const read = (framing: Framing, parts: ReadonlyArray<Uint8Array | string>) => {
  const scanned = scan(framing, parts)
  if (!("messages" in scanned)) return scanned
  return {
    end: scanned.end,
    messages: scanned.messages.map(({ json: text, data }) => ({
      ...JSON.parse(text),
      ...(data === undefined ? {} : { data: base64(Buffer.concat(data)) }),
    })),
  }
}

/** A base64 character in one of the forms that JSON allows. */
const spelled = (digit: string, way: number) => {
  if (way === 1 && digit === "/") return "\\/"
  const code = digit.charCodeAt(0).toString(16).padStart(4, "0")
  return way === 2 ? `\\u${code}` : way === 3 ? `\\u${code.toUpperCase()}` : digit
}

const digits = fc
  .tuple(fc.uint8Array({ maxLength: 60 }), fc.infiniteStream(fc.nat(12)))
  .map(([bytes, ways]) =>
    Array.from(base64(bytes), (digit) => spelled(digit, ways.next().value ?? 0)),
  )
/** Fields that may surround `data`, including nested ones of the same name. */
const other = fc.constantFrom(
  '"final" : true',
  '"policy":"}{][\\"\\\\"',
  '"labels":{"data":"AAAA","a,b":":"}',
  '"more":[{"data":"AAAA"},[],"data"]',
  '"é\\u0000":"ü"',
)
const message = fc
  .tuple(digits, fc.array(other, { maxLength: 3 }), fc.array(other, { maxLength: 3 }))
  .map(
    ([data, before, after]) => `{${[...before, `"data": "${data.join("")}"`, ...after].join(",")}}`,
  )
const places = fc.array(fc.nat(2000), { maxLength: 12 })

const parsed = (text: string) => {
  const value = JSON.parse(text)
  return { ...value, data: base64(Buffer.from(value.data, "base64")) }
}

describe("messages of a body", () => {
  it("are those of its lines, wherever the bytes are cut", () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 5 }), places, (texts, cuts) => {
        const body = Buffer.from(texts.map((text) => `${text}\r\n`).join("\n"))
        const expected = { end: "between messages", messages: texts.map(parsed) }
        expect(read(lines, cutAt(body, cuts))).toEqual(expected)
      }),
    )
  })

  it("are those of an array, wherever the bytes are cut", () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 5 }), places, (texts, cuts) => {
        const body = Buffer.from(` [\n${texts.join(" ,\n\t")}]\n`)
        const expected = { end: "between messages", messages: texts.map(parsed) }
        expect(read(lines, cutAt(body, cuts))).toEqual(expected)
      }),
    )
  })

  it("take data whose name is written with escapes, and the last of two", () => {
    expect(scan(json, ['{"d\\u0061ta":"QQ=="}'])).toEqual({
      messages: [{ json: '{"d\\u0061ta":"QQ=="}' }],
      end: "between messages",
    })
    expect(read(json, ['{"data":"QQ==","data":"Qg=="}'])).toMatchObject({
      messages: [{ data: "Qg==" }],
    })
  })

  it("keep what is in data where that is no text", () => {
    for (const body of ['{"data":{"data":"QQ=="}}', '{"data":["QQ=="]}', '{"data":5}']) {
      expect(scan(json, [body])).toEqual({ messages: [{ json: body }], end: "between messages" })
    }
  })

  const not_json = { code: "INVALID_ARGUMENT" }
  for (const [why, framing, body, expected] of [
    ["a word", lines, "hello", not_json],
    ["a number behind a message", lines, '{"a":1} 2', not_json],
    ["two messages on one line", lines, '{"a":1}{"a":2}', not_json],
    ["a comma between lines", lines, '{"a":1},\n{"a":2}', not_json],
    ["a message over two lines", lines, '{"a":1,\n"b":2}', not_json],
    ["a comma before the array's end", lines, '[{"a":1},]', not_json],
    ["two commas in an array", lines, '[{"a":1},,{"a":1}]', not_json],
    ["an array in an array", lines, "[[", not_json],
    ["members without a comma", lines, '[{"a":1} {"a":1}]', not_json],
    ["a message behind the array", lines, '[]{"a":1}', not_json],
    ["an array behind a message", lines, '{"a":1}\n[', not_json],
    ["an array where none is taken", { ...json, is_array_allowed: false }, "[]", not_json],
  ] as const) {
    it(`do not include ${why}`, () => {
      expect(scan(framing, [body])).toMatchObject(expected)
    })
  }

  it("may be over several lines in application/json", () => {
    expect(read(json, ['{"a":1,\n"b":2}\n{"a":3}'])).toEqual({
      messages: [{ a: 1, b: 2 }, { a: 3 }],
      end: "between messages",
    })
  })

  it("say where the body ended", () => {
    expect(scan(lines, ['{"a":1}\n{"a"'])).toMatchObject({ end: "inside a message" })
    expect(scan(lines, ['[{"a":1}'])).toMatchObject({ end: "inside the array" })
    expect(scan(lines, [""])).toMatchObject({ end: "between messages", messages: [] })
  })

  it("have at most as many bytes as are allowed, wherever they are cut", () => {
    const body = `{"data":"${"A".repeat(4096 - 11)}"}`
    expect(body.length).toBe(4096)
    expect(scan(lines, [body])).toMatchObject({ end: "between messages" })
    expect(scan(lines, [body.replace('"}', 'A"}')])).toMatchObject({ code: "RESOURCE_EXHAUSTED" })
    expect(scan(lines, ["{", ` ${body.slice(1)}`])).toMatchObject({ code: "RESOURCE_EXHAUSTED" })
  })

  it("hold a bounded amount in addition to their data", () => {
    const wide = { ...json, message_bytes_max: Number.POSITIVE_INFINITY }
    const body = `{"a":"${"x".repeat(fields_bytes_max)}"}`
    expect(scan(wide, [body])).toMatchObject({ code: "RESOURCE_EXHAUSTED" })
  })
})

const decode = (text: string) => {
  const decoder = base64Decoder()
  decoder.push(Buffer.from(text))
  const pieces = decoder.end()
  return pieces && Buffer.concat(pieces).toString("hex")
}

describe("base64", () => {
  it("is decoded as Node does, in any alphabet, padded or not, wherever it is cut", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 50 }), places, (bytes, cuts) => {
        const text = base64(bytes)
        const forms = [text, text.replace(/=+$/, ""), Buffer.from(bytes).toString("base64url")]
        for (const form of forms) {
          const decoder = base64Decoder()
          for (const part of cutAt(Buffer.from(form), cuts)) decoder.push(part)
          expect(Buffer.concat(decoder.end() ?? [])).toEqual(Buffer.from(bytes))
        }
      }),
    )
  })

  for (const text of [
    ..."A AAAAA AA= AA=== AAA== AAAA= ==== = A=== AA==AAAA AA=A QR== QUJ= *".split(" "),
    "AA AA",
    "AAAA\n",
    "AAéA",
    `${"A".repeat(70_000)}*AAA`,
  ]) {
    it(`is refused as ${JSON.stringify(text.slice(-12))}`, () => {
      expect(decode(text)).toBeUndefined()
    })
  }

  it("is encoded as Node does, wherever the bytes are cut", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 50 }), places, (bytes, cuts) => {
        const encoder = base64Encoder()
        const text = cutAt(bytes, cuts).map(encoder.push).join("") + encoder.end()
        expect(text).toBe(base64(bytes))
        expect(text.length).toBe(base64Length(bytes.length))
      }),
    )
  })
})
