/** PUT /v1/blobs: response, fields and errors. Source: document 1 §4, §7, §8. */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { type BlobFault, faultError } from "#actors/blob-storage/ports/fault.ts"
import { memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { json_body_bytes_max, labels_bytes_max } from "#schemas/blob-storage/blob.ts"
import { noise } from "../../contract/blob-storage/engine-bytes.ts"
import {
  type BlobService,
  base64,
  hexOf,
  json_type,
  withBlobs,
} from "../../world/blob-storage/service.ts"

const send = ({ call }: BlobService, body: unknown, headers: Record<string, string> = {}) =>
  call("PUT", "/v1/blobs", {
    headers: { ...json_type, ...headers },
    body: typeof body === "string" || body instanceof Blob ? body : JSON.stringify(body),
  })

const hello = { data: base64("hello") }
/** BLAKE3-256 of "hello", from the reference implementation. */
const hello_hash = "ea8f163db38682925e4491c5e58d4bb3506ef8c14eb78a86e908c5624a67200f"

const replica = (copies: number) => `REPLICATION_POLICY_REPLICA${copies}`

describe("a put", () => {
  it("answers ID, size and meta, with exact integers", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const { status, text, json } = yield* send(service, { ...hello, labels: { a: "é" } })
        expect(status).toBe(200)
        expect(hexOf(json.id)).toBe(hello_hash.slice(0, 32))
        expect(json).toMatchObject({ size: 5, meta: { size: 5, labels: { a: "é" } } })
        expect(json.meta?.checksum).toBe(base64(Buffer.from(hello_hash, "hex")))
        expect(json.meta?.policy).toBe(replica(3))
        const [, created] = /"created_at":(\d+)/.exec(text) ?? []
        const meta = yield* Effect.flatMap(onlyId(service), (id) =>
          Effect.promise(() => service.engine.stat(id)),
        )
        expect(created).toBe(String(meta.created_at))
        expect(text).toContain(`"modified_at":${created}`)
        const [fact] = yield* Effect.promise(() => service.engine.scan(0, 10))
        expect(fact?.actor).toBe("writer")
      }),
    ))

  it("names its caller, its request and the caller's own request in the journal", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const { headers } = yield* send(service, hello, { "x-request-id": "mine" })
        const [fact] = yield* Effect.promise(() => service.engine.scan(0, 10))
        expect(fact).toMatchObject({
          actor: "writer",
          request_id: headers.get("x-request-id"),
          correlation_id: "mine",
        })
      }),
    ))

  it("writes 64-bit integers as text where json.int64 is string", () =>
    withBlobs({ settings: { json: { int64: "string" } } }, (service) =>
      Effect.map(send(service, hello), ({ json }) => expect(json.size).toBe("5")),
    ))

  it("stores the empty blob", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const { status, json } = yield* send(service, { data: "" })
        expect([status, json.size]).toEqual([200, 0])
      }),
    ))

  it("takes either base64, padded or not, with escapes, and nulls as absent", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        for (const data of ["++//", "--__", "\\u002b+\\/\\/"]) {
          const { json } = yield* send(service, `{"data":"${data}","policy":null,"labels":null}`)
          expect(hexOf(json.id)).toBe(yield* onlyId(service))
        }
        expect((yield* send(service, { data: "aGk" })).json.size).toBe(2)
        expect((yield* send(service, { data: "aGk=" })).json.size).toBe(2)
        expect((yield* send(service, '{"d\\u0061ta":"aGk="}')).json.size).toBe(2)
      }),
    ))

  it("stores and shows each policy, an unspecified one as REPLICA3", () =>
    withBlobs({ active_nodes: 10 }, (service) =>
      Effect.gen(function* () {
        const policies = ["UNSPECIFIED", "NONE", "REPLICA2", "REPLICA3"]
        for (const name of policies) {
          const policy = `REPLICATION_POLICY_${name}`
          const { json } = yield* send(service, { data: base64(name), policy })
          expect(json.meta?.policy).toBe(name === "UNSPECIFIED" ? replica(3) : policy)
        }
      }),
    ))
})

const onlyId = ({ engine }: BlobService) =>
  Effect.promise(async () => {
    const { ids } = await engine.list("", "", 2)
    const [id] = ids
    if (id === undefined || ids.length > 1) throw new Error(`${ids.length} blobs`)
    return id
  })

