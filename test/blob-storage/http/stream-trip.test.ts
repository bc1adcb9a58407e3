/**
 * Round trips: a blob put in any form reads back the same in every form. Properties print their
 * seed on failure.
 */
import { Effect, Struct } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import {
  accept_bytes,
  type BlobService,
  base64,
  bytes_type,
  type Called,
  hexOf,
  json_type,
  lines_type,
  withBlobs,
} from "../../world/blob-storage/service.ts"

interface Blob {
  readonly bytes: Uint8Array
  readonly labels: Readonly<Record<string, string>>
  readonly policy: string
}

const cut = (bytes: Uint8Array, piece: number) => {
  const count = Math.max(1, Math.ceil(bytes.length / piece))
  return Array.from({ length: count }, (_, at) => bytes.subarray(at * piece, (at + 1) * piece))
}

const chunksOf = ({ bytes, labels, policy }: Blob, piece: number) =>
  cut(bytes, piece).map((data, at, all) => ({
    ...(at === 0 ? { policy, labels } : {}),
    data: base64(data),
    final: at === all.length - 1,
  }))

const encoded = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*A-Z]/g, (char) =>
    /[A-Z]/.test(char) ? char : `%${char.charCodeAt(0).toString(16)}`,
  )

/** Every way to put a blob. */
const puts: Readonly<Record<string, (service: BlobService, blob: Blob) => Effect.Effect<Called>>> =
  {
    json: ({ call }, { bytes, labels, policy }) =>
      call("PUT", "/v1/blobs", {
        headers: json_type,
        body: JSON.stringify({ data: base64(bytes), labels, policy }),
      }),
    lines: ({ call }, blob) =>
      call("POST", "/v1/blobs/stream", {
        headers: lines_type,
        body: chunksOf(blob, 7)
          .map((chunk) => `${JSON.stringify(chunk)}\n`)
          .join(""),
      }),
    array: ({ call }, blob) =>
      call("POST", "/v1/blobs/stream", {
        headers: json_type,
        body: JSON.stringify(chunksOf(blob, 1000)),
      }),
    raw: ({ call }, { bytes, labels, policy }) =>
      call("POST", `/v1/blobs/stream?policy=${policy}`, {
        headers: {
          ...bytes_type,
          ...Object.fromEntries(
            Object.entries(labels).map(([name, value]) => [
              `x-label-${encoded(name)}`,
              encoded(value),
            ]),
          ),
        },
        body: Uint8Array.from(bytes),
      }),
  }

const read = ({ fetch }: BlobService, path: string, headers: Record<string, string> = {}) =>
  Effect.promise(async () => {
    const response = await fetch(path, { headers: { ...headers, authorization: "Bearer reader" } })
    return { response, body: Buffer.from(await response.arrayBuffer()) }
  })

const labelsIn = (headers: Headers) =>
  Object.fromEntries(
    [...headers].flatMap(([name, value]) =>
      name.startsWith("x-label-")
        ? [[decodeURIComponent(name.slice("x-label-".length)), decodeURIComponent(value)]]
        : [],
    ),
  )

/** Every way to get a blob, with the fields that it returns. */
const gets: Readonly<
  Record<string, (service: BlobService, id: string) => Effect.Effect<Partial<Blob>>>
> = {
  json: (service, id) =>
    Effect.map(read(service, `/v1/blobs/${id}`), ({ body }) => {
      const { data, meta } = JSON.parse(body.toString())
      return { bytes: Buffer.from(data, "base64"), labels: meta.labels, policy: meta.policy }
    }),
  lines: (service, id) =>
    Effect.map(read(service, `/v1/blobs/${id}/stream`), ({ body }) => {
      const chunks = body
        .toString()
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line))
      return { bytes: Buffer.concat(chunks.map(({ data }) => Buffer.from(data, "base64"))) }
    }),
  raw: (service, id) =>
    Effect.map(read(service, `/v1/blobs/${id}`, accept_bytes), ({ response, body }) => ({
      bytes: body,
      labels: labelsIn(response.headers),
    })),
  raw_stream: (service, id) =>
    Effect.map(read(service, `/v1/blobs/${id}/stream`, accept_bytes), ({ body }) => ({
      bytes: body,
    })),
  stat: (service, id) =>
    Effect.map(read(service, `/v1/blobs/${id}/stat`), ({ body }) => {
      const { labels, policy } = JSON.parse(body.toString()).meta
      return { labels, policy }
    }),
}

/** Names that every form can carry: lower case, because HTTP headers are case-insensitive. */
const name = fc
  .string({ unit: "grapheme", maxLength: 8 })
  .filter((text) => text === text.toLowerCase())
const value = fc.string({ unit: "grapheme", maxLength: 12 })
const blob: fc.Arbitrary<Blob> = fc.record({
  bytes: fc.oneof(fc.uint8Array({ maxLength: 60 }), fc.uint8Array({ maxLength: 4000 })),
  labels: fc.dictionary(name, value, { maxKeys: 4 }),
  policy: fc
    .constantFrom("NONE", "REPLICA2", "REPLICA3")
    .map((kind) => `REPLICATION_POLICY_${kind}`),
})

const forget = ({ engine }: BlobService, id: string) =>
  // The ID comes from a response of this server.
  engine.delete(id as BlobId, { actor: "tester", request_id: "", correlation_id: "" }, 1000n)

/** The response to a put without the fields that differ from put to put. */
const reported = ({ json }: Called) => {
  const meta = Struct.omit(json.meta ?? {}, ["created_at", "modified_at"])
  return { id: hexOf(json.id), size: json.size, meta }
}

describe("a blob", () => {
  it(
    "comes out of every form as it went in by any",
    () =>
      withBlobs({}, (service) =>
        Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(blob, async (given) => {
              const answers: Array<ReturnType<typeof reported>> = []
              for (const [form, send] of Object.entries(puts)) {
                const answered = await Effect.runPromise(send(service, given))
                expect([form, answered.status, answered.json.detail]).toEqual([
                  form,
                  200,
                  undefined,
                ])
                const answer = reported(answered)
                answers.push(answer)
                for (const [way, get] of Object.entries(gets)) {
                  const got = await Effect.runPromise(get(service, answer.id))
                  const { bytes = given.bytes } = got
                  expect([form, way, Buffer.from(bytes).equals(given.bytes)]).toEqual([
                    form,
                    way,
                    true,
                  ])
                  const { labels = given.labels, policy = given.policy } = got
                  expect([form, way, labels, policy]).toEqual([
                    form,
                    way,
                    given.labels,
                    given.policy,
                  ])
                }
                await forget(service, answer.id)
              }
              for (const answer of answers) expect(answer).toEqual(answers[0])
            }),
            { numRuns: 40 },
          ),
        ),
      ),
    60_000,
  )
})
