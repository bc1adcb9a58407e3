import { once } from "node:events"
import { createServer, type IncomingMessage } from "node:http"
import { type Duplex, duplexPair } from "node:stream"
import { describe, expect, it } from "vitest"
import { plainHeads } from "#adapters/http/plain-head.ts"
import { type Seeded, seeded } from "../process/seeded.ts"

const seed = Number(process.env.ALMANAC_SEED ?? 20_261_126)

const head_bytes_max = 16 * 1024

const bytesOf = (text: string) => Buffer.from(text, "latin1")
const readAlone = (text: string) => plainHeads()(bytesOf(text))
const headOf = (...lines: ReadonlyArray<string>) => [...lines, "", ""].join("\r\n")
const get = (...more: ReadonlyArray<string>) => headOf("GET /a HTTP/1.1", "Host: b", ...more)
const put = (...more: ReadonlyArray<string>) => headOf("PUT /a HTTP/1.1", "Host: b", ...more)
const charsOf = (text: string) => text.split("")
const many = (count: number) => Array.from({ length: count }, (_, n) => `X-${n}: ${n}`)
/** A head of so many bytes. */
const large = (bytes: number) => get(`X: ${"x".repeat(bytes - get("X: ").length)}`)

describe("a plain head", () => {
  it.each([
    ["GET", "/v1/blobs/a?b=c%20d", undefined],
    ["HEAD", "/", undefined],
    ["DELETE", "//a/../b;c=1,2:@~+-_.", undefined],
    ["PUT", "/v1/blobs", 5],
    ["POST", "/v1/blobs/stream?", 0],
  ] as const)("of a %s is read", (method, url, length) => {
    const told = length === undefined ? [] : [`Content-Length: ${length}`]
    const lines = ["HoSt: b:80", ...told, "X-Empty:", "X-A: \t a \tb\t ", "Connection: Keep-Alive"]
    const text = headOf(`${method} ${url} HTTP/1.1`, ...lines)
    expect(readAlone(`${text}hello\r\n\r\n`)).toEqual({
      method,
      url,
      headers: {
        host: "b:80",
        ...(length !== undefined && { "content-length": `${length}` }),
        "x-empty": "",
        "x-a": "a \tb",
        connection: "Keep-Alive",
      },
      head_bytes: text.length,
      body_bytes: length ?? 0,
    })
  })

  it("is read with the headers of the one before it, and with others in between", () => {
    const read = plainHeads()
    const told = (text: string) => {
      const head = read(bytesOf(text))
      return head && [head.method, head.url, head.headers, head.head_bytes, head.body_bytes]
    }
    const first = headOf("GET /1 HTTP/1.1", "Host: b")
    const second = headOf("DELETE /22 HTTP/1.1", "Host: b")
    const other = headOf("POST /3 HTTP/1.1", "Host: c", "Content-Length: 7")
    const broken = headOf("GET /4 HTTP/1.1", "Host : c")
    for (let times = 0; times < 2; times++) {
      expect(told(first)).toEqual(["GET", "/1", { host: "b" }, first.length, 0])
      expect(told(second)).toEqual(["DELETE", "/22", { host: "b" }, second.length, 0])
      // The same headers do not fit each method.
      expect(told(headOf("PUT /1 HTTP/1.1", "Host: b"))).toBeUndefined()
      const headers = { host: "c", "content-length": "7" }
      expect(told(other)).toEqual(["POST", "/3", headers, other.length, 7])
      expect(told(other.replace("POST", "HEAD"))).toBeUndefined()
      for (let again = 0; again < 2; again++) expect(told(broken)).toBeUndefined()
    }
  })

  it("has 16 KiB and 64 headers at most", () => {
    expect(readAlone(large(head_bytes_max))?.head_bytes).toBe(head_bytes_max)
    // Host is one of them.
    expect(Object.keys(readAlone(get(...many(63)))?.headers ?? {})).toHaveLength(64)
  })

  it("is found wherever its end is, and whatever follows it", () => {
    const body = bytesOf("\r\n\r\nGET /b HTTP/1.1\r\nHost: c\r\n\r\n\u0000\u00ff")
    for (let bytes = 1000; bytes <= 1050; bytes++) {
      const read = plainHeads()(Buffer.concat([bytesOf(large(bytes)), body]))
      expect([read?.url, read?.head_bytes, read?.body_bytes]).toEqual(["/a", bytes, 0])
    }
  })
})

