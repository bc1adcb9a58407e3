import { once } from "node:events"
import { createServer, type Server } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { describe, expect, it, onTestFinished } from "vitest"
import { httpLane, type LaneSetup } from "#adapters/http/lane.ts"
import type { HotRequest, HotResponse } from "#gateway/direct.ts"

const poll = { interval: 5 }

/** More than the system takes for a client that reads nothing. */
const large_bytes = 20_000_000

const headOf = (method: string, url: string, ...more: ReadonlyArray<string>) =>
  [`${method} ${url} HTTP/1.1`, "Host: a", ...more, "", ""].join("\r\n")
const get = (url: string) => headOf("GET", url)
const bytes = (length: number) => Buffer.alloc(length, "0123456789\r\n\u0000")

const answer = (response: HotResponse, body: string | Uint8Array) => {
  response.writeHead(200, { "content-length": `${body.length}` })
  response.end(body)
}

type Serve = (request: HotRequest, response: HotResponse) => unknown
const hot: Serve = ({ url }, response) => answer(response, `lane ${url}`)
const large: Serve = (_, response) => answer(response, bytes(large_bytes))

const listening = async (server: Server) => {
  const sockets: Array<Socket> = []
  server.on("connection", (socket) => sockets.push(socket))
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  // A server that listens on a port has an address of this form.
  const { port } = server.address() as AddressInfo
  return { server, port, sockets }
}

/** A server whose lane takes whatever is plain, but for `/cold`. */
const start = async (serve: Serve, rules?: Partial<LaneSetup>) => {
  const server = createServer((request, response) => void response.end(`node ${request.url}`))
  const urls: Array<string | undefined> = []
  const lane = httpLane(server, {
    is_tls: false,
    serve: (request, response, _headers, plain) => {
      urls.push(request.url)
      if (request.url === "/cold") plain()
      else serve(request, response)
    },
    isForeign: () => false,
    silence_ms: 60_000,
    keep_alive_ms: 75_000,
    patience_ms: 60_000,
    ...rules,
  })
  return { ...(await listening(server)), lane, urls }
}

/** The same on Node's server, without a lane. */
const startNode = (serve: Serve) =>
  listening(createServer({ keepAliveTimeout: 75_000 }, (...exchange) => serve(...exchange)))

const dial = async (port: number) => {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true })
  await once(socket, "connect")
  const pieces: Array<Buffer> = []
  socket.on("error", () => undefined)
  onTestFinished(() => void socket.destroy())
  return {
    socket,
    /** Reads on from here. */
    read: () => void socket.on("data", (piece) => pieces.push(piece)),
    bytes: () => pieces.reduce((bytes, piece) => bytes + piece.length, 0),
    text: () => Buffer.concat(pieces).toString("latin1"),
    isEnded: () => socket.readableEnded || socket.closed,
  }
}

type Client = Awaited<ReturnType<typeof dial>>

const ask = async (port: number, text: string): Promise<Client> => {
  const client = await dial(port)
  client.read()
  client.socket.write(text)
  return client
}

const hasEnded = ({ isEnded }: Client) => expect.poll(isEnded, poll).toBe(true)
const says = ({ text }: Client, expected: string) => expect.poll(text, poll).toContain(expected)

const masked = (text: string) => text.replaceAll(/^Date: .{29}\r$/gm, "Date: masked\r")

/** All that this server says to a request, and to a second one by which the end of that is seen. */
const wordsOf = async (port: number, request: string) => {
  const client = await ask(port, request)
  await expect.poll(client.bytes, poll).toBeGreaterThan(0)
  client.socket.write(get("/end"))
  await says(client, "lane /end")
  return masked(client.text())
}

type Headers = Parameters<HotResponse["writeHead"]>[1]

const told = (length: number) => ({ "content-length": `${length}`, "X-A": "b" })
const flat = ["content-length", "2", "ETag", '"a"', "x-empty", ""]

