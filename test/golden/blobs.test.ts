/**
 * The life of blobs over HTTP, recorded: each request goes in several ways, which different code
 * answers today, and must be answered in the same way after that code changes.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { cleanUp, newFolder, type Server, startServer } from "../process/server.ts"
import { recorder, type Sent } from "./recording.ts"

let server: Server
beforeAll(async () => {
  server = await startServer(newFolder())
})
afterAll(cleanUp)

/** Below and above what is stored in the log, and above what one message holds. */
const sizes = { nothing: 0, small: 1_000, large: 300_000, "very large": 5_000_000 }

const bytesOf = (size: number, way: string) => Buffer.alloc(size, `${way} and ${size} `)

/** How a request goes, beside what it asks. */
const ways: Readonly<Record<string, Partial<Sent>>> = {
  plain: {},
  "under an Idempotency-Key": { headers: { "idempotency-key": "golden" } },
  traced: { headers: { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01` } },
  "by a browser": { headers: { origin: "https://elsewhere.example", "accept-encoding": "gzip" } },
}

describe("blobs", () => {
  it.each(Object.entries(sizes))("of %s bytes live as it was recorded", async (name, size) => {
    const { send, close } = recorder(server.url)
    const authorization = `Bearer ${server.credentials.blob.token}`
    let text = ""
    for (const [way, { headers = {} }] of Object.entries(ways)) {
      const bytes = bytesOf(size, way)
      let id = "none"
      const asked = async (
        what: string,
        method: string,
        path: string,
        more: Partial<Sent> = {},
      ) => {
        const all = { authorization, ...headers, ...more.headers }
        const answer = await send({ ...more, method, path: path.replace("{id}", id), headers: all })
        text += `## ${way}: ${what}\n${answer}\n\n`
      }
      const json = { "content-type": "application/json" }
      const octets = { "content-type": "application/octet-stream" }
      const body = JSON.stringify({ data: bytes.toString("base64"), labels: { a: "b" } })
      await asked("put as JSON", "PUT", "/v1/blobs", {
        body,
        headers: json,
        onBody: (text) => {
          id = encodeURIComponent(JSON.parse(text).id.id)
        },
      })
      await asked("put as JSON in chunks", "PUT", "/v1/blobs", {
        body,
        headers: json,
        is_chunked: true,
      })
      await asked("put as bytes", "POST", "/v1/blobs/stream", { body: bytes, headers: octets })
      await asked("put as bytes in chunks", "POST", "/v1/blobs/stream", {
        body: bytes,
        headers: octets,
        is_chunked: true,
      })
      await asked("list", "GET", "/v1/blobs?limit=1")
      await asked("stat", "GET", "/v1/blobs/{id}/stat")
      await asked("get", "GET", "/v1/blobs/{id}")
      await asked("head", "HEAD", "/v1/blobs/{id}")
      await asked("get as bytes", "GET", "/v1/blobs/{id}", {
        headers: { accept: "application/octet-stream" },
      })
      await asked("stream", "GET", "/v1/blobs/{id}/stream")
      const accept = { accept: "application/octet-stream" }
      for (const [what, more] of [
        ["a range", { range: "bytes=1-3" }],
        ["a range of its end", { range: "bytes=-1" }],
        ["a range behind its end", { range: "bytes=9000000-" }],
        ["two ranges", { range: "bytes=0-1,3-4" }],
        ["if none matches", { "if-none-match": "*" }],
        ["if another matches", { "if-match": '"another"' }],
      ] as const) {
        await asked(what, "GET", "/v1/blobs/{id}", { headers: { ...accept, ...more } })
      }
      await asked("delete", "DELETE", "/v1/blobs/{id}")
      await asked("delete again", "DELETE", "/v1/blobs/{id}")
      await asked("get what is gone", "GET", "/v1/blobs/{id}")
    }
    close()
    await expect(text).toMatchFileSnapshot(`answers/blobs-${name.replace(" ", "-")}.txt`)
  })
})
