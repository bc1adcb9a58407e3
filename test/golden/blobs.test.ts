/**
 * Golden responses for the lifecycle of a blob. Each request is sent in several ways, which
 * different code handles today; the responses must stay the same once a single implementation
 * handles them all.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { cleanUp, newFolder, type Server, startServer } from "../world/server/server.ts"
import { recorder, type Sent } from "./recording.ts"

let server: Server
beforeAll(async () => {
  server = await startServer(newFolder())
})
afterAll(cleanUp)

/** Sizes in bytes: below and above the limit of small blobs, and above that of one message. */
const sizes = { nothing: 0, small: 1_000, large: 300_000, "very large": 5_000_000 }

const bytesOf = (size: number, way: string) => Buffer.alloc(size, `${way} and ${size} `)

/** Ways to send the same request. */
const ways: Readonly<Record<string, Partial<Sent>>> = {
  plain: {},
  "under an Idempotency-Key": { headers: { "idempotency-key": "golden" } },
  traced: { headers: { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01` } },
  "by a browser": { headers: { origin: "https://elsewhere.example", "accept-encoding": "gzip" } },
}

describe("blobs", () => {
  it.each(Object.entries(sizes))(
    "of %s bytes go through their lifecycle as recorded",
    async (name, size) => {
      const { send, close } = recorder(server.url)
      const authorization = `Bearer ${server.credentials.blob.token}`
      let text = ""
      for (const [way, { headers = {} }] of Object.entries(ways)) {
        const bytes = bytesOf(size, way)
        let id = "none"
        const record = async (
          what: string,
          method: string,
          path: string,
          more: Partial<Sent> = {},
        ) => {
          const all = { authorization, ...headers, ...more.headers }
          const answer = await send({
            ...more,
            method,
            path: path.replace("{id}", id),
            headers: all,
          })
          text += `## ${way}: ${what}\n${answer}\n\n`
        }
        const json = { "content-type": "application/json" }
        const octets = { "content-type": "application/octet-stream" }
        const body = JSON.stringify({ data: bytes.toString("base64"), labels: { a: "b" } })
        await record("put as JSON", "PUT", "/v1/blobs", {
          body,
          headers: json,
          onBody: (text) => {
            id = encodeURIComponent(JSON.parse(text).id.id)
          },
        })
        await record("put as JSON in chunks", "PUT", "/v1/blobs", {
          body,
          headers: json,
          is_chunked: true,
        })
        await record("put as bytes", "POST", "/v1/blobs/stream", { body: bytes, headers: octets })
        await record("put as bytes in chunks", "POST", "/v1/blobs/stream", {
          body: bytes,
          headers: octets,
          is_chunked: true,
        })
        await record("list", "GET", "/v1/blobs?limit=1")
        await record("stat", "GET", "/v1/blobs/{id}/stat")
        await record("get", "GET", "/v1/blobs/{id}")
        await record("head", "HEAD", "/v1/blobs/{id}")
        await record("get as bytes", "GET", "/v1/blobs/{id}", {
          headers: { accept: "application/octet-stream" },
        })
        await record("stream", "GET", "/v1/blobs/{id}/stream")
        const accept = { accept: "application/octet-stream" }
        for (const [what, more] of [
          ["a range", { range: "bytes=1-3" }],
          ["a range of its end", { range: "bytes=-1" }],
          ["a range behind its end", { range: "bytes=9000000-" }],
          ["two ranges", { range: "bytes=0-1,3-4" }],
          ["if none matches", { "if-none-match": "*" }],
          ["if another matches", { "if-match": '"another"' }],
        ] as const) {
          await record(what, "GET", "/v1/blobs/{id}", { headers: { ...accept, ...more } })
        }
        await record("delete", "DELETE", "/v1/blobs/{id}")
        await record("delete again", "DELETE", "/v1/blobs/{id}")
        await record("get what is gone", "GET", "/v1/blobs/{id}")
      }
      close()
      await expect(text).toMatchFileSnapshot(`answers/blobs-${name.replace(" ", "-")}.txt`)
    },
  )
})