describe("an answer of the lane is on the wire what Node's is:", () => {
  it.each<readonly [string, string, number, Headers, string | Uint8Array | undefined]>([
    ["text", "GET", 200, told(5), "hello"],
    ["text beyond ASCII", "GET", 200, told(4), "\u00e9\u00e8"],
    ["an empty one", "GET", 200, told(0), undefined],
    ["a few bytes", "GET", 200, told(5), bytes(5)],
    ["16 KiB", "GET", 206, told(16 * 1024), bytes(16 * 1024)],
    ["a byte more", "GET", 200, told(16 * 1024 + 1), bytes(16 * 1024 + 1)],
    ["100 KiB", "DELETE", 200, told(100 * 1024), bytes(100 * 1024)],
    ["a header beyond ASCII before bytes", "GET", 200, { ...told(3), x: "\u00e9" }, bytes(3)],
    ["a header beyond ASCII before text", "GET", 200, { ...told(3), x: "\u00e9" }, "abc"],
    ["headers in a row", "GET", 404, flat, "ab"],
    ["304", "GET", 304, { etag: '"a"' }, undefined],
    ["204", "GET", 204, {}, undefined],
    ["a status without a name", "GET", 299, told(2), "ab"],
    ["HEAD", "HEAD", 200, told(5), undefined],
    ["HEAD with a body", "HEAD", 200, told(5), "hello"],
    ["a length in other letters", "GET", 200, { "Content-Length": "2" }, "ab"],
  ])("%s", async (_what, method, status, headers, body) => {
    const serve: Serve = (request, response) => {
      if (request.url === "/end") return hot(request, response)
      response.writeHead(status, headers)
      response.end(body)
    }
    const [node, lane] = [await startNode(serve), await start(serve)]
    const words = await wordsOf(lane.port, headOf(method, "/a"))
    expect(words).toBe(await wordsOf(node.port, headOf(method, "/a")))
    expect(lane.urls).toEqual(["/a", "/end"])
  })

  it("pieces, each after the one before it was taken", async () => {
    const pieces = Array.from({ length: 20 }, (_, n) => Buffer.alloc(100_000, n))
    const serve: Serve = (request, response) => {
      if (request.url === "/end") return hot(request, response)
      const left = [...pieces]
      const next = () => {
        const piece = left.shift()
        if (piece === undefined) return response.end("last")
        if (response.write(piece, () => undefined)) next()
      }
      response.on("drain", next)
      response.writeHead(200, told(2_000_004))
      next()
    }
    const [node, lane] = [await startNode(serve), await start(serve)]
    const words = await wordsOf(lane.port, get("/a"))
    // A difference of megabytes is not for reading.
    expect(words === (await wordsOf(node.port, get("/a")))).toBe(true)
    expect(words.indexOf("lastHTTP/1.1")).toBe(words.indexOf("\r\n\r\n") + 4 + 2_000_000)
  })
})

