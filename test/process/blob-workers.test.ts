/**
 * A server with several threads that answer requests for blobs: whichever of them has a connection,
 * it is answered as by a server with one.
 */
import assert from "node:assert/strict"
import { connect } from "node:net"
import { setTimeout as pause } from "node:timers/promises"
import { blake3 } from "@napi-rs/blake-hash"
import { afterAll, expect, it } from "vitest"
import { noise } from "../contract/blob-store-bytes.ts"
import { describeWithServer } from "../nats.ts"
import { cleanUp, newFolder, runVerb, type Server, startServer, until } from "./server.ts"

const workers = 4
/** The kernel divides connections by chance: so many nearly always reach a thread, and this one. */
const tries = 6
const mib = 1024 * 1024

const environment = { ALMANAC_SERVICES: '["blob-storage"]', ALMANAC_COMPUTE__KIND: "none" }
const threaded = { ...environment, ALMANAC_BLOB__WORKERS: `${workers}` }

afterAll(cleanUp)

interface Asked {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array
  /** Undefined: with the token that may do everything. */
  readonly token?: string | undefined
}

interface Answered {
  readonly status: number
  readonly headers: ReadonlyArray<string>
  readonly body: Buffer
}

/** One request on a connection of its own, written as bytes; resolves when that has ended. */
const askRaw = ({ url }: Pick<Server, "url">, head: string, body: Uint8Array) =>
  new Promise<Buffer>((resolve, reject) => {
    const parts: Array<Buffer> = []
    const socket = connect({ host: "127.0.0.1", port: Number(new URL(url).port) })
    socket.on("data", (part: Buffer) => parts.push(part))
    socket.on("error", (error) => (parts.length > 0 ? undefined : reject(error)))
    socket.on("close", () => resolve(Buffer.concat(parts)))
    socket.write(head)
    socket.write(body)
    socket.setTimeout(30_000, () => socket.destroy(new Error("no answer in time")))
    socket.on("data", () => {
      const all = Buffer.concat(parts)
      const end = all.indexOf("\r\n\r\n")
      if (end < 0) return
      const length = /\r\ncontent-length: (\d+)/i.exec(all.toString("latin1", 0, end))?.[1]
      if (length === undefined && all.toString("latin1").endsWith("\r\n0\r\n\r\n")) socket.end()
      const is_bodiless = head.startsWith("HEAD") || /^HTTP\/1\.1 (204|304)/.test(`${all}`)
      const bytes = is_bodiless ? 0 : Number(length ?? Number.POSITIVE_INFINITY)
      if (all.length >= end + 4 + bytes) socket.end()
    })
  })

const ask = async (server: Server, asked: Asked): Promise<Answered> => {
  const { method = "GET", path, headers = {}, body = new Uint8Array(0) } = asked
  const token = "token" in asked ? asked.token : server.credentials.blob.token
  const lines = [
    `${method} ${path} HTTP/1.1`,
    "Host: here",
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
    ...(body.length > 0 && !("transfer-encoding" in headers) && !("content-length" in headers)
      ? [`Content-Length: ${body.length}`]
      : []),
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ]
  const all = await askRaw(server, `${lines.join("\r\n")}\r\n\r\n`, body)
  const end = all.indexOf("\r\n\r\n")
  const [status = "", ...rest] = all.toString("latin1", 0, end).split("\r\n")
  return { status: Number(status.split(" ")[1]), headers: rest, body: all.subarray(end + 4) }
}