const lengths = ["+5", "0x5", "5, 5", "5,5", "-1", "", "5 5", "5.0", "1e1", "0".repeat(16), "\t"]

const odd_heads: ReadonlyArray<readonly [what: string, text: string]> = [
  ["HTTP/1.0", headOf("GET /a HTTP/1.0", "Host: b")],
  ["HTTP/2", headOf("GET /a HTTP/2", "Host: b")],
  ["a version in lower case", headOf("GET /a http/1.1", "Host: b")],
  ["no version", headOf("GET /a", "Host: b")],
  ["a method in lower case", headOf("get /a HTTP/1.1", "Host: b")],
  ["another method", headOf("PATCH /a HTTP/1.1", "Host: b", "Content-Length: 0")],
  ["OPTIONS", headOf("OPTIONS /a HTTP/1.1", "Host: b")],
  ["CONNECT", headOf("CONNECT /a HTTP/1.1", "Host: b")],
  ["no header at all", headOf("GET /a HTTP/1.1")],
  ["no Host", headOf("GET /a HTTP/1.1", "Accept: b")],
  ["two of a header", get("X: 1", "X: 1")],
  ["two of a header in different case", get("x-a: 1", "X-A: 2")],
  ["two Hosts", get("host: c")],
  ["two lengths", put("Content-Length: 5", "Content-Length: 5")],
  ["a folded header", get("X: 1", " 2")],
  ["a header folded with a tab", get("X: 1", "\t2")],
  ["a folded first header", headOf("GET /a HTTP/1.1", " Host: b", "Host: b")],
  ["line feeds alone", get("X: 1").replaceAll("\r\n", "\n")],
  ["a line feed alone between headers", get("X: 1\nY: 2")],
  ["a line feed alone at the end", "GET /a HTTP/1.1\r\nHost: b\n\r\n"],
  ["a carriage return alone", get("X: 1\rY: 2")],
  ["two carriage returns", get("X: 1\r")],
  ["a space before the colon", get("X : 1")],
  ["a tab before the colon", get("X\t: 1")],
  ["a name that is empty", get(": 1")],
  ["a line without a colon", get("X")],
  ...charsOf("_ !#$%&'*+.^`|~()/;<=>?@[]{}\"\\\u0000\u007f\u00e9").map(
    (odd) => [`${JSON.stringify(odd)} in a name`, get(`X${odd}Y: 1`)] as const,
  ),
  ...charsOf("\u0000\u0001\u0008\u000b\u000c\u001b\u007f\u0080\u00a0\u00e9\u00ff").map(
    (odd) => [`${JSON.stringify(odd)} in a value`, get(`X: 1${odd}2`)] as const,
  ),
  ...charsOf("\"<>\\^`{|}#!$'()*[]\t\u0000\u007f\u00e9 ").map(
    (odd) => [`${JSON.stringify(odd)} in a URL`, get().replace("/a", `/a${odd}b`)] as const,
  ),
  ["an absolute URL", get().replace("/a", "http://b/a")],
  ["an authority for a URL", get().replace("/a", "b:80")],
  ["an asterisk for a URL", get().replace("/a", "*")],
  ["an empty URL", get().replace("/a", "")],
  ["two spaces before the URL", get().replace("GET ", "GET  ")],
  ["two spaces behind the URL", get().replace("/a ", "/a  ")],
  ["a space behind the version", get().replace("1.1", "1.1 ")],
  ["a space before the method", ` ${get()}`],
  ["an empty line before it", `\r\n${get()}`],
  ["Transfer-Encoding", put("Transfer-Encoding: chunked")],
  ["Transfer-Encoding beside a length", put("Content-Length: 5", "Transfer-Encoding: chunked")],
  ["Transfer-Encoding: identity", get("transfer-encoding: identity")],
  ["Expect", put("Content-Length: 5", "Expect: 100-continue")],
  ["Upgrade", get("Upgrade: websocket")],
  ["HTTP2-Settings", get("HTTP2-Settings: AAMAAABk")],
  ["TE", get("TE: trailers")],
  ["Trailer", get("Trailer: X")],
  ["Keep-Alive", get("Keep-Alive: 300")],
  ["Proxy-Connection", get("Proxy-Connection: keep-alive")],
  ...["close", "Close", "upgrade", "keep-alive, close", "keep-alive, X", ""].map(
    (value) => [`Connection: ${value}`, get(`Connection: ${value}`)] as const,
  ),
  ...["GET", "HEAD", "DELETE"].flatMap((method) =>
    [0, 5].map((length) => {
      const text = headOf(`${method} /a HTTP/1.1`, "Host: b", `Content-Length: ${length}`)
      return [`a length of ${length} on ${method}`, text] as const
    }),
  ),
  ["no length on PUT", put()],
  ["no length on POST", put().replace("PUT", "POST")],
  ...lengths.map(
    (length) => [`a length of "${length}"`, put(`Content-Length: ${length}`)] as const,
  ),
  ["no end", get().slice(0, -2)],
  ["no end of the last line feed", get().slice(0, -1)],
  ["nothing", ""],
  ["a head of a byte more than 16 KiB", large(head_bytes_max + 1)],
  ["a head of 64 KiB", large(4 * head_bytes_max)],
  ["65 headers", get(...many(64))],
]

