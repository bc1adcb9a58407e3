/**
 * GET, HEAD, DELETE and stat of one blob, as JSON and as plain bytes. Source: document 1 §4, §7.
 */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import type { BlobEngine } from "#actors/blob-storage/ports/engine.ts"
import { type BlobFault, faultError } from "#actors/blob-storage/ports/fault.ts"
import { memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { prefersBytes, rangeOf } from "#gateway/blob-storage/direct/byte-range.ts"
import { type BlobId, get_chunk_bytes_max } from "#schemas/blob-storage/blob.ts"
import { noise, put } from "../../contract/blob-storage/engine-bytes.ts"
import {
  accept_bytes,
  type BlobService,
  base64,
  withBlobs,
} from "../../world/blob-storage/service.ts"

const text = "0123456789"
const stored = (
  { engine }: BlobService,
  bytes: Uint8Array | string = text,
  labels: Readonly<Record<string, string>> = {},
) => Effect.promise(() => put(engine, Buffer.from(bytes), { labels }))

const spellings = (id: BlobId) => {
  const bytes = Buffer.from(id, "hex")
  const padded = bytes.toString("base64")
  return {
    hex: id,
    "upper-case hex": id.toUpperCase(),
    base64: encodeURIComponent(padded),
    "base64 with only its slash escaped": padded.replaceAll("/", "%2F"),
    "base64 without padding": encodeURIComponent(padded.replace(/=+$/, "")),
    base64url: bytes.toString("base64url"),
    "base64url with padding": padded.replaceAll("+", "-").replaceAll("/", "_"),
  }
}

/** Bytes whose ID contains a slash and a plus in base64, found by trial. */
const awkward = (engine: BlobEngine) =>
  Effect.gen(function* () {
    for (let seed = 0; ; seed++) {
      const { id } = yield* Effect.promise(() => put(engine, noise(seed, 8)))
      const spelled = base64(Buffer.from(id, "hex"))
      if (spelled.includes("/") && spelled.includes("+")) return { id, bytes: noise(seed, 8) }
    }
  })

const wrong_ids = [
  "a",
  "stat",
  "0".repeat(31),
  "0".repeat(33),
  `${"0".repeat(31)}g`,
  base64(new Uint8Array(15)),
  base64(new Uint8Array(17)),
  `${"A".repeat(21)}B==`,
  "A".repeat(21),
  `${"A".repeat(10)}+${"_".repeat(10)}A`,
]
const absent = "00000000000000000000000000000000"

describe("an ID in a path", () => {
  it("is hex, base64 or base64url", () =>
    withBlobs({}, ({ call, engine }) =>
      Effect.gen(function* () {
        const { id, bytes } = yield* awkward(engine)
        for (const [form, spelled] of Object.entries(spellings(id))) {
          const got = yield* call("GET", `/v1/blobs/${spelled}`)
          expect([form, got.json.data]).toEqual([form, base64(bytes)])
          expect((yield* call("GET", `/v1/blobs/${spelled}/stat`)).json.exists).toBe(true)
          expect((yield* call("GET", `/v1/blobs/${spelled}/stream`)).status).toBe(200)
        }
      }),
    ))

  for (const id of wrong_ids) {
    it(`is not ${id}`, () =>
      withBlobs({}, ({ call }) =>
        Effect.gen(function* () {
          for (const request of ["GET ", "GET /stream", "GET /stat", "DELETE "]) {
            const [method = "", path = ""] = request.split(" ")
            const address = `/v1/blobs/${encodeURIComponent(id)}${path}`
            const { status, json } = yield* call(method, address)
            expect([request, status]).toEqual([request, 400])
            expect(json).toMatchObject({ code: "INVALID_ARGUMENT", message: "invalid blob ID" })
            expect(json.detail).toContain("exactly 16 bytes")
          }
        }),
      ))
  }
})

describe("a get by JSON", () => {
  it("answers data and meta", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const { id, meta } = yield* stored(service, text, { a: "b" })
        const got = yield* service.call("GET", `/v1/blobs/${id}`)
        expect(got.headers.get("content-type")).toBe("application/json")
        expect(got.headers.get("vary")).toBe("accept, authorization, x-auth-token")
        expect(got.json.data).toBe(base64(text))
        const { checksum, policy } = meta
        expect(got.json.meta).toMatchObject({ size: 10, checksum, policy })
        expect(got.text).toContain(`"created_at":${meta.created_at},`)
        const head = yield* service.call("HEAD", `/v1/blobs/${id}`)
        expect([head.status, head.text]).toEqual([200, ""])
        expect(head.headers.get("content-length")).toBe(got.headers.get("content-length"))
      }),
    ))

  for (const size of [0, 1, 2, 3, get_chunk_bytes_max - 1, get_chunk_bytes_max]) {
    it(`answers ${size} bytes at once`, () => sized(size))
  }
  for (const size of [get_chunk_bytes_max + 1, 2 * get_chunk_bytes_max, 3_000_001]) {
    it(`answers ${size} bytes piece by piece, with their length`, () => sized(size))
  }

  it("is 404 where no node has it", () =>
    withBlobs({}, ({ call }) =>
      Effect.gen(function* () {
        for (const path of ["", "/stream"]) {
          for (const headers of [{}, accept_bytes]) {
            const { status, json } = yield* call("GET", `/v1/blobs/${absent}${path}`, { headers })
            expect(status).toBe(404)
            expect(json).toMatchObject({ code: "NOT_FOUND", message: "blob not found on any node" })
          }
        }
        expect((yield* call("HEAD", `/v1/blobs/${absent}`)).status).toBe(404)
      }),
    ))

  it("is 413 where the blob is too large for one message, and says what to do", () =>
    withBlobs({ settings: { blob: { json_body_bytes_max: 1024 } } }, (service) =>
      Effect.gen(function* () {
        const fits = yield* stored(service, noise(1, 768))
        expect((yield* service.call("GET", `/v1/blobs/${fits.id}`)).status).toBe(200)
        const { id } = yield* stored(service, noise(1, 769))
        const { status, json } = yield* service.call("GET", `/v1/blobs/${id}`)
        expect([status, json.code]).toEqual([413, "RESOURCE_EXHAUSTED"])
        expect(json.detail).toMatch(/\/stream.*application\/octet-stream/)
        expect((yield* service.call("HEAD", `/v1/blobs/${id}`)).status).toBe(413)
        const raw = yield* service.call("GET", `/v1/blobs/${id}`, { headers: accept_bytes })
        expect(raw.status).toBe(200)
      }),
    ))
})