describe("a put of the same content again", () => {
  it("changes nothing with the same or no policy, and is 409 with another or If-None-Match", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const first = yield* send(service, { ...hello, policy: replica(2), labels: { a: "1" } })
        const again = yield* send(service, { ...hello, labels: { b: "2" } })
        expect([again.status, again.text]).toEqual([200, first.text])
        const same = yield* send(service, { ...hello, policy: replica(2) })
        expect([same.status, same.text]).toEqual([200, first.text])
        const other = yield* send(service, { ...hello, policy: replica(3) })
        expect([other.status, other.json.code]).toEqual([409, "ALREADY_EXISTS"])
        const fresh = yield* send(service, hello, { "if-none-match": "*" })
        expect([fresh.status, fresh.json.code]).toEqual([409, "ALREADY_EXISTS"])
        expect((yield* Effect.promise(() => service.engine.scan(0, 10))).length).toBe(1)
      }),
    ))

  it("stores a missing blob with If-None-Match, and rejects any tag but *", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const tagged = yield* send(service, hello, { "if-none-match": '"a"' })
        expect([tagged.status, tagged.json.code]).toEqual([400, "INVALID_ARGUMENT"])
        expect((yield* send(service, hello, { "if-none-match": "*" })).status).toBe(200)
      }),
    ))
})

const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [n, ""]))

const mistakes: ReadonlyArray<readonly [string, unknown, RegExp]> = [
  ["no body", "", /body: Expected a JSON object/],
  ["an array", "[]", /JSON object/],
  ["a text", '"hello"', /JSON object/],
  ["half an object", '{"data":"aGk="', /JSON object/],
  ["malformed JSON", '{"data":"aGk=",}', /body: Expected valid JSON/],
  [
    "what is no UTF-8",
    new Blob([Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x30, 0x7d)]),
    /valid JSON/,
  ],
  ["two objects", '{"data":"aGk="} {"data":"aGk="}', /one JSON object/],
  ["no data", { labels: {} }, /body\.data/],
  ["null data", { data: null }, /body\.data/],
  ["data that is a number", { data: 5 }, /body\.data/],
  ["data that is no base64", { data: "not base64!" }, /body\.data/],
  ["data with a line break", { data: "aGVs\nbG8=" }, /body\.data/],
  ["data with stray bits", { data: "aGl=" }, /body\.data/],
  ["data with too much padding", { data: "aGk==" }, /body\.data/],
  ["data that ends in an escape", '{"data":"aGk=\\"}', /body\.data/],
  ["an unknown policy", { ...hello, policy: "REPLICA3" }, /body\.policy/],
  ["a policy that is a number", { ...hello, policy: 3 }, /body\.policy/],
  ["a label that is a number", { ...hello, labels: { a: 1 } }, /body\.labels/],
  ["65 labels", { ...hello, labels: many(65) }, /body\.labels: .*64 labels/],
  [
    "labels of one byte too many",
    { ...hello, labels: { é: "x".repeat(labels_bytes_max - 1) } },
    /body\.labels: .*16384 bytes/,
  ],
]

describe("a put is 400 and names the field", () => {
  for (const [why, body, detail] of mistakes) {
    it(`with ${why}`, () =>
      withBlobs({}, (service) =>
        Effect.gen(function* () {
          const { status, json } = yield* send(service, body)
          expect(json).toMatchObject({ code: "INVALID_ARGUMENT", message: "invalid argument" })
          expect(status).toBe(400)
          expect(json.detail).toMatch(detail)
          expect((yield* Effect.promise(service.engine.usage)).blob_count).toBe(0)
        }),
      ))
  }

  it("but not with 64 labels, nor with 16 KiB of them", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        expect((yield* send(service, { data: "", labels: many(64) })).status).toBe(200)
        const labels = { é: "x".repeat(labels_bytes_max - 2) }
        expect((yield* send(service, { ...hello, labels })).status).toBe(200)
      }),
    ))
})

describe("a put whose policy cannot be met", () => {
  for (const [policy, have, need] of [
    ["EC42", 1, 6],
    ["EC42", 5, 6],
    ["EC82", 9, 10],
  ] as const) {
    it(`is 412 for ${policy} with ${have} active nodes`, () =>
      withBlobs({ active_nodes: have }, (service) =>
        Effect.gen(function* () {
          const body = { ...hello, policy: `REPLICATION_POLICY_${policy}` }
          const { status, json } = yield* send(service, body)
          expect(status).toBe(412)
          expect(json).toMatchObject({
            code: "FAILED_PRECONDITION",
            message: "not enough nodes for EC",
            detail: `not enough nodes for EC (have ${have}, need ${need})`,
          })
        }),
      ))
  }
})

