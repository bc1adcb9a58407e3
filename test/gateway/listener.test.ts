import { X509Certificate } from "node:crypto"
import { once } from "node:events"
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { Agent, request as plainRequest } from "node:http"
import { type RequestOptions, request } from "node:https"
import { connect, createServer, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { connect as connectTls } from "node:tls"
import { Cause, Effect, Exit, Scope } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { healthService } from "#gateway/system/health.ts"
import { certificate } from "../world/certificate.ts"
import { as, type Served, serveHttp, startHttp, until } from "../world/http.ts"
import { type Counts, probe } from "./probe.ts"

describe("TLS with client certificates", () => {
  const folder = mkdtempSync(join(tmpdir(), "almanac-tls-"))
  const at = (name: string) => join(folder, name)
  const signed = (name: string, by: string) =>
    certificate({ folder, name, by, for: "DNS:localhost,IP:127.0.0.1" })

  let served: Served & { readonly stop: () => Promise<void> }
  let mute: Socket
  beforeAll(async () => {
    for (const name of ["ours", "theirs"]) certificate({ folder, name })
    signed("server", "ours")
    signed("client", "ours")
    signed("stranger", "theirs")
    const tls = { cert: at("server.pem"), key: at("server.key"), client_ca: at("ours.pem") }
    served = await startHttp([probe("blob-storage", "/v1/blobs")], { settings: { tls } })
    mute = connect(served.port, "127.0.0.1").on("error", () => undefined)
  })
  afterAll(async () => {
    await served.stop()
    rmSync(folder, { recursive: true })
  })

  const get = (options: RequestOptions) =>
    new Promise<{ readonly status: number | undefined; readonly body: string }>(
      (resolve, reject) => {
        const url = `${served.url}/v1/blobs`
        const requests = request(
          url,
          { ca: readFileSync(at("ours.pem")), ...options },
          (answer) => {
            const chunks: Array<Buffer> = []
            answer.on("data", (chunk: Buffer) => chunks.push(chunk))
            answer.on("end", () =>
              resolve({ status: answer.statusCode, body: Buffer.concat(chunks).toString() }),
            )
          },
        )
        requests.on("error", reject)
        requests.end()
      },
    )
  const credentials = (name: string) => ({
    cert: readFileSync(at(`${name}.pem`)),
    key: readFileSync(at(`${name}.key`)),
  })

  it("a client certificate of our authority names the caller", async () => {
    const { status, body } = await get(credentials("client"))
    expect(status).toBe(200)
    expect(JSON.parse(body).actor).toContain("CN=client")
  })

  it("without a certificate a token is needed, and is enough", async () => {
    expect((await get({})).status).toBe(401)
    const { status, body } = await get({ headers: as("reader") })
    expect([status, JSON.parse(body).actor]).toEqual([200, "reader"])
  })

  it("connections beyond the limit receive their response over TLS too", async () => {
    const tls = { cert: at("server.pem"), key: at("server.key") }
    const settings = { tls, api: { max_connections: 1 } }
    const full = await startHttp([probe("blob-storage", "/v1/blobs")], { settings })
    const first = connectTls({ port: full.port, rejectUnauthorized: false })
    await once(first, "secureConnect")
    expect((await get({ port: full.port, headers: as("reader") })).status).toBe(503)
    first.destroy()
    const status = async () => (await get({ port: full.port, headers: as("reader") })).status
    await expect.poll(status, { timeout: 10_000 }).toBe(200)
    await full.stop()
  })

  it("a token goes before a certificate", async () => {
    const { status } = await get({ ...credentials("client"), headers: as("unknown") })
    expect(status).toBe(401)
  })

  it("a certificate of another authority is rejected", async () => {
    await expect(get(credentials("stranger"))).rejects.toThrow()
  })

  it.each([
    ["TLSv1.1", "refused"],
    ["TLSv1.2", "TLSv1.2"],
    ["TLSv1.3", "TLSv1.3"],
  ] as const)("of a client that speaks %s at most is %s", async (maxVersion, spoken) => {
    const found = await new Promise((resolve) => {
      const socket = connectTls({
        host: "127.0.0.1",
        port: served.port,
        ca: readFileSync(at("ours.pem")),
        // Such a client also offers older versions, with ciphers that OpenSSL disables by default.
        minVersion: "TLSv1",
        maxVersion,
        ciphers: "DEFAULT@SECLEVEL=0",
      })
      socket.on("secureConnect", () => {
        resolve(socket.getProtocol())
        socket.destroy()
      })
      socket.on("error", () => resolve("refused"))
    })
    expect(found).toBe(spoken)
  })

  it("plain HTTP on the port is not answered", async () => {
    await expect(fetch(served.url.replace("https", "http"))).rejects.toThrow()
  })

  it("a client that never shakes hands is cut off as one that sends no head", async () => {
    mute.resume()
    if (!mute.closed) await once(mute, "close")
  }, 60_000)

  it("exchanged files are served without a restart, once they fit each other", async () => {
    const give = (name: string) => {
      for (const end of ["pem", "key"]) copyFileSync(at(`${name}.${end}`), at(`given.${end}`))
    }
    give("server")
    const tls = { cert: at("given.pem"), key: at("given.key") }
    const listening = await startHttp([], { settings: { tls } })
    const read = () =>
      new Promise((resolve, reject) => {
        const options = { port: listening.port, rejectUnauthorized: false }
        const socket = connectTls(options, () => {
          resolve(socket.getPeerCertificate().subject.CN)
          socket.destroy()
        })
        socket.on("error", reject)
      })
    expect(await read()).toBe("server")
    const { validTo } = new X509Certificate(readFileSync(tls.cert))
    expect(listening.certificateEnds()).toBe(Date.parse(validTo) / 1000)

    copyFileSync(at("client.pem"), tls.cert)
    await expect.poll(() => listening.logged.join(), { timeout: 10_000 }).toContain("still served")
    expect(await read()).toBe("server")
    give("client")
    await expect.poll(read, { timeout: 10_000 }).toBe("client")
    // OpenSSL accepts a certificate with a key of another type, but then the handshake fails.
    certificate({ folder, name: "rsa", key_options: ["-newkey", "rsa:2048"] })
    const failures = () => listening.logged.filter((line) => line.includes("still served")).length
    const before = failures()
    copyFileSync(at("rsa.pem"), tls.cert)
    await expect.poll(failures, { timeout: 10_000 }).toBeGreaterThan(before)
    expect(await read()).toBe("client")
    give("rsa")
    await expect.poll(read, { timeout: 10_000 }).toBe("rsa")
    writeFileSync(tls.key, "")
    await listening.stop()
  })

  it("files that cannot be read stop the start with one line", async () => {
    const tls = { cert: at("none.pem"), key: at("server.key") }
    const started = serveHttp([], { settings: { tls } })
    const exit = await Effect.runPromiseExit(Effect.scoped(started))
    const cause = Exit.isFailure(exit) ? String(Cause.squash(exit.cause)) : ""
    expect(cause).toContain(`tls.cert: cannot read ${at("none.pem")}`)
  })
})

describe("listening", () => {
  it("on a port that is taken fails with one line that says what to do", async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve))
    const address = other.address()
    const bind_port = typeof address === "object" && address ? address.port : 0
    const exit = await Effect.runPromiseExit(
      Effect.scoped(serveHttp([], { settings: { api: { bind_port } } })),
    )
    other.close()
    const cause = Exit.isFailure(exit) ? String(Cause.squash(exit.cause)) : ""
    expect(cause).toMatch(
      new RegExp(`cannot listen on 127.0.0.1:${bind_port}: .*set api.bind_port.*EADDRINUSE`),
    )
  })

  it("on another machine's address fails with one line that says what to do", async () => {
    const exit = await Effect.runPromiseExit(
      Effect.scoped(serveHttp([], { settings: { api: { bind_host: "192.0.2.1" } } })),
    )
    const cause = Exit.isFailure(exit) ? String(Cause.squash(exit.cause)) : ""
    expect(cause).toMatch(/cannot listen on 192.0.2.1:.*Set api.bind_host.*EADDRNOTAVAIL/)
  })
})

