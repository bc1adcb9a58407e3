/**
 * GET /v1/blobs/{id}/stream, complete and truncated. Source: document 1 §4 rule 2; DECISIONS,
 * framing.
 */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { get_chunk_bytes_max } from "#schemas/blob-storage/blob.ts"
import { noise, put } from "../../contract/blob-storage/engine-bytes.ts"
import { accept_bytes, type BlobService, withBlobs } from "../../world/blob-storage/service.ts"
import { flipBit, freshFolder, openEngine } from "../../world/blob-storage/volume-folder.ts"

interface Chunk {
  readonly data: string
  readonly final: boolean
}

const chunksOf = (text: string) => {
  expect(text.endsWith("\n")).toBe(true)
  // Each line is a message; the tests check its fields one by one.
  return text
    .slice(0, -1)
    .split("\n")
    .map((line) => JSON.parse(line) as Chunk)
}
const sizeOf = ({ data }: Chunk) => Buffer.from(data, "base64").length

describe("a get stream", () => {
  for (const [size, sizes] of [
    [0, [0]],
    [1, [1]],
    [get_chunk_bytes_max - 1, [get_chunk_bytes_max - 1]],
    [get_chunk_bytes_max, [get_chunk_bytes_max]],
    [get_chunk_bytes_max + 1, [get_chunk_bytes_max, 1]],
    [2 * get_chunk_bytes_max, [get_chunk_bytes_max, get_chunk_bytes_max]],
  ] as const) {
    it(`has ${size} bytes in chunks of ${sizes.join(", ")}, and only the last is final`, () =>
      withBlobs({}, ({ call, engine }) =>
        Effect.gen(function* () {
          const bytes = noise(size, size)
          const { id } = yield* Effect.promise(() => put(engine, bytes))
          const { status, headers, text } = yield* call("GET", `/v1/blobs/${id}/stream`)
          expect([status, headers.get("content-type")]).toEqual([200, "application/x-ndjson"])
          const chunks = chunksOf(text)
          expect(chunks.map(sizeOf)).toEqual(sizes)
          expect(chunks.map(({ final }) => final)).toEqual(
            sizes.map((_, index) => index === sizes.length - 1),
          )
          const joined = Buffer.concat(chunks.map(({ data }) => Buffer.from(data, "base64")))
          expect(joined.equals(bytes)).toBe(true)
          const head = yield* call("HEAD", `/v1/blobs/${id}/stream`)
          expect([head.status, head.text]).toEqual([200, ""])
          expect(head.headers.get("content-type")).toBe("application/x-ndjson")
        }),
      ))
  }
})

/** A blob of three pieces on disk with bit rot in the byte at `position`. */
const withRotten = (
  position: number,
  body: (service: BlobService, id: string) => Effect.Effect<void>,
) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const dir = yield* freshFolder
        const engine = yield* Effect.orDie(openEngine(dir))
        const bytes = noise(1, 2 * get_chunk_bytes_max + 10)
        const { id } = yield* Effect.promise(() => put(engine, bytes))
        flipBit(dir, bytes, position)
        yield* Effect.promise(() => withBlobs({ engine }, (service) => body(service, id)))
      }),
    ),
  )

describe("a get of a copy that rotted", () => {
  const first = 5
  const later = get_chunk_bytes_max + 5

  it("is 404 in every form where the rot is in the first piece", () =>
    withRotten(first, ({ call, engine }, id) =>
      Effect.gen(function* () {
        const { status, json } = yield* call("GET", `/v1/blobs/${id}/stream`)
        expect([status, json.message]).toEqual([404, "blob not found on any node"])
        expect((yield* Effect.promise(engine.usage)).quarantined).toBe(1)
      }),
    ))

  it("ends a stream of chunks with the error in its envelope, and no final chunk", () =>
    withRotten(later, ({ call }, id) =>
      Effect.gen(function* () {
        const { status, headers, text } = yield* call("GET", `/v1/blobs/${id}/stream`)
        expect(status).toBe(200)
        const lines = text
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line))
        expect(lines[0]).toMatchObject({ final: false })
        expect(lines.length).toBe(2)
        expect(lines[1]).toEqual({
          error: {
            code: "NOT_FOUND",
            message: "blob not found on any node",
            detail: expect.stringContaining("corrupt"),
            request_id: headers.get("x-request-id"),
          },
        })
        expect((yield* call("GET", `/v1/blobs/${id}/stream`)).status).toBe(404)
      }),
    ))

  it("is 404 by JSON wherever the rot is: one message is whole or an error", () =>
    withRotten(later, ({ call }, id) =>
      Effect.map(call("GET", `/v1/blobs/${id}`), ({ status, json }) =>
        expect([status, json.code]).toEqual([404, "NOT_FOUND"]),
      ),
    ))

  it("cuts the connection of plain bytes", () =>
    withRotten(later, (service, id) =>
      Effect.gen(function* () {
        const headers = { ...accept_bytes, authorization: "Bearer reader" }
        const response = yield* Effect.promise(() => service.fetch(`/v1/blobs/${id}`, { headers }))
        expect(response.status).toBe(200)
        const torn = yield* Effect.promise(() =>
          response.arrayBuffer().then(
            () => false,
            () => true,
          ),
        )
        expect(torn).toBe(true)
      }),
    ))
})