const sized = (size: number) =>
  withBlobs({}, (service) =>
    Effect.gen(function* () {
      const bytes = noise(size, size)
      const { id } = yield* stored(service, bytes)
      const got = yield* service.call("GET", `/v1/blobs/${id}`)
      expect(got.headers.get("content-length")).toBe(String(got.text.length))
      expect(got.json.data === base64(bytes)).toBe(true)
      const head = yield* service.call("HEAD", `/v1/blobs/${id}`)
      expect(head.headers.get("content-length")).toBe(String(got.text.length))
    }),
  )

describe("a get of plain bytes", () => {
  const raw = ({ call }: BlobService, id: string, headers: Record<string, string> = {}) =>
    call("GET", `/v1/blobs/${id}`, { headers: { ...accept_bytes, ...headers } })

  it("answers them with their length, tag and labels, at both addresses", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const { id } = yield* stored(service, text, { kind: "a b", weiß: "é%" })
        for (const path of [id, `${id}/stream`]) {
          const got = yield* raw(service, path)
          expect([got.status, got.text]).toEqual([200, text])
          expect(Object.fromEntries(got.headers)).toMatchObject({
            "content-type": "application/octet-stream",
            "content-length": "10",
            "accept-ranges": "bytes",
            etag: `"${id}"`,
            vary: "accept, authorization, x-auth-token",
            "x-label-kind": "a b",
            "x-label-wei%c3%9f": "%c3%a9%25",
          })
          const head = yield* service.call("HEAD", `/v1/blobs/${path}`, { headers: accept_bytes })
          expect(head.text).toBe("")
          for (const name of ["content-type", "content-length", "etag", "x-label-kind"]) {
            expect(head.headers.get(name)).toBe(got.headers.get(name))
          }
        }
      }),
    ))

  it("keeps two labels apart that differ in case, and leaves out what no header holds", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const one = yield* stored(service, "one", { Kind: "a" })
        expect((yield* raw(service, one.id)).headers.get("x-label-kind")).toBe("a")
        const two = yield* stored(service, "two", { Kind: "a", kind: "b" })
        const { headers } = yield* raw(service, two.id)
        expect(headers.get("x-label-%4bind")).toBe("a")
        expect(headers.get("x-label-kind")).toBe("b")
        const many = yield* stored(service, "many", { a: "x".repeat(9000), b: "c" })
        const got = yield* raw(service, many.id)
        expect(got.headers.get("x-labels-omitted")).toBe("2")
        expect(got.headers.get("x-label-b")).toBeNull()
      }),
    ))

  for (const [range, status, body, content_range] of [
    ["bytes=0-3", 206, "0123", "bytes 0-3/10"],
    ["bytes=4-", 206, "456789", "bytes 4-9/10"],
    ["bytes=-3", 206, "789", "bytes 7-9/10"],
    ["bytes=-30", 206, text, "bytes 0-9/10"],
    ["bytes=0-", 206, text, "bytes 0-9/10"],
    ["bytes=9-99999999999999999999", 206, "9", "bytes 9-9/10"],
    ["Bytes = 1 - 1", 206, "1", "bytes 1-1/10"],
    ["bytes=10-", 416, undefined, "bytes */10"],
    ["bytes=99-100", 416, undefined, "bytes */10"],
    ["bytes=-0", 416, undefined, "bytes */10"],
    ["bytes=3-1", 200, text, null],
    ["bytes=-", 200, text, null],
    ["bytes=a-b", 200, text, null],
    ["bytes=0-1,3-4", 200, text, null],
    ["lines=0-1", 200, text, null],
  ] as const) {
    it(`answers ${status} to Range: ${range}`, () =>
      withBlobs({}, (service) =>
        Effect.gen(function* () {
          const { id } = yield* stored(service)
          const got = yield* raw(service, id, { range })
          expect([got.status, got.headers.get("content-range")]).toEqual([status, content_range])
          if (body === undefined) expect(got.json.code).toBe("OUT_OF_RANGE")
          else {
            expect(got.text).toBe(body)
            expect(got.headers.get("content-length")).toBe(String(body.length))
          }
        }),
      ))
  }

  it("answers ranges of a blob of several pieces", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const bytes = noise(3, 2 * get_chunk_bytes_max + 5)
        const { id } = yield* stored(service, bytes)
        const from = get_chunk_bytes_max - 2
        const headers = new Headers({
          ...accept_bytes,
          authorization: "Bearer reader",
          range: `bytes=${from}-${bytes.length - 2}`,
        })
        const part = yield* Effect.promise(async () => {
          const response = await service.fetch(`/v1/blobs/${id}`, { headers })
          return new Uint8Array(await response.arrayBuffer())
        })
        expect(Buffer.from(bytes.subarray(from, -1)).equals(part)).toBe(true)
      }),
    ))

  it("answers an empty blob whole to a suffix, and 416 to any other range", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const { id } = yield* stored(service, "")
        const got = yield* raw(service, id)
        expect([got.status, got.headers.get("content-length")]).toEqual([200, "0"])
        expect((yield* raw(service, id, { range: "bytes=-1" })).status).toBe(200)
        expect((yield* raw(service, id, { range: "bytes=0-" })).status).toBe(416)
      }),
    ))

  it("heeds If-Range, If-None-Match, and Range on a GET only", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const { id } = yield* stored(service)
        const range = "bytes=0-0"
        expect((yield* raw(service, id, { range, "if-range": `"${id}"` })).text).toBe("0")
        for (const other of ['"a"', `W/"${id}"`, "Fri, 20 Nov 2026 20:06:32 GMT"]) {
          expect((yield* raw(service, id, { range, "if-range": other })).text).toBe(text)
        }
        for (const tags of [`"${id}"`, `"a", W/"${id}"`, "*"]) {
          const got = yield* raw(service, id, { "if-none-match": tags })
          expect([got.status, got.text, got.headers.get("etag")]).toEqual([304, "", `"${id}"`])
        }
        expect((yield* raw(service, id, { "if-none-match": '"a"' })).status).toBe(200)
        const headers = { ...accept_bytes, range }
        const head = yield* service.call("HEAD", `/v1/blobs/${id}`, { headers })
        expect([head.status, head.headers.get("content-length")]).toEqual([200, "10"])
      }),
    ))

  it("is asked for by name, and not by a wildcard", () => {
    expect(prefersBytes("application/octet-stream")).toBe(true)
    expect(prefersBytes("Application/Octet-Stream; q=0.1, */*; q=0.05")).toBe(true)
    expect(prefersBytes("application/octet-stream, application/json")).toBe(true)
    expect(prefersBytes("application/json, application/octet-stream")).toBe(false)
    expect(prefersBytes("application/json;q=0.5, application/octet-stream")).toBe(true)
    expect(prefersBytes("application/octet-stream;q=0.5, application/x-ndjson")).toBe(false)
    for (const other of [undefined, "", "*/*", "application/*", "application/octet-stream;q=0"]) {
      expect(prefersBytes(other)).toBe(false)
    }
  })

  it("has every range that lies in it, and no other", () => {
    for (let size = 0; size < 5; size++) {
      for (let first = 0; first < 6; first++) {
        for (let last = first; last < 6; last++) {
          const end = Math.min(last + 1, size)
          const expected = first >= size ? "none" : { start: first, end }
          expect(rangeOf(`bytes=${first}-${last}`, size)).toEqual(expected)
        }
      }
    }
  })
})

