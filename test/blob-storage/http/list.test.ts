/** GET /v1/blobs: pages, prefixes and cursors. Source: document 1 §4 rule 5; DECISIONS, list. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer, Redacted } from "effect"
import { describe, expect, it } from "vitest"
import type { BlobEngine } from "#actors/blob-storage/ports/engine.ts"
import { cursors, cursorsWith } from "#adapters/blob-storage/cursor-key.ts"
import { memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { Cursors } from "#gateway/blob-storage/cursors.ts"
import { list_limit_default, list_limit_max } from "#schemas/blob-storage/blob.ts"
import { noise, put } from "../../contract/blob-storage/engine-bytes.ts"
import { type BlobService, hexOf, withBlobs } from "../../world/blob-storage/service.ts"

const fill = (engine: BlobEngine, count: number) =>
  Effect.promise(async () => {
    const ids: Array<string> = []
    for (let seed = 0; seed < count; seed++) ids.push((await put(engine, noise(seed, 8))).id)
    return ids.toSorted()
  })

interface Page {
  readonly ids: ReadonlyArray<{ readonly id: string }>
  readonly has_more: boolean
  readonly next_cursor?: string
}
const page = ({ call }: BlobService, query: Readonly<Record<string, string>> = {}) =>
  Effect.map(call("GET", `/v1/blobs?${new URLSearchParams(query)}`, { token: "reader" }), (got) => {
    expect([got.status, got.json.detail]).toEqual([200, undefined])
    // A response of this server; the tests check its fields one by one.
    const { ids, has_more, next_cursor } = got.json as unknown as Page
    expect(next_cursor === undefined).toBe(!has_more)
    return { ids: ids.map(hexOf), has_more, next_cursor: next_cursor ?? "" }
  })

/** Reads all pages in order. */
const walk = (service: BlobService, query: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const pages: Array<ReadonlyArray<string>> = []
    for (let cursor = ""; ; ) {
      const next = yield* page(service, { ...query, ...(cursor === "" ? {} : { cursor }) })
      pages.push(next.ids)
      if (!next.has_more) return pages
      cursor = next.next_cursor
    }
  })

describe("a list", () => {
  it("is empty without blobs", () =>
    withBlobs({}, (service) =>
      Effect.map(service.call("GET", "/v1/blobs"), ({ text }) =>
        expect(text).toBe('{"ids":[],"has_more":false}'),
      ),
    ))

  it("is in the order of the ID's bytes, page by page, each blob once", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const ids = yield* fill(service.engine, 25)
        for (const limit of [1, 7, 24, 25, 26]) {
          const pages = yield* walk(service, { limit: String(limit) })
          expect(pages.flat()).toEqual(ids)
          expect(pages.length).toBe(Math.ceil(25 / limit))
        }
      }),
    ))

  it("has pages of 100 when limit is omitted, zero or negative, and of 10,000 at most", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        yield* fill(service.engine, list_limit_max + 1)
        for (const limit of ["", "0", "-1", "-99999999999"]) {
          const query: Record<string, string> = limit === "" ? {} : { limit }
          expect((yield* page(service, query)).ids.length).toBe(list_limit_default)
        }
        for (const limit of ["10000", "10001", "+99999999999", "9999999999999999999"]) {
          const { ids, has_more } = yield* page(service, { limit })
          expect([ids.length, has_more]).toEqual([list_limit_max, true])
        }
      }),
    ))

  it("keeps the IDs that begin with a prefix, in hex of either case", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const ids = yield* fill(service.engine, 200)
        const [id = ""] = ids
        for (const prefix of ["", "a", "f0", "A", id.slice(0, 31), id]) {
          const pages = yield* walk(service, { prefix, limit: "3" })
          expect(pages.flat()).toEqual(ids.filter((one) => one.startsWith(prefix.toLowerCase())))
        }
      }),
    ))

  it("takes scope=cluster", () =>
    withBlobs({}, (service) =>
      Effect.gen(function* () {
        const ids = yield* fill(service.engine, 3)
        expect((yield* walk(service, { scope: "cluster", limit: "2" })).flat()).toEqual(ids)
      }),
    ))

  for (const [query, field] of [
    ["limit=ten", "query.limit"],
    ["limit=1.5", "query.limit"],
    ["limit=1e3", "query.limit"],
    ["limit=", "query.limit"],
    ["limit=1&limit=2", "query.limit"],
    ["prefix=xy", "query.prefix"],
    [`prefix=${"0".repeat(33)}`, "query.prefix"],
    ["scope=all", "query.scope"],
    ["cursor=AAAA", "query.cursor"],
    ["cursor=%00", "query.cursor"],
    ["cursor=..", "query.cursor"],
    [`cursor=${"A".repeat(64)}`, "query.cursor"],
    [`cursor=${"A".repeat(300)}`, "query.cursor"],
  ] as const) {
    it(`is 400 with ${query.slice(0, 30)}`, () =>
      withBlobs({}, ({ call }) =>
        Effect.map(call("GET", `/v1/blobs?${query}`), ({ status, json }) => {
          expect([status, json.code]).toEqual([400, "INVALID_ARGUMENT"])
          expect(json.detail).toContain(field)
        }),
      ))
  }
})