describe("more connections than the listener takes", () => {
  const spare = 64
  const health = healthService({ services: [], metrics: Effect.succeed("") })
  const silent: Array<Socket> = []
  const connected = async (served: Served) => {
    const socket = connect(served.port, "127.0.0.1")
    socket.on("error", () => undefined)
    silent.push(socket)
    await once(socket, "connect")
    return socket
  }
  const figure = async (name: string) => {
    const text = await Effect.runPromise(PrometheusMetrics.format())
    return Number(new RegExp(`^${name}(?:{})? (\\S+)$`, "m").exec(text)?.[1])
  }
  const refused = () => figure("almanac_http_connections_refused_total")
  let served: Served & { readonly stop: () => Promise<void> }
  beforeAll(async () => {
    served = await startHttp([probe("blob-storage", "/v1/blobs"), health], {
      settings: { api: { max_connections: 3 } },
      internal: {
        prefix: "/internal",
        upgrade: () => undefined,
        close: () => undefined,
        request: (_, response) => void response.end("a node"),
      },
    })
    for (let n = 0; n < 3; n++) await connected(served)
  })
  afterAll(async () => {
    for (const socket of silent) socket.destroy()
    await served.stop()
  })

  it("are asked to retry, in the format of their request", async () => {
    const before = await refused()
    const answer = await served.fetch("/v1/blobs", { headers: as("reader") })
    expect([answer.status, (await answer.json()).code]).toEqual([503, "UNAVAILABLE"])
    expect(answer.headers.get("retry-after")).toBe("1")
    expect(answer.headers.get("connection")).toBe("close")
    expect((await refused()) - before).toBe(1)
    expect(await figure("almanac_http_connections_limit")).toBe(3)
    expect(await figure("almanac_http_connections")).toBeGreaterThanOrEqual(3)
  })

  it("serve only probes, once each, and requests of nodes", async () => {
    const answer = await served.fetch("/livez?a")
    expect([answer.status, answer.headers.get("connection")]).toEqual([200, "close"])
    expect(await (await served.fetch("/internal/v1/x")).text()).toBe("a node")
  })

  it("are closed where they are too many for that too, and others come in after them", async () => {
    const before = await refused()
    const all = await Promise.all(Array.from({ length: spare }, () => connected(served)))
    const late = await connected(served)
    late.resume()
    await once(late, "close")
    expect((await refused()) - before).toBe(1)
    for (const socket of [...silent.slice(0, 3), ...all]) socket.destroy()
    const status = async () => (await served.fetch("/v1/blobs", { headers: as("reader") })).status
    await expect.poll(status, { timeout: 10_000 }).toBe(200)
  })
})

