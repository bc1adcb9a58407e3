/** Batch requests for blobs, and lists filtered by label. Source: decision 0123. */
import { Effect } from "effect"
import { assert, describe, expect, it } from "vitest"
import type { BlobEngine } from "#actors/blob-storage/ports/engine.ts"
import { memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { batch_body_bytes_max, batch_ids_max } from "#schemas/blob-storage/blob.ts"
import { noise, put } from "../../contract/blob-storage/engine-bytes.ts"
import {
  type BlobService,
  base64,
  hexOf,
  json_type,
  lines_type,
  withBlobs,
} from "../../world/blob-storage/service.ts"

const stored = (engine: BlobEngine, bytes: Uint8Array, labels = {}) =>
  Effect.promise(async () => (await put(engine, bytes, { labels })).id)

const toBase64 = (id: string) => Buffer.from(id, "hex").toString("base64")

/** Sends a batch request and returns the lines of the response. */
const ask = (
  { call }: BlobService,
  path: "stat" | "get",
  body: string,
  headers: Readonly<Record<string, string>> = lines_type,
) =>
  Effect.map(
    call("POST", `/v1/blobs/${path}`, { token: "reader", headers, body }),
    ({ status, text, json, headers: answered }) => ({
      status,
      json,
      type: answered.get("content-type"),
      lines:
        status === 200
          ? text
              .split("\n")
              .slice(0, -1)
              .map((line) => JSON.parse(line))
          : [],
    }),
  )

const idOf = (line: { readonly id: { readonly id: string } }) => hexOf(line.id)

describe("a batch", () => {
  it("is answered in the order in which it asks, each as often as it asks", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const contents = Array.from({ length: 300 }, (_, n) => noise(n, n))
        const ids = yield* Effect.forEach(contents, (bytes) => stored(service.engine, bytes))
        const texts = ids.map(String)
        const request = [...ids.toReversed(), "0".repeat(32), ...ids.slice(0, 3)]
        const body = request.map((id) => `${JSON.stringify(id)}\n`).join("")

        const stats = yield* ask(service, "stat", body)
        expect([stats.status, stats.type]).toEqual([200, "application/x-ndjson"])
        expect(stats.lines.map(idOf)).toEqual(request)
        for (const line of stats.lines) {
          const { json } = yield* service.call("GET", `/v1/blobs/${idOf(line)}/stat`)
          expect(line).toEqual({ id: line.id, ...json })
        }
        const gets = yield* ask(service, "get", body)
        expect(gets.lines.map(idOf)).toEqual(request)
        for (const [at, line] of gets.lines.entries()) {
          const place = texts.indexOf(request[at] ?? "")
          if (place < 0) {
            expect(line.error).toMatchObject({
              code: "NOT_FOUND",
              message: "blob not found on any node",
            })
            expect(line.error.request_id).not.toBe("")
            continue
          }
          expect(line.data).toBe(base64(contents[place] ?? new Uint8Array()))
          expect(line.meta.size).toBe(place)
        }
      }),
    ))

  it("takes identifiers in every spelling, as lines or as one array", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const id = yield* stored(service.engine, noise(1, 10))
        const spellings = [id, id.toUpperCase(), toBase64(id), { id: toBase64(id) }]
        const lines = spellings.map((one) => JSON.stringify(one)).join("\r\n\n")
        for (const [body, headers] of [
          [lines, lines_type],
          [JSON.stringify(spellings), json_type],
          [JSON.stringify(spellings), lines_type],
        ] as const) {
          const stats = yield* ask(service, "stat", body, headers)
          expect(stats.lines.map(idOf)).toEqual([id, id, id, id])
        }
        expect((yield* ask(service, "get", "")).lines).toEqual([])
        expect((yield* ask(service, "stat", "[]")).lines).toEqual([])
      }),
    ))

  it("is 400 where it holds no identifiers, or too many, and 413 where it is too long", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const id = JSON.stringify("0".repeat(32))
        const many = Array.from({ length: batch_ids_max + 1 }, () => id).join("\n")
        for (const path of ["stat", "get"] as const) {
          for (const [body, detail] of [
            [`${id}\nx`, "Message 2: Expected valid JSON."],
            ["[", "body: Expected valid JSON."],
            ['["abc"]', "exactly 16 bytes"],
            [`${id}\n7`, "body.1"],
            [many, "10000"],
          ] as const) {
            const { status, json } = yield* ask(service, path, body)
            expect([status, json.code]).toEqual([400, "INVALID_ARGUMENT"])
            expect(json.detail).toContain(detail)
          }
          const long = yield* ask(service, path, "\n".repeat(batch_body_bytes_max + 1))
          expect([long.status, long.json.code]).toEqual([413, "RESOURCE_EXHAUSTED"])
          const typed = yield* ask(service, path, id, { "content-type": "text/plain" })
          expect(typed.status).toBe(415)
        }
        const full = yield* ask(service, "stat", many.slice(0, -(id.length + 1)))
        expect(full.lines.length).toBe(batch_ids_max)
        const { status } = yield* service.call("POST", "/v1/blobs/get", {
          token: "nobody",
          headers: lines_type,
          body: id,
        })
        expect(status).toBe(401)
      }),
    ))

  it("has large blobs on a line too, but none that makes a line of more than 16 MiB", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const large = noise(1, 3_000_001)
        const ids = [
          yield* stored(service.engine, large),
          yield* stored(service.engine, noise(2, 13_000_000)),
          yield* stored(service.engine, noise(3, 10)),
        ]
        const { lines } = yield* ask(service, "get", JSON.stringify(ids))
        expect(lines.map(idOf)).toEqual(ids)
        expect(lines[0].data === base64(large)).toBe(true)
        expect(lines[1]).toMatchObject({ error: { code: "RESOURCE_EXHAUSTED" } })
        expect(lines[2].data).toBe(base64(noise(3, 10)))
      }),
    ))

  it("has an error for a blob whose last window is corrupt, and whole lines around it", () => {
    const engine = memoryEngine()
    return withBlobs({ engine }, (service) =>
      Effect.gen(function* () {
        const sizes = [10, 3_000_001, 3_000_000]
        const ids = yield* Effect.forEach(sizes, (size) => stored(engine, noise(size, size)))
        const [, corrupt = assert.fail("there is none")] = ids
        engine.corrupt(corrupt, 3_000_000)
        const { lines } = yield* ask(service, "get", JSON.stringify(ids))
        expect(lines.map(idOf)).toEqual(ids)
        expect(lines[1]).toMatchObject({ error: { code: "NOT_FOUND" } })
        expect(lines[1].data).toBeUndefined()
        for (const at of [0, 2]) {
          const size = sizes[at] ?? 0
          expect(lines[at].data === base64(noise(size, size))).toBe(true)
        }
        expect((yield* Effect.promise(engine.usage)).quarantined).toBe(1)
      }),
    )
  })
})