describe("stat", () => {
  it("answers meta, or exists false and no meta, on this node or on every", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const { id } = yield* stored(service, text, { a: "b" })
        for (const scope of ["", "?scope=node", "?scope=cluster"]) {
          const found = yield* service.call("GET", `/v1/blobs/${id}/stat${scope}`, {
            token: "reader",
          })
          expect(found.json).toMatchObject({ exists: true, meta: { size: 10, labels: { a: "b" } } })
          const none = yield* service.call("GET", `/v1/blobs/${absent}/stat${scope}`)
          expect([none.status, none.text]).toEqual([200, '{"exists":false}'])
        }
        expect((yield* service.call("GET", `/v1/blobs/${id}/stat?scope=all`)).status).toBe(400)
      }),
    ))
})

describe("delete", () => {
  it("returns deleted for existing and missing blobs, and records the caller", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const { id } = yield* stored(service)
        for (const path of [id, id, absent, `${id}?scope=cluster`]) {
          const gone = yield* service.call("DELETE", `/v1/blobs/${path}`)
          expect([gone.status, gone.text]).toEqual([200, '{"deleted":true}'])
        }
        expect((yield* service.call("GET", `/v1/blobs/${id}`)).status).toBe(404)
        expect((yield* Effect.promise(() => service.engine.scan(1, 10)))[0]?.actor).toBe("writer")
        const reader = yield* service.call("DELETE", `/v1/blobs/${id}`, { token: "reader" })
        expect(reader.status).toBe(403)
      }),
    ))
})

