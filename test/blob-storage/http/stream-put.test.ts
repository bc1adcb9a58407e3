/** POST /v1/blobs/stream: chunks in order, and plain bytes. Source: document 1 §4 rule 1, §7. */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { stream_line_bytes_max } from "#schemas/blob-storage/blob.ts"
import { noise, put } from "../../contract/blob-storage/engine-bytes.ts"
import {
  type BlobService,
  base64,
  bytes_type,
  hexOf,
  json_type,
  lines_type,
  withBlobs,
} from "../../world/blob-storage/service.ts"
import { until } from "../../world/http.ts"

const path = "/v1/blobs/stream"

const send = (
  { call }: BlobService,
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
  query = "",
) => call("POST", path + query, { headers: { ...lines_type, ...headers }, body })

const chunk = (data: string, final: boolean, more: object = {}) =>
  JSON.stringify({ data: base64(data), final, ...more })
const lines = (...messages: ReadonlyArray<string>) => `${messages.join("\n")}\n`

const hello = lines(chunk("he", false), chunk("llo", true))
const hello_hex = "ea8f163db38682925e4491c5e58d4bb3"
const hello_id = base64(Buffer.from(hello_hex, "hex"))
const other_id = base64(new Uint8Array(16))
const policy = (name: string) => ({ policy: `REPLICATION_POLICY_${name}` })

const count = ({ engine }: BlobService) =>
  Effect.map(Effect.promise(engine.usage), ({ blob_count }) => blob_count)

describe("a put stream of chunks", () => {
  for (const [form, body, headers] of [
    ["lines", hello, {}],
    ["lines that end in CR LF, with empty ones between", hello.replaceAll("\n", "\r\n\r\n"), {}],
    ["lines, the last without an end", hello.trimEnd(), {}],
    ["one line", lines(chunk("hello", true)), {}],
    ["empty chunks between", lines(chunk("", false), chunk("hello", false), chunk("", true)), {}],
    ["an array", `[${chunk("he", false)}, ${chunk("llo", true)}]`, json_type],
    ["an array over lines", `[\n ${chunk("he", false)},\n${chunk("llo", true)}\n]\n`, {}],
    ["one pretty message", JSON.stringify(JSON.parse(chunk("hello", true)), null, 2), json_type],
    ["lines called application/json", hello, json_type],
    ["the ID of the content", lines(chunk("hello", true, { id: { id: hello_id } })), {}],
    ["the bare ID", lines(chunk("hello", true, { id: hello_id })), {}],
    [
      "the ID in hex on both chunks",
      lines(chunk("he", false, { id: hello_hex }), chunk("llo", true, { id: { id: hello_id } })),
      {},
    ],
    [
      "nulls for what is absent",
      lines(chunk("hello", true, { id: null, policy: null, labels: null })),
      {},
    ],
    [
      "the same policy again",
      lines(
        chunk("he", false, policy("REPLICA3")),
        chunk("", false, policy("REPLICA3")),
        chunk("llo", true, policy("UNSPECIFIED")),
      ),
      {},
    ],
  ] as const) {
    it(`is stored as ${form}`, () =>
      withBlobs({}, (service) =>
        Effect.gen(function* () {
          const { status, json } = yield* send(service, body, headers)
          expect([status, hexOf(json.id), json.size]).toEqual([200, hello_hex, 5])
          expect(json.meta).toMatchObject({ size: 5, labels: {}, ...policy("REPLICA3") })
          expect(yield* count(service)).toBe(1)
        }),
      ))
  }

  it("takes policy and labels from the first chunk, or from the address and the headers", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const first = { ...policy("NONE"), labels: { A: "é" } }
        const message = yield* send(service, lines(chunk("one", false, first), chunk("", true)))
        expect(message.json.meta).toMatchObject(first)
        const query = `?policy=${policy("REPLICA2").policy}`
        const request = yield* send(service, lines(chunk("two", true)), { "x-label-a": "b" }, query)
        expect(request.json.meta).toMatchObject({ ...policy("REPLICA2"), labels: { a: "b" } })
        const both = yield* send(service, lines(chunk("three", true, policy("NONE"))), {}, query)
        expect(both.status).toBe(400)
      }),
    ))

  it("is a no-op again, and 409 with another policy or If-None-Match", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const first = yield* send(service, hello)
        expect((yield* send(service, hello)).text).toBe(first.text)
        const other = lines(chunk("hello", true, policy("NONE")))
        expect((yield* send(service, other)).status).toBe(409)
        expect((yield* send(service, hello, { "if-none-match": "*" })).status).toBe(409)
      }),
    ))

  it("takes a line of 16 MiB and refuses a longer one", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const shell = '{"final":true,"data":""}'.length
        const digits = Math.floor((stream_line_bytes_max - shell) / 4) * 4
        const bytes = noise(1, (digits / 4) * 3)
        const line = `{"final":true,"data":"${base64(bytes)}"`.padEnd(stream_line_bytes_max - 1)
        const stored = yield* send(service, `${line}}\n`)
        expect([stored.status, stored.json.size]).toEqual([200, bytes.length])
        const long = yield* send(service, `${line} }\n`)
        expect([long.status, long.json.code]).toEqual([413, "RESOURCE_EXHAUSTED"])
      }),
    ))

  it("is answered though the client waits for the answer before it ends the request", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const answer = yield* Effect.promise(() =>
          service.raw(
            `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer writer\r\n`,
            "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n",
            `${hello.length.toString(16)}\r\n${hello}\r\n`,
          ),
        )
        expect(answer).toMatch(/^HTTP\/1.1 200 /)
        expect(yield* count(service)).toBe(1)
      }),
    ))
})