describe("a list by labels", () => {
  const pageOf = ({ call }: BlobService, query: string) =>
    Effect.map(call("GET", `/v1/blobs?${query}`), ({ status, json }) => {
      expect([status, json.detail]).toEqual([200, undefined])
      const ids = (json.ids as ReadonlyArray<{ readonly id: string }>).map(hexOf)
      return { ids, cursor: json.has_more === true ? String(json.next_cursor) : "" }
    })
  const walk = (service: BlobService, query: string) =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      for (let cursor = ""; ; ) {
        const page = yield* pageOf(service, `${query}&cursor=${encodeURIComponent(cursor)}`)
        seen.push(...page.ids)
        if (page.cursor === "") return seen
        cursor = page.cursor
      }
    })

  it("has those with all of them, in order, on every page", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const blobs: Array<{ id: string; n: number }> = []
        for (let n = 0; n < 60; n++) {
          const labels = { kind: n % 3 === 0 ? "image" : "text", "s p": String(n % 2) }
          blobs.push({ id: yield* stored(service.engine, noise(n, 20), labels), n })
        }
        const withN = (fits: (n: number) => boolean) =>
          blobs.flatMap(({ id, n }) => (fits(n) ? [id] : [])).toSorted()
        for (const limit of [1, 3, 100]) {
          const images = yield* walk(service, `limit=${limit}&label.kind=image`)
          expect(images).toEqual(withN((n) => n % 3 === 0))
          const query = `limit=${limit}&label.kind=text&label.s%20p=1`
          expect(yield* walk(service, query)).toEqual(withN((n) => n % 3 !== 0 && n % 2 === 1))
        }
        expect(yield* walk(service, "label.kind=other")).toEqual([])
        expect(yield* walk(service, "label.none=image")).toEqual([])
        const prefix = blobs[0]?.id.slice(0, 1) ?? ""
        expect(yield* walk(service, `prefix=${prefix}&label.kind=image`)).toEqual(
          withN((n) => n % 3 === 0).filter((id) => id.startsWith(prefix)),
        )
        const twice = yield* service.call("GET", "/v1/blobs?label.a=1&label.a=2")
        expect([twice.status, twice.json.detail]).toEqual([400, "query.label.a: it occurs twice."])
      }),
    ))

  it("looks at so many blobs for one page, and goes on from there", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const count = 12_000
        const ids = yield* Effect.forEach(
          Array.from({ length: count }, (_, n) => n),
          (n) =>
            stored(service.engine, noise(n, 8), n === 0 ? { all: "1", rare: "yes" } : { all: "1" }),
        )
        const first = yield* pageOf(service, "label.rare=no")
        expect([first.ids, first.cursor === ""]).toEqual([[], false])
        expect(yield* walk(service, "label.rare=yes")).toEqual([ids[0]])
        expect(yield* walk(service, "limit=5000&label.all=1")).toEqual(ids.toSorted())
      }),
    ))
})