describe("a store that fails", () => {
  const failing = (fault: BlobFault) => () => Promise.reject(faultError(fault))
  const failed = failing({ _tag: "BlobStoreFailed", detail: "EIO" })
  const read_only = failing({ _tag: "BlobStoreReadOnly", detail: "EIO" })
  // Any identifier will do: the tests check only the status.
  const corrupt = failing({ _tag: "BlobCorrupt", id: absent as BlobId, detail: "bit rot" })
  const cases: ReadonlyArray<readonly [string, string, Partial<BlobEngine>, number]> = [
    ["GET", `/${absent}`, { get: failed }, 500],
    ["GET", `/${absent}/stream`, { get: failed }, 500],
    ["GET", `/${absent}`, { get: corrupt }, 404],
    ["GET", `/${absent}/stream`, { get: corrupt }, 404],
    ["GET", `/${absent}/stat`, { stat: failed }, 500],
    ["DELETE", `/${absent}`, { delete: failed }, 500],
    ["DELETE", `/${absent}`, { delete: read_only }, 503],
    ["GET", "", { list: failed }, 500],
  ]
  it.each(cases)("is answered in the envelope: %s %s", async (method, path, given, status) => {
    const engine = { ...memoryEngine(), ...given }
    const answered = await withBlobs({ engine }, ({ call }) => call(method, `/v1/blobs${path}`))
    expect(answered.status).toBe(status)
    expect(answered.json.request_id).toBe(answered.headers.get("x-request-id"))
  })
})

describe("a method that a path does not have", () => {
  it("is 501 with Allow", () =>
    withBlobs({}, ({ call }) =>
      Effect.gen(function* () {
        for (const [method, path, allow] of [
          ["POST", "/v1/blobs", "PUT, GET, HEAD"],
          ["PUT", `/v1/blobs/${absent}`, "GET, DELETE, HEAD"],
          ["DELETE", `/v1/blobs/${absent}/stat`, "GET, HEAD"],
        ] as const) {
          const { status, headers, json } = yield* call(method, path)
          expect([status, json.code]).toEqual([501, "UNIMPLEMENTED"])
          expect(headers.get("allow")?.split(", ").toSorted()).toEqual(allow.split(", ").toSorted())
        }
      }),
    ))
})