describe("a head is left to Node that has", () => {
  it.each(odd_heads)("%s", (_what, text) => {
    expect(readAlone(text)).toBeUndefined()
    // Nor is it taken for what the one before it said.
    const read = plainHeads()
    expect(read(bytesOf(get()))).toBeDefined()
    expect(read(bytesOf(text))).toBeUndefined()
  })
})

const plain_heads = [
  get("User-Agent: curl/8", "Accept: */*"),
  headOf("HEAD /v1/blobs/a?x=1 HTTP/1.1", "host: b", "Range: bytes=0-1", "Connection: keep-alive"),
  headOf("DELETE /v1/%41 HTTP/1.1", "Host: [::1]:80", "Authorization: Bearer a.b_c"),
  put("Content-Type: application/json", "Content-Length: 12"),
  headOf("POST /v1/blobs/stream?a HTTP/1.1", "Content-Length:30", "Host: b", "X-Label-A: \t b "),
] as const

const odd_lines = [
  "Transfer-Encoding: chunked",
  "Content-Length: 3",
  "Content-Length: 3 ",
  "Content-Length:\t3\t",
  "Content-Length: 03",
  "Content-Length : 3",
  "Connection: close",
  "Connection: keep-alive",
  "Connection: KEEP-ALIVE ",
  "Connection: x-b",
  "Expect: 100-continue",
  "Upgrade: h2c",
  "Set-Cookie: a=b",
  "Cookie: a=b; c=d",
  "__proto__: 1",
  "Constructor: 1",
  "Host:",
  "Host: c",
  "X_Y: 1",
  "X-Y: \u00e9",
  " folded: 1",
  "\tfolded",
  "X-Empty:",
  "Content-Length-: 3",
  "-: 1",
  ": 1",
  "",
] as const

const odd_bytes = charsOf("\r\n\t\u0000\u000b\u007f\u0080\u00a0\u00ff :;,-_/?#%+.0159aAzZ\"'(){}")