describe("an answer of the lane", () => {
  it.each<readonly [string, Headers]>([
    ["a line break in a value", { "content-length": "1", x: "a\r\nb: c" }],
    ["a line feed in a value, in a row", ["content-length", "1", "x", "a\nb"]],
    ["a character that ends as a line break", { "content-length": "1", x: "a\u010d\u010ab: c" }],
    ["a line break in a name", { "content-length": "1", "x\r\ny": "a" }],
    ["pieces of unknown length", { x: "y" }],
  ])("is refused with %s, and nothing of it is written", async (_what, headers) => {
    let thrown: unknown
    const { port } = await start((_, response) => {
      try {
        response.writeHead(200, headers)
        response.write(bytes(1), () => undefined)
      } catch (cause) {
        thrown = cause
        answer(response, "other")
      }
    })
    const client = await ask(port, get("/"))
    await says(client, "other")
    expect(client.text()).toMatch(/^HTTP\/1\.1 200 OK\r\ncontent-length: 5\r\nDate: [^x]*$/)
    expect(thrown).toBeInstanceOf(Error)
  })

  it.each([
    ["GET", "hello\u00e9", "7", "hello\u00c3\u00a9"],
    ["GET", bytes(3), "3", "012"],
    ["GET", undefined, "0", ""],
    ["HEAD", "hello", "5", ""],
  ])("says its length itself to %s of %s", async (method, body, length, text) => {
    const { port } = await start((request, response) => {
      if (request.url === "/end") return hot(request, response)
      response.writeHead(200, { x: "y" })
      response.end(body)
    })
    const words = await wordsOf(port, headOf(method, "/"))
    const end = "Connection: keep-alive\r\nKeep-Alive: timeout=75\r\n\r\n"
    const head = `HTTP/1.1 200 OK\r\nx: y\r\ncontent-length: ${length}\r\nDate: masked\r\n${end}`
    expect(words.startsWith(`${head}${text}HTTP/1.1 200 OK\r\n`)).toBe(true)
  })

  it("says nothing of the one before it", async () => {
    const { port } = await start(({ url }, response) => {
      if (url === "/a") response.writeHead(404, { "x-a": "b" })
      response.end("ab")
    })
    const client = await ask(port, get("/a") + get("/b"))
    await expect.poll(client.text, poll).toMatch(/ab.*ab$/s)
    expect(client.text().match(/(?<=\.1 )\d+|x-a: .*/g)).toEqual(["404", "x-a: b", "200"])
  })

  it("tells once that its client vanished in the middle", async () => {
    const closed: Array<boolean> = []
    const { port } = await start((_, response) => {
      response.on("close", () => closed.push(response.destroyed))
      response.writeHead(200, told(large_bytes))
      response.write(bytes(large_bytes / 2), () => undefined)
    })
    const client = await ask(port, get("/"))
    await expect.poll(client.bytes, poll).toBeGreaterThan(1000)
    client.socket.destroy()
    await expect.poll(() => closed, poll).toEqual([true])
  })

  it("in pieces tells once that all of it was taken", async () => {
    const closed: Array<string | undefined> = []
    const { port, sockets } = await start(({ url }, response) => {
      response.on("close", () => closed.push(url))
      response.writeHead(200, told(large_bytes))
      response.write(bytes(large_bytes), () => undefined)
      response.end()
    })
    const client = await dial(port)
    client.socket.write(get("/a"))
    await expect.poll(() => sockets[0]?.writableNeedDrain, poll).toBe(true)
    expect(closed).toEqual([])
    client.read()
    await expect.poll(() => closed, poll).toEqual(["/a"])
    client.socket.destroy()
    await expect.poll(() => sockets[0]?.closed, poll).toBe(true)
    expect(closed).toEqual(["/a"])
  })

  it("before the body has come in full ends the connection, and no rest is a request", async () => {
    const { port, sockets, urls } = await start(large)
    const client = await dial(port)
    const rest = get("/smuggled")
    client.socket.write(`${headOf("PUT", "/a", `Content-Length: ${rest.length + 1}`)}.`)
    await expect.poll(() => sockets[0]?.writableLength, poll).toBeGreaterThan(0)
    const before = sockets[0]?.bytesRead
    client.socket.write(rest)
    await expect.poll(() => sockets[0]?.bytesRead, poll).not.toBe(before)
    client.read()
    await hasEnded(client)
    expect(client.bytes()).toBeGreaterThan(large_bytes)
    expect(urls).toEqual(["/a"])
  })
})

describe("a client that does not read", () => {
  it("is cut when its patience is over", async () => {
    const { port, sockets } = await start(large, { patience_ms: 300 })
    const client = await dial(port)
    client.socket.write(get("/"))
    await expect.poll(() => sockets[0]?.writableNeedDrain, poll).toBe(true)
    const started = performance.now()
    await expect.poll(() => sockets[0]?.closed, poll).toBe(true)
    expect(performance.now() - started).toBeGreaterThan(250)
  })

  it("is not cut as long as it reads a little", async () => {
    const { port } = await start(large, { patience_ms: 1000 })
    const client = await dial(port)
    client.socket.write(get("/"))
    // In four seconds all of it.
    const reading = setInterval(() => client.socket.resume(), 50)
    client.socket.on("close", () => clearInterval(reading))
    let read = 0
    client.socket.on("data", (piece) => {
      const quarters = Math.floor(read / 250_000)
      read += piece.length
      if (Math.floor(read / 250_000) > quarters) client.socket.pause()
    })
    await expect.poll(() => read > large_bytes || client.isEnded(), poll).toBe(true)
    expect(read).toBeGreaterThan(large_bytes)
  })

  it("has no more answered than it takes, however much it asks", async () => {
    // All are in one read, lest a head come in two.
    const all = Array.from({ length: 2000 }, (_, n) => `/${1000 + n}`)
    const { port, sockets, urls } = await start(({ url }, response) =>
      answer(response, Buffer.alloc(10_000, url)),
    )
    const client = await dial(port)
    client.socket.write(all.map((url) => get(url)).join(""))
    await expect.poll(() => sockets[0]?.writableNeedDrain, poll).toBe(true)
    expect(sockets[0]?.isPaused()).toBe(true)
    expect(urls.length).toBeLessThan(all.length * 0.9)
    expect(sockets[0]?.writableLength).toBeLessThan(128 * 1024)
    client.read()
    const bodies = () => client.text().split(/HTTP\/1\.1 200 [\s\S]*?\r\n\r\n/)
    const expected = ["", ...all.map((url) => url.repeat(2000))].join()
    await expect.poll(() => bodies().join() === expected, { interval: 200 }).toBe(true)
  })
})

