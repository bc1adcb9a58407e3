import { createHash } from "node:crypto"
import { once } from "node:events"
import { createServer, type RequestListener } from "node:http"
import { type AddressInfo, createServer as createSocketServer, type Socket } from "node:net"
import { afterAll, describe, expect, it } from "vitest"
import { loadClient } from "../../bench/blob/load.ts"
import { type BlobOrder, respHead, unique_mark, uniqueName } from "../../bench/blob/request.ts"
import { jsonPut, plainGet, plainPut } from "../../bench/blob/server.ts"

const client = loadClient()
afterAll(client.stop)

interface Listening {
  readonly listen: (port: number, host: string) => unknown
  readonly address: () => string | AddressInfo | null
  readonly close: () => unknown
}

/** Runs `use` against a server on a free port. */
const during = async <A>(server: Listening & NodeJS.EventEmitter, use: (port: number) => A) => {
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  try {
    return await use(typeof address === "object" ? (address?.port ?? 0) : 0)
  } finally {
    server.close()
  }
}

const http = <A>(answer: RequestListener, use: (port: number) => A) =>
  during(createServer(answer), use)

/** A server that passes each received chunk to `take`. */
const sockets = <A>(take: (socket: Socket, data: Buffer) => void, use: (port: number) => A) => {
  const server = createSocketServer((socket) => {
    socket.on("data", (data) => take(socket, data)).on("error", () => {})
  })
  return during(server, use)
}

const order = (port: number, more: Partial<BlobOrder>): BlobOrder => ({
  protocol: "http",
  port,
  requests: [],
  connections: 3,
  seconds: 10,
  runs_max: 30,
  round: 0xabc,
  is_kept: false,
  ...more,
})

/** The bytes that a server received in its PUT requests. */
const seenBy = () => {
  const names: Array<string> = []
  const hashes: Array<string> = []
  const sizes = new Set<number>()
  const listener: RequestListener = (request, response) => {
    const parts: Array<Buffer> = []
    request.on("data", (part) => parts.push(part))
    request.on("end", () => {
      const body = Buffer.concat(parts)
      names.push(request.url ?? "")
      hashes.push(createHash("sha1").update(body).digest("hex"))
      sizes.add(body.length)
      response.writeHead(201, { "content-length": 2 }).end("{}")
    })
  }
  return { names, hashes, sizes, listener }
}

const distinct = (values: ReadonlyArray<string>) => new Set(values).size

describe("a load of puts", () => {
  it.each([4096, 400_000])("gives each of %i bytes a name and a content", async (bytes) => {
    const { names, hashes, sizes, listener } = seenBy()
    const requests = [plainPut("PUT", `/${unique_mark}`)(bytes)]
    const { round } = await http(listener, (port) => client.load(order(port, { requests })))
    expect(round.runs).toBe(30)
    expect([...sizes]).toEqual([bytes])
    expect([names.length, distinct(names), distinct(hashes)]).toEqual([30, 30, 30])
    expect(names.toSorted()).toEqual(
      Array.from({ length: 30 }, (_, n) => `/${uniqueName(0xabc, n)}`).toSorted(),
    )
  })

  it("as JSON holds base64 of as many bytes", async () => {
    const sizes = new Set<number>()
    const contents: Array<string> = []
    const listener: RequestListener = (request, response) => {
      let text = ""
      request.setEncoding("utf8").on("data", (part) => {
        text += part
      })
      request.on("end", () => {
        const { data } = JSON.parse(text)
        sizes.add(Buffer.from(data, "base64").length)
        contents.push(data)
        response.writeHead(200, { "content-length": 0 }).end()
      })
    }
    const requests = [jsonPut("PUT", "/v1/blobs", {})(1000)]
    await http(listener, (port) => client.load(order(port, { requests })))
    expect([...sizes]).toEqual([1000])
    expect(distinct(contents)).toBe(30)
  })

  it("of Redis's is one SET each", async () => {
    const seen: Array<string> = []
    const take = (socket: Socket, data: Buffer) => {
      seen.push(data.toString("latin1"))
      socket.write("+OK\r\n")
    }
    const head = respHead(["SET", unique_mark], 20)
    const requests = [{ head, blob_bytes: 20, form: "plain", tail: "\r\n" } as const]
    const { round } = await sockets(take, (port) =>
      client.load(order(port, { requests, protocol: "resp" })),
    )
    expect(round.runs).toBe(30)
    const name = uniqueName(0xabc, 0)
    const before = `*3\r\n$3\r\nSET\r\n$16\r\n${name}\r\n$20\r\n${name}`
    const first = seen.find((text) => text.includes(name)) ?? ""
    expect(first.slice(0, before.length)).toBe(before)
    expect(first.length).toBe(before.length + 4 + 2)
    expect(first.endsWith("\r\n")).toBe(true)
  })
})

describe("a load of gets", () => {
  const gets = ["a", "b"].map(plainGet(`/${unique_mark}`))

  it("asks for each in turn", async () => {
    const names: Array<string> = []
    const listener: RequestListener = (request, response) => {
      names.push(request.url ?? "")
      response.writeHead(200, { "content-length": 3 }).end("abc")
    }
    await http(listener, (port) => client.load(order(port, { requests: gets })))
    expect([distinct(names), names.filter((name) => name === "/a").length]).toEqual([2, 15])
  })

  const whole = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
  const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
  const of_redis = "$5\r\nhello\r\n"

  it.each([
    ["http", whole],
    ["http", chunked],
    ["http", "HTTP/1.1 204 No Content\r\n\r\n"],
    ["resp", of_redis],
  ] as const)("reads a response of %s in pieces of any size: %j", async (protocol, text) => {
    for (const cut of [1, 17, text.length - 2]) {
      const take = (socket: Socket) => {
        socket.setNoDelay().write(text.slice(0, cut))
        setImmediate(() => socket.write(text.slice(cut)))
      }
      const { round, kept } = await sockets(take, (port) =>
        client.load(order(port, { requests: gets, protocol, is_kept: true })),
      )
      expect(round.runs).toBe(30)
      expect(new Set(kept)).toEqual(new Set([text]))
    }
  })

  it.each([
    ["HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", /404/],
    [`${whole}more`, /more than one answer/],
    ["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", /closed/],
  ])("fails when it is answered %j", async (text, why) => {
    const take = (socket: Socket) => socket.end(text)
    const loading = sockets(take, (port) => client.load(order(port, { requests: gets })))
    await expect(loading).rejects.toThrow(why)
  })

  it("fails when Redis has no such key", async () => {
    const take = (socket: Socket) => void socket.write("$-1\r\n")
    const head = respHead(["GET", "a"])
    const requests = [{ head, blob_bytes: 0, form: "plain", tail: "" } as const]
    const loading = sockets(take, (port) =>
      client.load(order(port, { requests, protocol: "resp" })),
    )
    await expect(loading).rejects.toThrow(/answered/)
  })
})
