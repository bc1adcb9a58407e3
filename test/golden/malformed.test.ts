/** Golden responses to malformed and unusual requests, over real connections. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { cleanUp, newFolder, type Server, startServer } from "../world/server/server.ts"
import { exchange } from "./recording.ts"

let server: Server
beforeAll(async () => {
  server = await startServer(newFolder(), { ALMANAC_API__REQUEST_TIMEOUT_SECONDS: "1" })
})
afterAll(cleanUp)

const host = "Host: a\r\n"
const get = (path: string, more = "") => `GET ${path} HTTP/1.1\r\n${host}${more}\r\n`
const put = (more: string, body = "") => `PUT /v1/blobs HTTP/1.1\r\n${host}${more}\r\n${body}`

/** What each connection sends. `/v1/blobs` has its own fast path today, `/livez` has none. */
const cases: Readonly<Record<string, ReadonlyArray<string | Buffer>>> = {
  nothing: [""],
  "an empty line before a request": [`\r\n${get("/livez")}`],
  "a request in three parts": ["GET /liv", "ez HTTP/1.1\r\nHo", `st: a\r\n\r\n`],
  "two requests at once": [get("/livez") + get("/v1/blobs")],
  "a request after one that is refused": [get("/v1/blobs") + get("/livez")],
  "HTTP/1.0": ["GET /livez HTTP/1.0\r\n\r\n"],
  "HTTP/1.0 that keeps its connection": ["GET /livez HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"],
  "HTTP/0.9": ["GET /livez\r\n\r\n"],
  "HTTP/2.0": [`GET /livez HTTP/2.0\r\n${host}\r\n`],
  "the preface of HTTP/2": ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  "no Host": ["GET /livez HTTP/1.1\r\n\r\n"],
  "no Host, of a blob": ["GET /v1/blobs HTTP/1.1\r\n\r\n"],
  "two Hosts": [`GET /livez HTTP/1.1\r\n${host}${host}\r\n`],
  "an absolute address": [get("http://a/livez")],
  "an asterisk": [`OPTIONS * HTTP/1.1\r\n${host}\r\n`],
  "a tunnel": [`CONNECT a:1 HTTP/1.1\r\n${host}\r\n`],
  "an upgrade": [get("/livez", "Connection: upgrade\r\nUpgrade: websocket\r\n")],
  "an upgrade, of a blob": [get("/v1/blobs", "Connection: upgrade\r\nUpgrade: h2c\r\n")],
  "a path with a control character": [get("/v1/blobs/\u0001")],
  "a path with bytes of no UTF-8": [Buffer.from(get("/v1/blobs/\xff"), "latin1")],
  "a path that is escaped wrongly": [get("/v1/blobs/%zz")],
  "a path that goes up": [get("/v1/../livez")],
  "two slashes": [get("//livez")],
  "a fragment": [get("/livez#a")],
  "a space before a colon": [get("/livez", "X : a\r\n")],
  "a folded header": [get("/livez", "X: a\r\n b\r\n")],
  "a bare line feed": [`GET /livez HTTP/1.1\nHost: a\n\n`],
  "a header without a name": [get("/livez", ": a\r\n")],
  "a null byte in a header": [get("/livez", "X: a\0b\r\n")],
  "a header of 20,000 bytes": [get("/livez", `X: ${"x".repeat(20_000)}\r\n`)],
  "200 headers": [get("/livez", Array.from({ length: 200 }, (_, i) => `X-${i}: a\r\n`).join(""))],
  "two tokens": [get("/v1/blobs", "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n")],
  "another scheme": [get("/v1/blobs", "Authorization: Basic YTpi\r\n")],
  "a token with a space": [get("/v1/blobs", "Authorization: Bearer a b\r\n")],
  "Expect: 100-continue": [put("Content-Length: 2\r\nExpect: 100-continue\r\n", "{}")],
  "another Expect": [put("Content-Length: 2\r\nExpect: money\r\n", "{}")],
  "a body without a length": [put("", "{}")],
  "a length that is no number": [put("Content-Length: x\r\n", "{}")],
  "a negative length": [put("Content-Length: -1\r\n", "{}")],
  "two lengths": [put("Content-Length: 2\r\nContent-Length: 3\r\n", "{}")],
  "the same length twice": [put("Content-Length: 2\r\nContent-Length: 2\r\n", "{}")],
  "a length and chunks": [put("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")],
  "an unknown encoding": [put("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n")],
  "chunks in capitals": [put("Transfer-Encoding: Chunked\r\n", "2\r\n{}\r\n0\r\n\r\n")],
  "a chunk whose length is no number": [put("Transfer-Encoding: chunked\r\n", "zz\r\n{}\r\n")],
  "a chunk with an extension": [put("Transfer-Encoding: chunked\r\n", "2;a=b\r\n{}\r\n0\r\n\r\n")],
  "chunks with a trailer": [put("Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\nX: a\r\n\r\n")],
  "a compressed body": [put("Content-Length: 2\r\nContent-Encoding: gzip\r\n", "{}")],
  "a body of a GET": [get("/livez", "Content-Length: 2\r\n"), "{}"],
  "a body that is announced too long": [put("Content-Length: 99999999999\r\n", "{}")],
  "a connection to be closed": [get("/livez", "Connection: close\r\n")],
}

describe("over a connection", () => {
  it("malformed and unusual requests get the recorded responses", async () => {
    // All at once, because most of an exchange is waiting for a connection to stay silent.
    const records = await Promise.all(
      Object.entries(cases).map(
        async ([name, parts]) => `## ${name}\n${await exchange(server.url, parts)}\n\n`,
      ),
    )
    await expect(records.join("")).toMatchFileSnapshot("answers/malformed.txt")
  })
})
