import assert from "node:assert/strict"
import { Result, Schema } from "effect"
import fc from "fast-check"
import { describe, it } from "vitest"
import {
  BlobIdFromText,
  BlobIdMessage,
  BlobLabels,
  BlobMeta,
  Bytes,
  GetChunk,
  Int64,
  ListRequest,
  PutChunk,
  PutRequest,
  PutResponse,
  pageLimit,
  StatResponse,
  storedPolicy,
} from "#schemas/blob-storage/blob.ts"

const accepts = (schema: Schema.Decoder<unknown>, input: unknown) =>
  Result.isSuccess(Schema.decodeUnknownResult(schema)(input))

const fromText = Schema.decodeUnknownSync(BlobIdFromText)
const fromMessage = Schema.decodeUnknownSync(BlobIdMessage)
const sixteen = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes))

describe("a blob ID", () => {
  it("is the same in hex of either case, base64 and base64url, padded or not", () => {
    const isSame = (bytes: Buffer) => {
      const hex = bytes.toString("hex")
      const base64 = bytes.toString("base64")
      const base64url = bytes.toString("base64url")
      const spellings = [hex, hex.toUpperCase(), base64, base64.replace("==", ""), base64url]
      for (const text of [...spellings, `${base64url}==`]) {
        assert.equal(fromText(text), hex)
        assert.equal(fromMessage(text), hex)
        assert.equal(fromMessage({ id: text }), hex)
      }
      assert.deepEqual(Schema.encodeSync(BlobIdMessage)(fromText(hex)), { id: base64 })
    }
    fc.assert(fc.property(sixteen, isSame))
  })

  it("is refused at any other length", () => {
    const isRefused = (bytes: Uint8Array) => {
      const other = Buffer.from(bytes)
      for (const text of [other.toString("hex"), other.toString("base64")]) {
        assert(!accepts(BlobIdFromText, text), text)
        assert(!accepts(BlobIdMessage, { id: text }), text)
      }
    }
    const lengths = fc.uint8Array({ maxLength: 40 }).filter(({ length }) => length !== 16)
    // 24 bytes are 32 characters of base64; if those are all hex digits, they are parsed as hex.
    fc.assert(
      fc.property(
        lengths.filter(({ length }) => length !== 24),
        isRefused,
      ),
    )
  })

  const bad = [
    ["", "nothing"],
    ["zz3456789abcdef0123456789abcdef0", "a letter beyond hex"],
    ["0123456789abcdef0123456789abcde", "31 characters"],
    ["AAAAAAAAAAAAAAAAAAAAAA=", "half the padding"],
    ["AAAAAAAAAAAAAAAAAAAAAB==", "bits beyond the sixteenth byte"],
    ["AAAAAAAAAA+AAAAAAAAA-A==", "both alphabets at once"],
    [" 0123456789abcdef0123456789abcdef", "a space"],
    ["0123456789abcdef0123456789abcdef\n", "a line's end"],
  ] as const
  for (const [text, why] of bad) {
    it(`is refused with ${why}`, () => {
      assert(!accepts(BlobIdFromText, text))
      assert(!accepts(BlobIdMessage, { id: text }))
    })
  }

  it("as a message is refused without its field, as null and as a number", () => {
    for (const input of [{}, null, 7, { id: null }, { id: 7 }, [], undefined]) {
      assert(!accepts(BlobIdMessage, input))
    }
  })
})

describe("an int64", () => {
  it("comes in as a number or a numeric string, and stays exact", () => {
    const decode = Schema.decodeUnknownSync(Int64)
    assert.equal(decode(5), 5n)
    assert.equal(decode("1700000000000000001"), 1_700_000_000_000_000_001n)
    assert.equal(decode("18446744073709551615"), 2n ** 64n - 1n)
    assert.equal(decode(-1), -1n)
    assert.equal(Schema.encodeSync(Int64)(1_700_000_000_000_000_001n), 1_700_000_000_000_000_001n)
  })
  it("is refused as a fraction, as other text and beyond 64 bits", () => {
    for (const input of [1.5, "", "1.0", "x", "0x10", " 1", null, "18446744073709551616"]) {
      assert(!accepts(Int64, input), String(input))
    }
  })
})

describe("bytes in a body", () => {
  it("are read from either alphabet, padded or not, and written padded", () => {
    const decode = Schema.decodeUnknownSync(Bytes)
    const isSame = (array: Uint8Array) => {
      const bytes = Buffer.from(array)
      const base64 = bytes.toString("base64")
      for (const text of [base64, base64.replaceAll("=", ""), bytes.toString("base64url")]) {
        assert(Buffer.from(decode(text)).equals(bytes))
      }
      assert.equal(Schema.encodeSync(Bytes)(array), base64)
    }
    fc.assert(fc.property(fc.uint8Array({ maxLength: 70 }), isSame))
  })
  it("are refused as anything else", () => {
    for (const input of ["A", "AA=A", "A A=", "%", null, 5, [1]]) assert(!accepts(Bytes, input))
  })
})