describe("a put that is too large", () => {
  it("is 413, by its declared length or as it comes", () =>
    withBlobs({ settings: { blob: { json_body_bytes_max: 1024 } } }, (service) =>
      Effect.gen(function* () {
        const body = JSON.stringify({ data: "A".repeat(1012) }).padEnd(1024)
        expect(body.length).toBe(1024)
        expect((yield* send(service, body)).status).toBe(200)
        const declared = yield* send(service, ` ${body}`)
        expect([declared.status, declared.json.code]).toEqual([413, "RESOURCE_EXHAUSTED"])
        const chunked = yield* Effect.promise(() =>
          service.raw(
            "PUT /v1/blobs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer writer\r\n",
            "Connection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n",
            `\r\n401\r\n ${body}\r\n0\r\n\r\n`,
          ),
        )
        expect(chunked).toMatch(/^HTTP\/1.1 413 [\s\S]*RESOURCE_EXHAUSTED/)
      }),
    ))

  it("is stored with a body of 64 MiB, and got again by JSON", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const bytes = noise(7, Math.floor(((json_body_bytes_max - 11) * 3) / 4))
        const body = `{"data":"${base64(bytes)}"}`
        expect(json_body_bytes_max - body.length).toBeLessThan(4)
        const { status, json } = yield* send(service, body)
        expect([status, json.size]).toEqual([200, bytes.length])
        const got = yield* service.call("GET", `/v1/blobs/${hexOf(json.id)}`)
        expect(Buffer.from(got.json.data ?? "", "base64").equals(bytes)).toBe(true)
        const over = yield* send(service, `{"data":"${"A".repeat(json_body_bytes_max)}"}`)
        expect(over.status).toBe(413)
      }),
    ))

  it("is 413 when the blob is larger than a store takes", () =>
    withBlobs({ engine: memoryEngine({ capacity_bytes: 100, size_max_bytes: 4 }) }, (service) =>
      Effect.map(send(service, hello), ({ status, json }) =>
        expect([status, json.code]).toEqual([413, "RESOURCE_EXHAUSTED"]),
      ),
    ))
})

const shardsFailed = (is_full: boolean): BlobFault => ({
  _tag: "BlobShardsFailed",
  detail: "3 of 6",
  is_full,
})

describe("a put that the store refuses", () => {
  const cases: ReadonlyArray<readonly [BlobFault, number, string, string]> = [
    [{ _tag: "BlobStoreReadOnly", detail: "EROFS" }, 503, "UNAVAILABLE", "cluster degraded"],
    [{ _tag: "BlobStoreFailed", detail: "EIO" }, 500, "INTERNAL", "internal error"],
    [shardsFailed(true), 429, "RESOURCE_EXHAUSTED", "resource exhausted"],
    [shardsFailed(false), 500, "INTERNAL", "too many shard store failures"],
  ]
  for (const [fault, status, code, message] of cases) {
    it(`is ${status} ${message} when it is ${fault._tag}`, async () => {
      const engine = { ...memoryEngine(), put: () => Promise.reject(faultError(fault)) }
      const answered = await withBlobs({ engine }, (service) => send(service, hello))
      expect(answered.status).toBe(status)
      expect(answered.json).toMatchObject({ code, message })
    })
  }

  it("is 429 when its capacity is used up", () =>
    withBlobs({ engine: memoryEngine({ capacity_bytes: 4 }) }, (service) =>
      Effect.map(send(service, hello), ({ status, json }) =>
        expect([status, json.code]).toEqual([429, "RESOURCE_EXHAUSTED"]),
      ),
    ))
})

describe("access to a put", () => {
  it("is 401 without a token and 403 with one that may only read", () =>
    withBlobs({}, ({ call, fetch }) =>
      Effect.gen(function* () {
        const init = { headers: json_type, body: JSON.stringify(hello) }
        expect((yield* call("PUT", "/v1/blobs", { ...init, token: "reader" })).status).toBe(403)
        const anonymous = () => fetch("/v1/blobs", { ...init, method: "PUT" })
        expect((yield* Effect.promise(anonymous)).status).toBe(401)
      }),
    ))

  it("is 415 with plain bytes, and names the operation that accepts them", () =>
    withBlobs({}, (service) =>
      Effect.map(
        send(service, hello, { "content-type": "application/octet-stream" }),
        ({ status, text }) => {
          expect(status).toBe(415)
          expect(text).toContain(
            "must be application/json. POST /v1/blobs/stream accepts application/octet-stream.",
          )
        },
      ),
    ))

  it("is 415 with a body of another type", () =>
    withBlobs({}, (service) =>
      Effect.map(send(service, hello, { "content-type": "text/plain" }), ({ status }) =>
        expect(status).toBe(415),
      ),
    ))
})
