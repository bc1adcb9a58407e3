/**
 * Puts whose head announces their size, and a full store. A put that does not fit is rejected
 * before its body arrives; a blob that is already stored gets its usual response. Source:
 * DECISIONS, document 1, same content again, limits not shown.
 */
import { once } from "node:events"
import { request } from "node:http"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { openBlobVolume } from "#adapters/blob-storage/open-volume.ts"
import { noise } from "../contract/blob-storage/engine-bytes.ts"
import {
  type BlobService,
  base64,
  bytes_type,
  json_type,
  lines_type,
  serveBlobs,
} from "../world/blob-storage/service.ts"
import { freshFolder } from "../world/blob-storage/volume-folder.ts"
import { as } from "../world/http.ts"

const mib = 1024 ** 2
const stored = noise(1, 2 * mib)
const other = noise(2, 2 * mib)
const stream_bytes_max = 4 * mib
const path = "/v1/blobs/stream"

/** A store of 3 MiB that holds one blob of 2 MiB. */
const withFull = (body: (service: BlobService) => Promise<void>) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const engine = yield* openBlobVolume({
          dir: yield* freshFolder,
          capacity_bytes: 3 * mib,
          size_max_bytes: stream_bytes_max,
          segment_bytes: 8 * mib,
        })
        const settings = { blob: { stream_bytes_max } }
        const service = yield* serveBlobs({ engine, settings })
        const first = yield* service.call("POST", path, {
          headers: bytes_type,
          body: Buffer.from(stored),
        })
        expect(first.status).toBe(200)
        yield* Effect.promise(() => body(service))
      }),
    ),
  )

const head = (length: number, query = "", ...more: ReadonlyArray<string>) =>
  [
    `POST ${path}${query} HTTP/1.1`,
    "Host: a",
    "Authorization: Bearer writer",
    "Content-Type: application/octet-stream",
    `Content-Length: ${length}`,
    ...more,
    "\r\n",
  ].join("\r\n")

const expecting = "Expect: 100-continue"
const statuses = (text: string) => text.match(/HTTP\/1\.1 \d{3}/g) ?? []

/** Sends the body after the server requests it. */
const sendAsked = async ({ url }: BlobService, body: Uint8Array) => {
  const headers = { ...as("writer"), ...bytes_type, expect: "100-continue" }
  const length = { "content-length": String(body.length) }
  const asking = request(`${url}${path}`, { method: "POST", headers: { ...headers, ...length } })
  asking.flushHeaders()
  await once(asking, "continue")
  const answered = once(asking, "response")
  asking.end(body)
  const [answer] = await answered
  answer.resume()
  return Number(answer.statusCode)
}

describe("a put", () => {
  it("of more than a blob may hold is refused before its bytes come", () =>
    withFull(async ({ raw }) => {
      for (const more of [[], [expecting]]) {
        const answer = await raw(head(stream_bytes_max + 1, "", ...more))
        expect(statuses(answer)).toEqual(["HTTP/1.1 413"])
        expect(answer).toContain("RESOURCE_EXHAUSTED")
      }
    }))

  it("that has no room and can be no repetition is refused before its bytes come", () =>
    withFull(async ({ raw }) => {
      const unknown = "?id=00000000000000000000000000000000"
      for (const more of [[], [expecting]]) {
        expect(statuses(await raw(head(2 * mib + 1, "", ...more)))).toEqual(["HTTP/1.1 429"])
        expect(statuses(await raw(head(2 * mib, unknown, ...more)))).toEqual(["HTTP/1.1 429"])
      }
    }))

  it("that has no room and may be a repetition is asked for its bytes", () =>
    withFull(async (service) => {
      expect(await sendAsked(service, stored)).toBe(200)
      expect(await sendAsked(service, other)).toBe(429)
    }))

  it("of what is stored is a no-op in a full store, in each form", () =>
    withFull(async ({ url }) => {
      const send = async (bytes: Uint8Array, form: string) => {
        const method = form === "json" ? "PUT" : "POST"
        const type = { bytes: bytes_type, json: json_type, lines: lines_type }[form]
        const data = base64(bytes)
        const half = 1024 * 1024
        const message = { data: data.slice(0, half), final: false }
        const last = { data: data.slice(half), final: true }
        const body = {
          bytes: Buffer.from(bytes),
          json: JSON.stringify({ data }),
          lines: `${JSON.stringify(message)}\n${JSON.stringify(last)}\n`,
        }[form]
        const at = form === "json" ? "/v1/blobs" : path
        const headers = { ...as("writer"), ...type }
        const answer = await fetch(`${url}${at}`, { method, headers, body: body ?? "" })
        await answer.arrayBuffer()
        return answer.status
      }
      for (const form of ["bytes", "json", "lines"]) {
        expect([form, await send(stored, form), await send(other, form)]).toEqual([form, 200, 429])
      }
    }))
})
