import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { createServer, type IncomingMessage, type Server } from "node:http"
import { createServer as createTlsServer } from "node:https"
import { type AddressInfo, connect, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { connect as connectTls } from "node:tls"
import { describe, expect, it, onTestFinished } from "vitest"
import { httpLane, type LaneSetup } from "#adapters/http/lane.ts"
import type { HotRequest, HotResponse } from "#gateway/direct.ts"

const poll = { interval: 5 }

const headOf = (method: string, url: string, ...more: ReadonlyArray<string>) =>
  [`${method} ${url} HTTP/1.1`, "Host: a", ...more, "", ""].join("\r\n")
const get = (url: string, ...more: ReadonlyArray<string>) => headOf("GET", url, ...more)
const put = (url: string, body: string | Buffer) =>
  Buffer.concat([
    Buffer.from(headOf("PUT", url, `Content-Length: ${body.length}`)),
    Buffer.from(body),
  ])

/** Bytes in which none is where another could be. */
const bodyOf = (length: number) => {
  const body = Buffer.alloc(length)
  for (let at = 0; at + 4 <= length; at += 4) body.writeUInt32LE((at * 2_654_435_761) % 2 ** 32, at)
  return body
}
const told = (body: Buffer) => `${body.length} ${createHash("sha256").update(body).digest("hex")}`

/** Calls back with all of a body. */
const gather = (request: HotRequest | IncomingMessage, whole: (body: Buffer) => void) => {
  const pieces: Array<Uint8Array> = []
  request.on("data", (piece: Uint8Array) => pieces.push(piece))
  request.on("end", () => whole(Buffer.concat(pieces)))
}

const answer = (response: HotResponse, text: string) => {
  response.writeHead(200, { "content-length": `${text.length}` })
  response.end(text)
}

/** What a test does with a request on the lane, by the beginning of its URL. */
type Serve = (request: HotRequest, response: HotResponse, plain: () => void) => void

const serves: Readonly<Record<string, Serve>> = {
  hot: ({ method, url }, response) => answer(response, `lane ${method} ${url}`),
  /** Says so later, and then leaves its own request in a bad way. */
  later: ({ pause }, _response, plain) => void Promise.resolve().then(plain).then(pause),
  tasted: (request, _response, plain) => gather(request, plain),
  body: (request, response) =>
    gather(request, (body) => answer(response, `lane ${told(body)} ${request.complete}`)),
}

/** A server with a lane; what comes first to `/held` is handed out as `held`. */
const start = async (
  own: Readonly<Record<string, Serve>> = {},
  rules: Partial<LaneSetup> = {},
  server: Server = createServer(),
) => {
  const on_lane: Array<string> = []
  const on_node: Array<string> = []
  const sockets: Array<Socket> = []
  const held = Promise.withResolvers<Parameters<Serve>>()
  const hold: Serve = (...given) => held.resolve(given)
  const lane = httpLane(server, {
    is_tls: false,
    serve: (request, response, _headers, plain) => {
      const { url = "" } = request
      on_lane.push(url)
      const serve = { ...serves, held: hold, ...own }[url.split("/")[1] ?? ""]
      if (serve === undefined) plain()
      else serve(request, response, plain)
    },
    isForeign: () => false,
    silence_ms: 60_000,
    keep_alive_ms: 60_000,
    patience_ms: 60_000,
    ...rules,
  })
  server.on("request", (request, response) => {
    on_node.push(request.url ?? "")
    gather(request, (body) => {
      const { method, url } = request
      response.end(`node ${method} ${url}${body.length > 0 ? ` ${told(body)}` : ""}`)
    })
  })
  server.on("connection", (socket) => sockets.push(socket))
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  onTestFinished(() => {
    lane.closeAll()
    server.closeAllConnections()
    server.close()
  })
  // A server that listens on a port has an address of this form.
  const { port } = server.address() as AddressInfo
  /** Resolves when the server has read so much of its first connection. */
  const hasRead = (bytes: number) =>
    expect.poll(() => sockets[0]?.bytesRead ?? 0, poll).toBeGreaterThanOrEqual(bytes)
  return { lane, server, port, sockets, on_lane, on_node, hasRead, held: held.promise }
}

/** The bodies of the answers that are there in full. */
const bodiesIn = (text: string) => {
  const bodies: Array<string> = []
  for (let rest = text; ; ) {
    const end = rest.indexOf("\r\n\r\n")
    const length = Number(/^content-length: (\d+)/im.exec(rest.slice(0, end))?.[1] ?? 0)
    const next = end + 4 + length
    if (end < 0 || rest.length < next) return bodies
    bodies.push(rest.slice(end + 4, next))
    rest = rest.slice(next)
  }
}

const talk = (socket: Socket) => {
  const read: Array<Buffer> = []
  socket.on("data", (bytes) => read.push(bytes))
  socket.on("error", () => undefined)
  onTestFinished(() => void socket.destroy())
  const bodies = () => bodiesIn(Buffer.concat(read).toString("latin1"))
  let seen = 0
  /** Resolves when these were answered since the last time, and no others. */
  const answered = async (...expected: ReadonlyArray<string>) => {
    await expect.poll(() => bodies().slice(seen), poll).toEqual(expected)
    seen += expected.length
  }
  return { socket, answered }
}

/** A server with a lane, and a client of it. */
const open = async (...given: Parameters<typeof start>) => {
  const world = await start(...given)
  return { ...world, ...talk(connect({ port: world.port, noDelay: true })) }
}

describe("a connection of the lane", () => {
  it("has its requests answered without Node's server", async () => {
    const { socket, answered, on_node } = await open()
    socket.write(get("/hot/1"))
    await answered("lane GET /hot/1")
    socket.write(headOf("DELETE", "/hot/2"))
    await answered("lane DELETE /hot/2")
    expect(on_node).toEqual([])
  })

  it.each([
    ["is no plain head", get("/hot/2", "X: 1", "X: 2"), ["/hot/1"]],
    ["no route takes", get("/cold/2"), ["/hot/1", "/cold/2"]],
    ["a route leaves later", get("/later/2"), ["/hot/1", "/later/2"]],
  ])("is Node's as of the first request that %s", async (_what, second, on_lane) => {
    const { socket, answered, ...world } = await open()
    socket.write(get("/hot/1"))
    await answered("lane GET /hot/1")
    socket.write(second)
    const url = second.split(" ")[1]
    await answered(`node GET ${url}`)
    socket.write(get("/hot/3"))
    await answered("node GET /hot/3")
    expect([world.on_lane, world.on_node]).toEqual([on_lane, [url, "/hot/3"]])
  })

  it("keeps what is behind a request, and its body, for Node", async () => {
    const { socket, answered, on_node, on_lane } = await open()
    const body = bodyOf(30_000)
    const all = [get("/hot/1"), put("/later/2", body), get("/hot/3"), put("/body/4", body)]
    socket.write(Buffer.concat(all.map((one) => Buffer.from(one))))
    const said = told(body)
    const rest = [`node PUT /later/2 ${said}`, "node GET /hot/3", `node PUT /body/4 ${said}`]
    await answered("lane GET /hot/1", ...rest)
    expect(on_node).toEqual(["/later/2", "/hot/3", "/body/4"])
    expect(on_lane).toEqual(["/hot/1", "/later/2"])
  })

  it("keeps for Node of a body what was not taken of it", async () => {
    const { socket, answered, hasRead } = await open({
      first: (request, _response, plain) => request.on("data", plain),
    })
    const body = bodyOf(200_000)
    const request = put("/first/1", body)
    socket.write(request.subarray(0, 1000))
    await hasRead(1000)
    const taken_bytes = 1000 - (request.length - body.length)
    const more = [put("/first/2", body.subarray(0, 10)), put("/tasted/3", body)]
    socket.write(Buffer.concat([request.subarray(1000), ...more]))
    await answered(
      `node PUT /first/1 ${told(body.subarray(taken_bytes))}`,
      `node PUT /first/2 ${told(body.subarray(0, 10))}`,
      `node PUT /tasted/3 ${told(body)}`,
    )
    const whole = await open()
    whole.socket.write(Buffer.concat([put("/tasted/4", body), put("/tasted/5", body)]))
    await whole.answered("node PUT /tasted/4", `node PUT /tasted/5 ${told(body)}`)
  })

  it("keeps megabytes that wait behind a request for Node", async () => {
    const { socket, answered, server, hasRead, held } = await open()
    // Node's server is slow to take it, too.
    server.prependListener("request", (request) => {
      request.pause()
      setImmediate(() => request.resume())
    })
    const bodies = [1, 100_000, 3_000_000, 70_000, 20].map(bodyOf)
    socket.write(Buffer.concat(bodies.map((body, n) => put(`/held/${n}`, body))))
    const [, , plain] = await held
    await hasRead(64 * 1024)
    plain()
    await answered(...bodies.map((body, n) => `node PUT /held/${n} ${told(body)}`))
  })

  it.each([
    ["a head in two pieces", get("/hot/1", "X: a"), 25, "node GET /hot/1"],
    [
      "a chunked body",
      `${headOf("PUT", "/body/1", "Transfer-Encoding: chunked")}3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`,
      75,
      `node PUT /body/1 ${told(Buffer.from("abcde"))}`,
    ],
  ])("gives %s to Node", async (_what, request, first, said) => {
    const { socket, answered, on_lane, hasRead } = await open()
    socket.write(request.slice(0, first))
    await hasRead(first)
    socket.write(request.slice(first) + get("/hot/2"))
    await answered(said, "node GET /hot/2")
    expect(on_lane).toEqual([])
  })

  it("answers what comes in one segment one by one, in its order", async () => {
    let under_way = 0
    let most = 0
    const { socket, answered, on_node } = await open({
      slow: (request, response) => {
        most = Math.max(most, ++under_way)
        gather(request, () =>
          setImmediate(() => {
            under_way--
            answer(response, `lane PUT ${request.url}`)
          }),
        )
      },
    })
    const kinds = ["slow", "hot", "slow", "body", "slow", "slow", "hot", "hot", "body"]
    const all = Buffer.concat(kinds.map((kind, n) => put(`/${kind}/${n}`, `body ${n}`)))
    const expected = kinds.map((kind, n) =>
      kind === "body" ? `lane ${told(Buffer.from(`body ${n}`))} true` : `lane PUT /${kind}/${n}`,
    )
    for (let times = 0; times < 2; times++) {
      socket.write(all)
      await answered(...expected)
    }
    expect(most).toBe(1)
    expect(on_node).toEqual([])
  })
})

/** A route that tells what it got, and answers when its body has come in full. */
const watchedBody = () => {
  const seen: Array<string> = []
  let request: HotRequest | undefined
  const serve: Serve = (given, response) => {
    request = given
    seen.push(`begun ${given.complete}`)
    given.on("data", (piece) => seen.push(`${Buffer.from(piece).toString()} ${given.complete}`))
    given.on("end", () => {
      seen.push(`end ${given.complete}`)
      answer(response, "lane")
    })
  }
  return { seen, serve, request: () => request }
}

describe("a body on the lane", () => {
  it("comes in its pieces, in their order, and says when it is complete", async () => {
    const { seen, serve } = watchedBody()
    const { socket, answered } = await open({ seen: serve })
    const expected = ["begun false"]
    socket.write(headOf("PUT", "/seen", "Content-Length: 8"))
    for (const [n, piece] of ["ab", "c", "def", "gh"].entries()) {
      await expect.poll(() => seen, poll).toEqual(expected)
      socket.write(piece)
      expected.push(`${piece} ${n === 3}`)
    }
    await answered("lane")
    expect(seen).toEqual([...expected, "end true"])
    socket.write(put("/seen", ""))
    await answered("lane")
    expect(seen.slice(6)).toEqual(["begun true", "end true"])
  })

  it("in many pieces comes as it was sent", async () => {
    const { socket, answered } = await open()
    const body = bodyOf(1_000_000)
    const request = put("/body/1", body)
    for (let at = 0; at < request.length; at += 7001) {
      await new Promise((written) => socket.write(request.subarray(at, at + 7001), written))
    }
    await answered(`lane ${told(body)} true`)
  })

  it("is held back while its request is paused", async () => {
    const { seen, serve, request } = watchedBody()
    const { socket, answered, hasRead } = await open({ seen: serve })
    const head = headOf("PUT", "/seen", "Content-Length: 6")
    socket.write(`${head}a`)
    await expect.poll(() => seen, poll).toEqual(["begun false", "a false"])
    request()?.pause()
    socket.write("bc")
    await hasRead(head.length + 3)
    socket.write(`def${get("/hot/2")}`)
    await hasRead(head.length + 6)
    expect(seen).toHaveLength(2)
    request()?.resume()
    await answered("lane", "lane GET /hot/2")
    const pieces = seen.slice(1, -1).map((one) => one.split(" ")[0])
    expect([pieces.join(""), ...seen.slice(-2)]).toEqual(["abcdef", "def true", "end true"])
  })

  it("is read no further than somebody listens", async () => {
    const { socket, answered, sockets, held } = await open()
    const body = bodyOf(20_000_000)
    socket.write(put("/held", body))
    const [request, response] = await held
    await expect.poll(() => sockets[0]?.isPaused(), poll).toBe(true)
    await expect.poll(() => socket.writableLength, poll).toBeGreaterThan(0)
    expect(sockets[0]?.bytesRead).toBeLessThan(1_000_000)
    serves.body?.(request, response, () => undefined)
    await answered(`lane ${told(body)} true`)
  })

  it("that its route paused for good does not hold up what follows", async () => {
    const { socket, answered, held } = await open()
    socket.write(put("/held", "a"))
    const [request, response] = await held
    request.pause()
    answer(response, "lane")
    await answered("lane")
    socket.write(get("/hot/2"))
    await answered("lane GET /hot/2")
  })

  it("that is resumed in the end leaves what follows in its order", async () => {
    const { socket, answered, hasRead, held } = await open()
    const first = put("/held/1", "a").toString() + get("/hot/2")
    socket.write(first)
    await hasRead(first.length)
    socket.write(get("/hot/3"))
    await hasRead(first.length + get("/hot/3").length)
    const [request, response] = await held
    request.resume()
    answer(response, "lane")
    await answered("lane", "lane GET /hot/2", "lane GET /hot/3")
  })
})

describe("a lane", () => {
  it.each(["retired", "foreign"])("that is %s leaves the next request to Node", async (why) => {
    let is_foreign = false
    const { socket, answered, lane, on_lane } = await open({}, { isForeign: () => is_foreign })
    socket.write(get("/hot/1"))
    await answered("lane GET /hot/1")
    if (why === "retired") lane.retire()
    else is_foreign = true
    socket.write(put("/hot/2", "abc") + get("/hot/3"))
    await answered(`node PUT /hot/2 ${told(Buffer.from("abc"))}`, "node GET /hot/3")
    expect(on_lane).toEqual(["/hot/1"])
  })

  it("tells once which request of it a connection came over with", async () => {
    const { socket, answered, lane, server } = await open()
    const tried: Array<string | undefined> = []
    server.prependListener("request", (request) => {
      for (let times = 0; times < 2; times++) tried.push(lane.takeTried(request.socket)?.url)
    })
    socket.write(put("/tasted/1", "a") + get("/cold/2"))
    await answered("node PUT /tasted/1", "node GET /cold/2")
    expect(tried).toEqual(["/tasted/1", undefined, undefined, undefined])
  })

  it("serves over TLS, and gives to Node what is not plain", async () => {
    const folder = mkdtempSync(join(tmpdir(), "almanac-lane-"))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const [key, cert] = [join(folder, "key"), join(folder, "cert")]
    const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    const files = ["-keyout", key, "-out", cert, "-subj", "/CN=localhost", "-days", "2"]
    execFileSync("openssl", ["req", "-x509", ...kind, ...files], { stdio: "pipe" })
    const server = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) })
    const { port, on_lane } = await start({}, { is_tls: true }, server)
    const { socket, answered } = talk(connectTls({ port, rejectUnauthorized: false }))
    const body = bodyOf(200_000)
    socket.write(Buffer.concat([put("/body/1", body), Buffer.from(get("/hot/2"))]))
    await answered(`lane ${told(body)} true`, "lane GET /hot/2")
    socket.write(Buffer.concat([put("/later/3", body), put("/body/4", body)]))
    await answered(`node PUT /later/3 ${told(body)}`, `node PUT /body/4 ${told(body)}`)
    expect(on_lane).toEqual(["/body/1", "/hot/2", "/later/3"])
  })
})
