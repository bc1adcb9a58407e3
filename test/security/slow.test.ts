/** Clients that take their time, so that a server holds something for each of them. */
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { createServer } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { Context, Effect, Layer, Schema, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiBuilder, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Needs } from "#gateway/access.ts"
import { appOf } from "#gateway/routes.ts"
import { disconnectStalled } from "#http"
import { type Served, startHttp } from "../world/http.ts"
import { until } from "../world/server/server.ts"

/** More than the system takes in for a connection of loopback. */
const answer_bytes = 32 * 2 ** 20
const piece_bytes = 64 * 1024
const connections = 200
const wait_ms_max = 30_000

const piece = new Uint8Array(piece_bytes)
const counts = { pieces: 0, ended: 0 }

const endpoint = (name: "whole" | "endless" | "dripping") =>
  HttpApiEndpoint.get(name, `/v1/blobs/${name}`, { success: Schema.String }).annotate(
    Needs,
    "public",
  )
const Api = HttpApi.make("slow").add(
  HttpApiGroup.make("slow").add(endpoint("whole"), endpoint("endless"), endpoint("dripping")),
)

const endless = Stream.range(0, Number.MAX_SAFE_INTEGER, 1).pipe(
  Stream.map(() => {
    counts.pieces++
    return piece
  }),
  Stream.ensuring(Effect.sync(() => counts.ended++)),
)

/** Sends a byte now and then, like the keep-alives of a stream of events. */
const dripping = Stream.tick("100 millis").pipe(Stream.map(() => piece.subarray(0, 1)))

const handlers = HttpApiBuilder.group(Api, "slow", (group) =>
  group.handleAll({
    whole: () => Effect.succeed(HttpServerResponse.uint8Array(new Uint8Array(answer_bytes))),
    endless: () => Effect.succeed(HttpServerResponse.stream(endless)),
    dripping: () => Effect.succeed(HttpServerResponse.stream(dripping)),
  }),
)

let served: Served & { readonly stop: () => Promise<void> }
beforeAll(async () => {
  const service = {
    name: "blob-storage",
    api: Api,
    routes: appOf(HttpApiBuilder.layer(Api).pipe(Layer.provide(handlers)), Context.empty()),
  }
  served = await startHttp([service], { settings: { api: { request_timeout_seconds: 1 } } })
})
afterAll(() => served.stop())

/** A client that requests all of these at once, and reads nothing until it resumes. */
const asking = (...paths: ReadonlyArray<string>) => {
  const socket = connect(Number(new URL(served.url).port), "127.0.0.1")
  socket.on("error", () => undefined)
  socket.pause()
  socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`).join(""))
  return socket
}

/** The server's ends of connections with a request. */
const server_ends = new Set<Socket>()
const openEnds = () => [...server_ends].filter(({ destroyed }) => !destroyed).length
const noteRequest = (message: unknown) => {
  // Node publishes these fields with each request that starts.
  const { socket } = message as { readonly socket: Socket }
  if (socket.localPort === Number(new URL(served.url).port)) server_ends.add(socket)
}
beforeAll(() => subscribe("http.server.request.start", noteRequest))
afterAll(() => unsubscribe("http.server.request.start", noteRequest))

/** Reads to the end; answers how many bytes came. */
const drained = async (socket: Socket) => {
  let bytes = 0
  socket.on("data", (part: Buffer) => {
    bytes += part.length
  })
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()))
  socket.resume()
  await closed
  return bytes
}

describe("a client that does not read", () => {
  it("a complete response is cut off, and its memory is freed", async () => {
    const socket = asking("/v1/blobs/whole")
    await until("the server's end", wait_ms_max, () => openEnds() === 1)
    await until("the server's end to be gone", wait_ms_max, () => openEnds() === 0)
    expect(await drained(socket)).toBeLessThan(answer_bytes)
  })

  it("a complete response before a stream is cut off with it", async () => {
    const socket = asking("/v1/blobs/whole", "/v1/blobs/dripping")
    await until("the server's end", wait_ms_max, () => openEnds() === 1)
    await until("the server's end to be gone", wait_ms_max, () => openEnds() === 0)
    socket.destroy()
  })

  it("a whole answer slowly gets all of it", async () => {
    const socket = asking("/v1/blobs/whole")
    let bytes = 0
    const since = performance.now()
    socket.on("data", (part: Buffer) => {
      bytes += part.length
      const is_soon = performance.now() - since < 2500
      if (!is_soon) return
      socket.pause()
      setTimeout(() => socket.resume(), 20)
    })
    socket.resume()
    await until("all of it", wait_ms_max, () => bytes >= answer_bytes)
    socket.destroy()
  })

  it("a complete response too slowly is cut off, even if some of it is always read", async () => {
    const server = createServer((_, response) => response.end(Buffer.alloc(answer_bytes)))
    // Two seconds for all of it, and none without a byte.
    disconnectStalled(server, false, 1, answer_bytes)
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    // A server that listens on a port has an address.
    const { port } = server.address() as AddressInfo
    const socket = connect(port, "127.0.0.1")
    let bytes = 0
    let is_closed = false
    socket.on("error", () => undefined)
    socket.on("close", () => {
      is_closed = true
    })
    socket.on("data", (part: Buffer) => {
      bytes += part.length
      socket.pause()
      setTimeout(() => socket.resume(), 50)
    })
    socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    await until("its end", wait_ms_max, () => is_closed)
    expect(bytes).toBeLessThan(answer_bytes)
    server.close()
  })

  it("a stream pauses its producer, and is cut off", async () => {
    const socket = asking("/v1/blobs/endless")
    await until("its end", wait_ms_max, () => counts.ended === 1)
    // The socket buffers of the system, and one buffer of ours.
    expect(counts.pieces * piece_bytes).toBeLessThan(answer_bytes)
    socket.destroy()
  })
})

describe("many connections", () => {
  it("that send nothing, or little, do not block other callers", async () => {
    const silent = Array.from({ length: connections }, (_, n) => {
      const socket = connect(Number(new URL(served.url).port), "127.0.0.1")
      socket.on("error", () => undefined)
      if (n % 2 === 0) socket.write("GET /v1/blobs HTTP/1.1\r\nHo")
      return socket
    })
    const answer = await served.fetch("/v1/blobs/none")
    expect(answer.status).toBe(404)
    for (const socket of silent) socket.destroy()
  })
})