describe("stopping", () => {
  const start = async (counts: Counts) => {
    const scope = Effect.runSync(Scope.make())
    const services = [probe("blob-storage", "/v1/blobs", counts)]
    const served = await Effect.runPromise(Scope.provide(serveHttp(services), scope))
    return { served, stop: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
  }

  it("lets requests finish, ends event streams and idle connections, takes no more", async () => {
    const { served, stop } = await start({ bytes: 0, ended: 0 })
    const idle = await served.fetch("/v1/blobs", { headers: as("reader") })
    await idle.text()
    const events = await served.fetch("/v1/blobs/events")
    const stream = events.text()
    const slow = served.fetch("/v1/blobs/slow?ms=1500")
    await until(() => served.inFlight() === 2)
    const started = performance.now()
    const stopped = stop()
    // The stream ends before the slow response arrives.
    expect(await Promise.race([stream, slow])).toBeTypeOf("string")
    expect((await stream).length).toBeGreaterThan(0)
    expect((await slow).status).toBe(200)
    await stopped
    expect(performance.now() - started).toBeLessThan(7000)
    await expect(served.fetch("/none")).rejects.toThrow()
  })

  it("does not wait for a connection that never asked anything", async () => {
    const { served, stop } = await start({ bytes: 0, ended: 0 })
    const silent = connect(Number(new URL(served.url).port), "127.0.0.1")
    silent.on("error", () => undefined)
    await once(silent, "connect")
    const started = performance.now()
    await stop()
    expect(performance.now() - started).toBeLessThan(7000)
  })

  it("cuts off after its grace what does not end", async () => {
    const counts = { bytes: 0, ended: 0 }
    const { served, stop } = await start(counts)
    const slow = served.fetch("/v1/blobs/slow?ms=60000").then(({ status }) => status)
    const half = connect(Number(new URL(served.url).port), "127.0.0.1")
    half.on("error", () => undefined)
    half.write("GET /v1/blobs HTTP/1.1\r\n")
    await until(() => served.inFlight() === 1)
    const started = performance.now()
    await stop()
    const took_ms = performance.now() - started
    expect(took_ms).toBeGreaterThan(7500)
    expect(took_ms).toBeLessThan(20_000)
    expect(counts.ended).toBe(1)
    expect([503, "gone"]).toContain(await slow.catch(() => "gone"))
  })

  it("answers on while it drains, and ends each connection with its next answer", async () => {
    const { served, stop } = await start({ bytes: 0, ended: 0 })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const ask = async () => {
      const sent = plainRequest(`${served.url}/v1/blobs`, { agent, headers: as("reader") })
      const answered = once(sent, "response")
      sent.end()
      const [response] = await answered
      response.resume()
      await once(response, "end")
      return [response.statusCode, response.headers.connection]
    }
    expect(await ask()).toEqual([200, "keep-alive"])
    const draining = Effect.runPromise(served.drain(1))
    for (let times = 0; times < 3; times++) expect(await ask()).toEqual([200, "close"])
    agent.destroy()
    await draining
    await stop()
    await expect(served.fetch("/none")).rejects.toThrow()
  })

  it("stops draining at a second signal", async () => {
    const { served, stop } = await start({ bytes: 0, ended: 0 })
    const before = process.listeners("SIGTERM")
    const draining = Effect.runPromise(served.drain(600))
    const added = () => process.listeners("SIGTERM").filter((one) => !before.includes(one))
    await expect.poll(() => added().length).toBe(1)
    for (const heard of added()) {
      process.off("SIGTERM", heard)
      heard("SIGTERM")
    }
    await draining
    await stop()
  })
})