describe("a put", () => {
  it("needs its data, which may be empty", () => {
    assert(accepts(PutRequest, { data: "" }))
    assert(!accepts(PutRequest, {}))
    assert(!accepts(PutRequest, { data: null }))
  })
  it("takes each of the six policies and no other", () => {
    for (const name of ["UNSPECIFIED", "NONE", "REPLICA2", "REPLICA3", "EC42", "EC82"]) {
      assert(accepts(PutRequest, { data: "", policy: `REPLICATION_POLICY_${name}` }))
    }
    for (const policy of ["REPLICA3", "", 3, null, "REPLICATION_POLICY_REPLICA4"]) {
      assert(!accepts(PutRequest, { data: "", policy }))
    }
  })
  it("stores an unspecified policy as REPLICA3 and any other as it is", () => {
    assert.equal(storedPolicy(), "REPLICATION_POLICY_REPLICA3")
    assert.equal(storedPolicy("REPLICATION_POLICY_UNSPECIFIED"), "REPLICATION_POLICY_REPLICA3")
    assert.equal(storedPolicy("REPLICATION_POLICY_EC42"), "REPLICATION_POLICY_EC42")
  })
  it("as a chunk needs data and final", () => {
    assert(accepts(PutChunk, { data: "", final: true }))
    assert(
      accepts(PutChunk, { id: { id: "AAAAAAAAAAAAAAAAAAAAAA==" }, data: "AA==", final: false }),
    )
    assert(!accepts(PutChunk, { data: "" }))
    assert(!accepts(PutChunk, { final: true }))
    assert(!accepts(PutChunk, { data: "", final: "true" }))
  })
})

describe("labels", () => {
  const many = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, label) => [`l${label}`, ""]))
  it("are at most 64 pairs", () => {
    assert(accepts(BlobLabels, many(64)))
    assert(!accepts(BlobLabels, many(65)))
  })
  it("are at most 16 KiB of UTF-8 in all, keys and values", () => {
    const limit = 16 * 1024
    assert(accepts(BlobLabels, { key: "v".repeat(limit - 3) }))
    assert(!accepts(BlobLabels, { key: "v".repeat(limit - 2) }))
    assert(!accepts(BlobLabels, { key: "é".repeat(limit / 2) }))
    assert(!accepts(BlobLabels, { ["k".repeat(limit)]: "v" }))
  })
  it("are text", () => {
    for (const input of [{ a: 1 }, { a: null }, [], "a", null]) assert(!accepts(BlobLabels, input))
  })
})

describe("a list's query", () => {
  it("turns any limit into a page size of 1 to 10,000, 100 by default", () => {
    const sizes = [undefined, 0, -5, 1, 100, 10_000, 10_001, 2 ** 31 - 1].map((n) => pageLimit(n))
    assert.deepEqual(sizes, [100, 100, 100, 1, 100, 10_000, 10_000, 10_000])
  })
  it("takes a lower-case hex prefix and an integer limit", () => {
    for (const input of [{}, { prefix: "" }, { prefix: "0af" }, { limit: "-3" }, { limit: "7" }]) {
      assert(accepts(ListRequest, input), JSON.stringify(input))
    }
    const refused = [{ prefix: "AB" }, { prefix: "0".repeat(33) }, { limit: "1.5" }, { limit: "x" }]
    for (const input of refused) assert(!accepts(ListRequest, input), JSON.stringify(input))
  })
})

describe("a response", () => {
  const meta = {
    size: 3n,
    created_at: 1_700_000_000_000_000_001n,
    modified_at: 1_700_000_000_000_000_001n,
    checksum: "ZDezrDhGUTP/tjt1JzqNtUjFWEZdedsD/TWcbNW9nYU=",
    labels: { a: "b" },
    policy: "REPLICATION_POLICY_REPLICA3",
  } as const
  it("of a put spells the ID as a message and keeps int64 exact", () => {
    const id = fromText("6437b3ac38465133ffb63b75273a8db5")
    assert.deepEqual(Schema.encodeSync(PutResponse)({ id, size: 3n, meta }), {
      id: { id: "ZDezrDhGUTP/tjt1JzqNtQ==" },
      size: 3n,
      meta,
    })
  })
  it("of a stat leaves meta out where the blob does not exist", () => {
    assert.deepEqual(Schema.encodeSync(StatResponse)({ exists: false }), { exists: false })
    assert(accepts(StatResponse, { exists: true, meta: { ...meta, size: 3, created_at: "5" } }))
    assert(!accepts(BlobMeta, { ...meta, policy: "REPLICA3" }))
  })
  it("of a get stream has base64 data", () => {
    const chunk = Schema.encodeSync(GetChunk)({ data: Buffer.from("abc"), final: true })
    assert.deepEqual(chunk, { data: "YWJj", final: true })
  })
})