const key = (fill: number) => new Uint8Array(32).fill(fill)

describe("a cursor", () => {
  it("is good on the node that issued it, also after a restart, and 400 on any other", () =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const engine = memoryEngine()
          const ids = yield* fill(engine, 5)
          const on = (cursor_key: Uint8Array) => (query: Readonly<Record<string, string>>) =>
            Effect.promise(() =>
              withBlobs({ engine, cursor_key }, ({ call }) =>
                call("GET", `/v1/blobs?${new URLSearchParams(query)}`),
              ),
            )
          const first = yield* on(key(1))({ limit: "2" })
          const { next_cursor: cursor } = first.json as unknown as { readonly next_cursor: string }
          const restarted = yield* on(key(1))({ cursor })
          const rest = restarted.json as unknown as Page
          expect(rest.ids.map(hexOf)).toEqual(ids.slice(2))
          const foreign = yield* on(key(2))({ cursor })
          expect([foreign.status, foreign.json.code]).toEqual([400, "INVALID_ARGUMENT"])
        }),
      ),
    ))

  it("opens as it was sealed, in either alphabet of a URL, and in no other form", () => {
    const { seal, open } = cursorsWith(key(3))
    for (let number = 0; number < 200; number++) {
      const sealed = seal(`place ${number}`)
      expect(open(sealed)).toBe(`place ${number}`)
      expect(open(sealed.replaceAll("+", " "))).toBe(`place ${number}`)
      expect(open(sealed.replaceAll("+", "-").replaceAll("/", "_"))).toBe(`place ${number}`)
      for (const at of [0, 10, 21, sealed.length - 5]) {
        const changed = sealed[at] === "A" ? "B" : "A"
        expect(open(sealed.slice(0, at) + changed + sealed.slice(at + 1))).toBeUndefined()
      }
      expect(open(`${sealed}!`)).toBeUndefined()
      expect(open(sealed.slice(0, -4))).toBeUndefined()
    }
  })
})

describe("the key of cursors", () => {
  const opened = (dir: string) =>
    Effect.runPromise(Effect.provide(Cursors, cursors(dir).pipe(Layer.orDie)))

  it("is stored in a private file, and created again if that is damaged", async () => {
    const dir = mkdtempSync(join(tmpdir(), "almanac-cursors-"))
    const path = join(dir, "cursor-key")
    const sealed = (await opened(dir)).seal("here")
    expect(statSync(path).mode & 0o777).toBe(0o600)
    const kept = readFileSync(path, "utf8")
    expect((await opened(dir)).open(sealed)).toBe("here")
    expect(readFileSync(path, "utf8")).toBe(kept)
    for (const damaged of ["", "short", "x".repeat(1000)]) {
      writeFileSync(path, damaged)
      expect((await opened(dir)).open(sealed)).toBeUndefined()
      expect(readFileSync(path, "utf8")).toMatch(/^[0-9a-f]{64}\n$/)
    }
    rmSync(dir, { recursive: true })
  })

  it("is made from the secret of the cluster, where there is one, and not kept", async () => {
    const secret = Redacted.make("s".repeat(32))
    const of = (dir: string, secret: Redacted.Redacted) =>
      Effect.runPromise(Effect.provide(Cursors, cursors(dir, secret).pipe(Layer.orDie)))
    const [one, other] = [1, 2].map(() => mkdtempSync(join(tmpdir(), "almanac-cursors-")))
    const sealed = (await of(one ?? "", secret)).seal("here")
    expect((await of(other ?? "", secret)).open(sealed)).toBe("here")
    const stranger = Redacted.make("t".repeat(32))
    expect((await of(other ?? "", stranger)).open(sealed)).toBeUndefined()
    expect(readdirSync(one ?? "")).toEqual([])
    for (const dir of [one, other]) rmSync(dir ?? "", { recursive: true })
  })
})