const changing = /^(date|x-request-id|x-correlation-id|etag-date|connection|keep-alive)$/i
const uuid = /[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g

/** What is the same of two answers to the same request. */
const shapeOf = ({ status, headers, body }: Answered) => {
  const told = headers
    .map((line) => line.split(/: (.*)/s))
    .filter(([name = ""]) => !changing.test(name))
    .map(([name = "", value = ""]) => `${name.toLowerCase()}: ${value.replaceAll(uuid, "ID")}`)
    .sort()
  const is_text = told.includes("content-type: application/json")
  const text = body
    .toString("utf8")
    .replaceAll(uuid, "ID")
    .replaceAll(/1\d{18}/g, "TIME")
    .replaceAll(/"next_cursor":"[^"]+"/g, "next_cursor")
    // Of the first put alone: the others repeat it.
    .replaceAll(/"cursor":\d+,/g, "")
  const lengthless = told.filter((line) => !line.startsWith("content-length"))
  return is_text
    ? { status, headers: lengthless, body: text }
    : { status, headers: told, body: blake3(body).toString("hex") }
}

const idOf = (bytes: Uint8Array) => blake3(bytes).toString("hex").slice(0, 32)

const octets = { "content-type": "application/octet-stream" }
const raw = { accept: "application/octet-stream" }
const json = { "content-type": "application/json" }
const small = noise(1, 4000)
const middle = noise(2, 200_000)
const large = noise(3, 2 * mib + 77)
const absent = "0".repeat(32)

const chunked = (bytes: Uint8Array) =>
  Buffer.concat([
    Buffer.from(`${bytes.length.toString(16)}\r\n`),
    bytes,
    Buffer.from("\r\n0\r\n\r\n"),
  ])
const message = (bytes: Uint8Array, more: object = {}) =>
  Buffer.from(JSON.stringify({ data: Buffer.from(bytes).toString("base64"), ...more }))

/** Each is asked of every thread; the blobs are there already, from the first on. */
const requests: Readonly<Record<string, Asked>> = {
  "a small put": { method: "POST", path: "/v1/blobs/stream", headers: octets, body: small },
  "a put of 200 KB": { method: "POST", path: "/v1/blobs/stream", headers: octets, body: middle },
  "a large put": { method: "POST", path: "/v1/blobs/stream", headers: octets, body: large },
  "a put of unknown length": {
    method: "POST",
    path: "/v1/blobs/stream",
    headers: { ...octets, "transfer-encoding": "chunked" },
    body: chunked(large),
  },
  "a put with a policy": {
    method: "POST",
    path: "/v1/blobs/stream?policy=REPLICATION_POLICY_REPLICA1",
    headers: octets,
    body: noise(9, 100),
  },
  "a put of JSON": { method: "PUT", path: "/v1/blobs", headers: json, body: message(small) },
  "a large put of JSON": { method: "PUT", path: "/v1/blobs", headers: json, body: message(large) },
  "a put of broken JSON": {
    method: "PUT",
    path: "/v1/blobs",
    headers: json,
    body: Buffer.from('{"data":"AAAA"'),
  },
  "a put with a policy that nobody knows": {
    method: "POST",
    path: "/v1/blobs/stream?policy=MANY",
    headers: octets,
    body: small,
  },
  "a put that must be the first": {
    method: "POST",
    path: "/v1/blobs/stream",
    headers: { ...octets, "if-none-match": "*" },
    body: small,
  },
  "a large put that must be the first": {
    method: "POST",
    path: "/v1/blobs/stream",
    headers: { ...octets, "if-none-match": "*" },
    body: large,
  },
  "a body that is too large": {
    method: "PUT",
    path: "/v1/blobs",
    headers: { ...json, "content-length": "999999999" },
    body: Buffer.from("{"),
  },
  "a get of bytes": { path: `/v1/blobs/${idOf(small)}`, headers: raw },
  "a get of many bytes": { path: `/v1/blobs/${idOf(large)}`, headers: raw },
  "a get of JSON": { path: `/v1/blobs/${idOf(small)}` },
  "a get of a range": {
    path: `/v1/blobs/${idOf(large)}`,
    headers: { ...raw, range: "bytes=1000000-2000000" },
  },
  "a get of the end": { path: `/v1/blobs/${idOf(small)}`, headers: { ...raw, range: "bytes=-10" } },
  "a get of no range": {
    path: `/v1/blobs/${idOf(small)}`,
    headers: { ...raw, range: "bytes=9000-" },
  },
  "a get of what is known": {
    path: `/v1/blobs/${idOf(small)}`,
    headers: { ...raw, "if-none-match": `"${idOf(small)}"` },
  },
  "a head": { method: "HEAD", path: `/v1/blobs/${idOf(middle)}`, headers: raw },
  "a stat": { path: `/v1/blobs/${idOf(middle)}/stat` },
  "a stat of nothing": { path: `/v1/blobs/${absent}/stat` },
  "a get of nothing": { path: `/v1/blobs/${absent}`, headers: raw },
  "a get of no ID": { path: "/v1/blobs/abc", headers: raw },
  "a stream of messages": { path: `/v1/blobs/${idOf(small)}/stream` },
  "a list": { path: "/v1/blobs?limit=2" },
  "a delete of nothing": { method: "DELETE", path: `/v1/blobs/${absent}` },
  "another method": { method: "PATCH", path: `/v1/blobs/${absent}` },
  "another path": { path: "/v1/nothing" },
  "the state of the cluster": { path: "/v1/cluster/nodes" },
  "a key of one's own": {
    method: "POST",
    path: "/v1/blobs/stream",
    headers: { ...octets, "idempotency-key": "one" },
    body: small,
  },
  nobody: { path: `/v1/blobs/${idOf(small)}`, headers: raw, token: undefined },
  "nobody who puts": {
    method: "POST",
    path: "/v1/blobs/stream",
    headers: octets,
    body: large,
    token: undefined,
  },
  "a token that is none": { path: `/v1/blobs/${idOf(small)}`, headers: raw, token: "alm_nothing" },
  readiness: { path: "/livez", token: undefined },
}

const answersOf = async (server: Server) => {
  const metrics = await ask(server, {
    path: "/metrics",
    token: server.credentials.admin.token,
  })
  const pattern = /^almanac_blob_worker_answers_total\{worker="(\d+)"\} (\d+)$/gm
  const text = metrics.body.toString("utf8")
  return new Map(Array.from(text.matchAll(pattern), ([, place, count]) => [place, Number(count)]))
}

describeWithServer("a server with four threads for blobs", () => {
  it("answers each request as a server with one does, whichever thread has it", async () => {
    const one = await startServer(newFolder(), environment)
    const many = await startServer(newFolder(), threaded)
    for (const [name, asked] of Object.entries(requests)) {
      const expected = shapeOf(await ask(one, asked))
      for (let time = 0; time < tries; time++) {
        const shape = shapeOf(await ask(many, asked))
        // What was put by the first of them is there for the others.
        assert.deepEqual(shape, expected, `${name}, connection ${time}`)
      }
    }
    const read_token = { one: one.credentials, many: many.credentials }
    const put = { method: "POST", path: "/v1/blobs/stream", headers: octets, body: small }
    const refused = await ask(one, { ...put, token: read_token.one.blob_read.token })
    assert.equal(refused.status, 403)
    for (let time = 0; time < tries; time++) {
      const answer = await ask(many, { ...put, token: read_token.many.blob_read.token })
      assert.deepEqual(shapeOf(answer), shapeOf(refused))
    }
    const answered = await until("answers of each thread to be told", 5000, async () => {
      const counts = await answersOf(many)
      return counts.size === workers - 1 ? counts : undefined
    })
    for (const [place, count] of answered) assert(count > 10, `thread ${place}: ${count}`)
    assert.equal((await answersOf(one)).size, 0)
    assert.deepEqual(await one.stop(), { code: 0, signal: null })
    assert.deepEqual(await many.stop(), { code: 0, signal: null })
  }, 180_000)

  it("shows on every connection at once what was put and deleted on another", async () => {
    const server = await startServer(newFolder(), threaded)
    for (let seed = 100; seed < 130; seed++) {
      const body = noise(seed, seed % 3 === 0 ? 400_000 : 3000)
      const path = `/v1/blobs/${idOf(body)}`
      const put = { method: "POST", path: "/v1/blobs/stream", headers: octets, body }
      assert.equal((await ask(server, put)).status, 200)
      const gets = () => Promise.all([1, 2, 3, 4].map(() => ask(server, { path, headers: raw })))
      for (const { status, body: found } of await gets()) {
        assert.equal(status, 200)
        assert(found.equals(body))
      }
      assert.equal((await ask(server, { method: "DELETE", path })).status, 200)
      for (const { status } of await gets()) assert.equal(status, 404)
    }
    await server.stop()
  }, 120_000)

  it("lets nobody in any more whose token was revoked a moment ago", async () => {
    const server = await startServer(newFolder(), threaded)
    const issue = ["token", "issue", "--name", "reader", "--scope", "blobs:read"]
    const { stdout } = await runVerb(server.data_dir, issue)
    const token = stdout.trim()
    const asked = { path: `/v1/blobs/${absent}`, headers: raw, token }
    for (let time = 0; time < tries; time++) assert.equal((await ask(server, asked)).status, 404)
    await runVerb(server.data_dir, ["token", "revoke", "reader"])
    await pause(300)
    for (let time = 0; time < tries; time++) assert.equal((await ask(server, asked)).status, 401)
    await server.stop()
  }, 120_000)

  it("ends when it is told to, with what is under way on each thread answered", async () => {
    const server = await startServer(newFolder(), threaded)
    const body = noise(77, 48 * mib)
    const put = { method: "POST", path: "/v1/blobs/stream", headers: octets, body }
    assert.equal((await ask(server, put)).status, 200)
    const slow = await Promise.all(
      Array.from({ length: 6 }, async () => {
        const socket = connect({ host: "127.0.0.1", port: Number(new URL(server.url).port) })
        const parts: Array<Buffer> = []
        const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()))
        const head = `GET /v1/blobs/${idOf(body)} HTTP/1.1\r\nHost: a\r\nAccept: ${raw.accept}\r\n`
        socket.write(`${head}Authorization: Bearer ${server.credentials.blob.token}\r\n\r\n`)
        await new Promise<void>((resolve) => {
          socket.once("data", (part: Buffer) => {
            parts.push(part)
            socket.pause()
            resolve()
          })
        })
        socket.on("data", (part: Buffer) => parts.push(part))
        socket.pause()
        return { socket, parts, closed }
      }),
    )
    server.signal("SIGTERM")
    await pause(300)
    for (const { socket } of slow) socket.resume()
    for (const { parts, closed } of slow) {
      await closed
      const all = Buffer.concat(parts)
      assert(all.subarray(all.indexOf("\r\n\r\n") + 4).equals(body))
    }
    assert.deepEqual(await server.ended, { code: 0, signal: null })
  }, 120_000)

  it("shares its port with none but its own threads", async () => {
    const server = await startServer(newFolder(), threaded)
    const port = { ALMANAC_API__BIND_PORT: new URL(server.url).port }
    await expect(startServer(newFolder(), { ...threaded, ...port })).rejects.toThrow(
      /cannot listen on .*another program does/,
    )
    assert.equal((await ask(server, { path: "/livez", token: undefined })).status, 200)
    await server.stop()
  }, 120_000)
})