/** Changes the head in one way. */
const changed = ({ pick, between }: Seeded, text: string): string => {
  const [first = "", ...lines] = text.split("\r\n")
  const at = between(0, text.length)
  const line = between(0, Math.max(0, lines.length - 3))
  const withLines = (...all: ReadonlyArray<string>) => [first, ...all].join("\r\n")
  const byte = odd_bytes[between(0, odd_bytes.length - 1)]
  const ways = [
    () => text.slice(0, at) + byte + text.slice(at),
    () => text.slice(0, at) + text.slice(at + 1),
    () => text.slice(0, at) + byte + text.slice(at + 1),
    () => withLines(...lines.slice(0, line), pick(odd_lines), ...lines.slice(line)),
    () => withLines(...lines.slice(0, line), ...lines.slice(line, line + 1), ...lines.slice(line)),
    () => withLines(...lines.slice(line, -2), ...lines.slice(0, line), "", ""),
    () => text.slice(0, at) + text.slice(at, at + 4).toUpperCase() + text.slice(at + 4),
    () => withLines(...lines.slice(0, line), `X-Random: ${between(0, 9)}`, ...lines.slice(line)),
  ] as const
  return pick(ways)()
}

/** What Node's parser made of the requests of one connection. */
interface Told {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly headers: Readonly<Record<string, string>>
  body_bytes: number
}

const last_url = "/last"
/** Only the beginning of a larger body is sent. */
const sent_bytes_max = 64 * 1024

/** Sends the head, a body of this length, and one more request by which the body's end is told. */
const nodeReader = () => {
  const exchanges = new WeakMap<Duplex, { readonly told: Array<Told>; readonly done: () => void }>()
  const server = createServer({ maxHeaderSize: head_bytes_max }, (request, response) => {
    const exchange = exchanges.get(request.socket)
    const { method, url } = request
    const told: Told = { method, url, headers: flat(request), body_bytes: 0 }
    exchange?.told.push(told)
    request.on("data", (bytes: Buffer) => {
      told.body_bytes += bytes.length
      if (told.body_bytes === sent_bytes_max) exchange?.done()
    })
    request.on("end", () => response.end())
    if (url === last_url) exchange?.done()
  })
  server.on("clientError", (_, socket) => exchanges.get(socket)?.done())
  return async (head: Buffer, body_bytes: number): Promise<ReadonlyArray<Told>> => {
    const [client, theirs] = duplexPair()
    const told: Array<Told> = []
    const ended = new Promise<void>((done) => exchanges.set(theirs, { told, done }))
    server.emit("connection", theirs)
    const body = Buffer.alloc(Math.min(body_bytes, sent_bytes_max), "\r\n\r\n: ")
    client.resume()
    client.write(Buffer.concat([head, body, bytesOf(get().replace("/a", last_url))]))
    await ended
    const closed = once(theirs, "close")
    client.destroy()
    theirs.destroy()
    await closed
    return told
  }
}

/** Of `set-cookie` alone Node makes a list. */
const flat = ({ headers }: IncomingMessage) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))

describe("heads of all kinds", () => {
  it(`mean to Node what they are taken for (seed ${seed})`, async () => {
    const random = seeded(seed)
    const askNode = nodeReader()
    const read = plainHeads()
    const heads_total = 3000
    let taken = 0
    for (let n = 0; n < heads_total; n++) {
      let text: string = random.pick(plain_heads)
      for (let times = random.between(1, 3); times > 0; times--) text = changed(random, text)
      const bytes = bytesOf(text)
      const found = read(bytes)
      expect(found, JSON.stringify(text)).toEqual(plainHeads()(bytes))
      if (found === undefined) continue
      taken++
      const { method, url, headers, head_bytes, body_bytes } = found
      const told = await askNode(bytes.subarray(0, head_bytes), body_bytes)
      const is_whole = body_bytes < sent_bytes_max
      const sent = { method, url, headers, body_bytes: is_whole ? body_bytes : sent_bytes_max }
      expect(told[0], JSON.stringify(text)).toEqual(sent)
      const urls = is_whole ? [url, last_url] : [url]
      expect(
        told.map((one) => one.url),
        JSON.stringify(text),
      ).toEqual(urls)
    }
    expect(taken / heads_total).toBeGreaterThan(0.05)
    expect(taken / heads_total).toBeLessThan(0.8)
  })
})