const refusals: ReadonlyArray<readonly [string, string, number, RegExp]> = [
  ["is empty", "", 500, /without a header chunk/],
  ["is an empty array", "[]", 500, /without a header chunk/],
  ["has empty lines only", "\n\r\n \n", 500, /without a header chunk/],
  ["has no final chunk", lines(chunk("hello", false)), 500, /before its final chunk/],
  ["has no final chunk in its array", `[${chunk("hello", false)}]`, 500, /before its final chunk/],
  ["ends inside its first message", '{"data":"aGV', 500, /before its final chunk/],
  ["ends inside a message", `${lines(chunk("he", false))}{"data"`, 500, /before its final chunk/],
  ["ends inside its array", `[${chunk("he", false)},`, 500, /before its final chunk/],
  ["has an unfinished array behind the final chunk", `[${chunk("he", true)}`, 400, /Message 2/],
  ["has a chunk behind the final one", lines(chunk("a", true), chunk("b", true)), 400, /Message 2/],
  ["has half a chunk behind the final one", `${lines(chunk("a", true))}{"da`, 400, /Message 2/],
  ["has bytes behind the final chunk", `${lines(chunk("a", true))}x`, 400, /Message 2/],
  ["is no JSON", "hello\n", 400, /Message 1/],
  ["is no object", "5\n", 400, /Message 1/],
  ["has a malformed first line", '{"data":"aGk=",}\n', 400, /Message 1: .*JSON/],
  ["has a malformed later line", `${lines(chunk("a", false))}{]\n`, 400, /Message 2: .*JSON/],
  ["has a message over two lines", '{"data":"",\n"final":true}\n', 400, /Message 1/],
  ["has no data", '{"final":true}\n', 400, /Message 1\.data/],
  ["has no data later", `${lines(chunk("a", false))}{"final":true}\n`, 400, /Message 2\.data/],
  ["has null data", '{"data":null,"final":true}\n', 400, /Message 1\.data/],
  ["does not say whether it is final", '{"data":""}\n', 400, /Message 1\.final/],
  ["has a final that is a text", '{"data":"","final":"true"}\n', 400, /Message 1\.final/],
  ["has malformed base64", '{"data":"*","final":true}\n', 400, /Message 1\.data/],
  [
    "has malformed base64 later",
    `${lines(chunk("a", false))}{"data":"YWJj\\n","final":true}\n`,
    400,
    /Message 2\.data/,
  ],
  ["has an unknown policy", lines(chunk("a", true, { policy: "EC" })), 400, /Message 1\.policy/],
  [
    "has another policy later",
    lines(chunk("a", false, policy("NONE")), chunk("", true, policy("REPLICA2"))),
    400,
    /Message 2: policy/,
  ],
  [
    "has a policy later only",
    lines(chunk("a", false), chunk("", true, policy("REPLICA3"))),
    400,
    /Message 2: policy/,
  ],
  [
    "has labels later",
    lines(chunk("a", false), chunk("", true, { labels: { a: "b" } })),
    400,
    /Message 2: labels/,
  ],
  [
    "has the ID of another blob",
    lines(chunk("hello", true, { id: other_id })),
    400,
    /content's ID/,
  ],
  [
    "has chunks of different blobs",
    lines(chunk("he", false, { id: hello_id }), chunk("llo", true, { id: other_id })),
    400,
    /Message 2: id: a stream must not contain chunks of different blobs/,
  ],
  [
    "has an ID later only",
    lines(chunk("he", false), chunk("llo", true, { id: hello_id })),
    400,
    /Message 2: id/,
  ],
  ["asks for too many nodes", lines(chunk("a", true, policy("EC82"))), 412, /have 1, need 10/],
]

describe("a put stream stores nothing when it", () => {
  for (const [why, body, status, detail] of refusals) {
    it(why, () =>
      withBlobs({}, (service) =>
        Effect.gen(function* () {
          const answered = yield* send(service, body)
          expect([answered.status, answered.json.detail]).toEqual([
            status,
            expect.stringMatching(detail),
          ])
          const codes = { 400: "INVALID_ARGUMENT", 412: "FAILED_PRECONDITION", 500: "INTERNAL" }
          expect(answered.json.code).toBe(codes[status as keyof typeof codes])
          expect(yield* count(service)).toBe(0)
          expect(yield* Effect.promise(() => service.engine.scan(0, 1))).toEqual([])
        }),
      ),
    )
  }

  for (const id of ["", "AAAA", base64(new Uint8Array(17)), "0".repeat(31)]) {
    it(`has the ID ${JSON.stringify(id)}, which is not 16 bytes`, () =>
      withBlobs({}, (service) =>
        Effect.gen(function* () {
          for (const given of [id, { id }]) {
            const { status, json } = yield* send(service, lines(chunk("a", true, { id: given })))
            expect([status, json.message]).toEqual([400, "invalid blob ID"])
            expect(json.detail).toContain("exactly 16 bytes")
          }
        }),
      ))
  }
})