/** Answers `/held` only when it is told to. */
const holding = () => {
  const held: Array<() => void> = []
  const serve: Serve = (request, response) => {
    const go = () => hot(request, response)
    return request.url === "/held" ? held.push(go) : go()
  }
  return { held, serve }
}

describe("a connection of the lane", () => {
  it.each(["/a", "/held"])("of which half is left ends as at Node's server: %s", async (url) => {
    const said: Array<string> = []
    for (const begin of [startNode, start]) {
      const { held, serve } = holding()
      const { port, sockets } = await begin(serve)
      const client = await ask(port, get(url))
      client.socket.end()
      await expect.poll(() => sockets[0]?.readableEnded, poll).toBe(true)
      for (const release of held) release()
      await hasEnded(client)
      await expect.poll(() => sockets[0]?.closed, poll).toBe(true)
      said.push(masked(client.text()))
    }
    expect(said[1]).toBe(said[0])
  })

  it("that says nothing is told so by Node's server, and not heard any more", async () => {
    const { port, server, sockets, urls } = await start(hot, { silence_ms: 100 })
    server.on("clientError", (error, socket) => socket.end(`${Reflect.get(error, "code")}`))
    const client = await ask(port, "")
    await hasEnded(client)
    expect(client.text()).toBe("ERR_HTTP_REQUEST_TIMEOUT")
    client.socket.write(get("/late"))
    await expect.poll(() => sockets[0]?.bytesRead, poll).toBeGreaterThan(0)
    expect(urls).toEqual([])
  })

  it("ends when it is idle for too long, unlike one whose request is under way", async () => {
    const { held, serve } = holding()
    const { port } = await start(serve, { keep_alive_ms: 100 })
    const busy = await ask(port, get("/held"))
    const idle = await ask(port, get("/a"))
    await says(idle, "lane /a")
    const started = performance.now()
    await hasEnded(idle)
    expect(performance.now() - started).toBeGreaterThan(1000)
    expect(busy.isEnded()).toBe(false)
    held[0]?.()
    await says(busy, "lane /held")
  })

  it("is closed with the idle ones, or with all, unless it is Node's by now", async () => {
    const { held, serve } = holding()
    const { port, lane } = await start(serve)
    const silent = await ask(port, "")
    const idle = await ask(port, get("/a"))
    const cold = await ask(port, get("/cold"))
    await says(idle, "lane /a")
    await says(cold, "node /cold")
    const [first, second] = [await ask(port, get("/held")), await ask(port, get("/held"))]
    await expect.poll(() => held, poll).toHaveLength(2)
    lane.closeIdle()
    for (const client of [silent, idle]) await hasEnded(client)
    for (const go of held.splice(0, 1)) go()
    await expect.poll(() => first.bytes() + second.bytes(), poll).toBeGreaterThan(0)
    lane.closeAll()
    for (const client of [first, second]) await hasEnded(client)
    cold.socket.write(get("/a"))
    await says(cold, "node /a")
  })

  it("leaves nothing behind", async () => {
    const { port, lane, server, sockets } = await start(hot)
    const node = await startNode(hot)
    for (let n = 0; n < 20; n++) {
      const client = await ask(port, get(n % 2 === 0 ? "/a" : "/cold"))
      await says(client, n % 2 === 0 ? "lane /a" : "node /cold")
      client.socket[n % 3 === 0 ? "destroy" : "end"]()
    }
    const open = () => new Promise((resolve) => server.getConnections((_, count) => resolve(count)))
    await expect.poll(open, poll).toBe(0)
    let times = 0
    for (const socket of sockets) Object.assign(socket, { destroy: () => times++ })
    lane.closeAll()
    expect(times).toBe(0)
    await says(await ask(port, get("/cold")), "node /cold")
    await says(await ask(node.port, get("/cold")), "lane /cold")
    const [gone, own] = [sockets.at(-1), node.sockets.at(-1)]
    for (const event of ["data", "end", "drain", "close", "error", "timeout"]) {
      expect([event, gone?.listenerCount(event)]).toEqual([event, own?.listenerCount(event)])
    }
  })
})