describe("a put of plain bytes", () => {
  const raw = (
    service: BlobService,
    body: string | Uint8Array<ArrayBuffer>,
    headers: Record<string, string> = {},
    query = "",
  ) => send(service, body, { ...bytes_type, ...headers }, query)

  it("is stored with the policy and the labels that it names", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const labels = {
          "X-Label-Kind": "model",
          "X-Label-wei%C3%9F": "%c3%a9 100%25",
          "x-label-odd": "100%",
        }
        const query = `?policy=${policy("NONE").policy}&id=${hello_hex}`
        const { status, json } = yield* raw(service, "hello", labels, query)
        expect([status, hexOf(json.id)]).toEqual([200, hello_hex])
        expect(json.meta).toMatchObject({
          ...policy("NONE"),
          labels: { kind: "model", weiß: "é 100%", odd: "100%" },
        })
      }),
    ))

  it("may be empty", () =>
    withBlobs({}, (service) =>
      Effect.map(raw(service, ""), ({ status, json }) =>
        expect([status, json.size]).toEqual([200, 0]),
      ),
    ))

  it("is refused as the other forms are", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const other = yield* raw(service, "hello", {}, `?id=${"0".repeat(32)}`)
        expect([other.status, yield* count(service)]).toEqual([400, 0])
        const wrong = yield* raw(service, "hello", {}, "?id=00")
        expect([wrong.status, wrong.json.message]).toEqual([400, "invalid blob ID"])
        const code = yield* raw(service, "hello", {}, "?policy=REPLICATION_POLICY_EC42")
        expect(code.json.detail).toBe("not enough nodes for EC (have 1, need 6)")
        expect((yield* raw(service, "hello", {}, "?policy=EC42")).status).toBe(400)
        const labels = Object.fromEntries(
          Array.from({ length: 65 }, (_, number) => [`x-label-${number}`, ""]),
        )
        const many = yield* raw(service, "hello", labels)
        expect([many.status, many.json.detail]).toEqual([400, expect.stringContaining("64 labels")])
        yield* raw(service, "hello")
        const again = yield* raw(service, "hello", { "if-none-match": "*" })
        expect([again.status, again.json.code]).toEqual([409, "ALREADY_EXISTS"])
      }),
    ))

  it("is 413 when it is larger than a store takes, and 429 when there is no room", () => {
    const engine = memoryEngine({ capacity_bytes: 10, size_max_bytes: 5 })
    return withBlobs({ engine }, (service) =>
      Effect.gen(function* () {
        const large = yield* raw(service, "123456")
        expect([large.status, large.json.code]).toEqual([413, "RESOURCE_EXHAUSTED"])
        yield* Effect.promise(() => put(engine, noise(1, 5)))
        yield* Effect.promise(() => put(engine, noise(2, 3)))
        const full = yield* raw(service, "12345")
        expect([full.status, full.json.code]).toEqual([429, "RESOURCE_EXHAUSTED"])
      }),
    )
  })
})

describe("a put stream whose framing breaks", () => {
  const headOf = (type: string) =>
    [
      `POST ${path} HTTP/1.1`,
      "Host: a",
      "Authorization: Bearer writer",
      `Content-Type: ${type}`,
      "Transfer-Encoding: chunked",
      "\r\n",
    ].join("\r\n")
  const framed = (text: string) =>
    text === "" ? "" : `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`

  for (const [type, text] of [
    ["application/octet-stream", "hello"],
    ["application/x-ndjson", hello],
    ["application/x-ndjson", lines(chunk("he", false))],
    ["application/x-ndjson", ""],
  ] as const) {
    it(`is 500 and stores nothing after ${JSON.stringify(text.slice(0, 20))} as ${type}`, () =>
      withBlobs({}, ({ raw, engine, inFlight }) =>
        Effect.gen(function* () {
          const answer = yield* Effect.promise(() => raw(headOf(type), framed(text), "no size\r\n"))
          expect(answer).toMatch(/^HTTP\/1.1 500 [\s\S]*"code":"INTERNAL"/)
          yield* Effect.promise(() => until(() => inFlight() === 0))
          expect((yield* Effect.promise(engine.usage)).blob_count).toBe(0)
        }),
      ))
  }
})

describe("access to a put stream", () => {
  it("is 403 for a reader, and 415 with a type that is not read here", () =>
    withBlobs({}, ({ call }) =>
      Effect.gen(function* () {
        const init = { headers: lines_type, body: hello }
        expect((yield* call("POST", path, { ...init, token: "reader" })).status).toBe(403)
        const headers = { "content-type": "text/plain" }
        const other = yield* call("POST", path, { headers, body: hello })
        expect([other.status, other.json.code]).toEqual([415, "INVALID_ARGUMENT"])
      }),
    ))
})
