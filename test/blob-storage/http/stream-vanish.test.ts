/**
 * Clients that are slow, stop, or disconnect: no partial blob is stored, no other request waits,
 * and nothing stays open. Uses a real volume.
 */
import { connect, type Socket } from "node:net"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { fromEngine } from "#actors/blob-storage/ports/engine.ts"
import { openBlobVolume } from "#adapters/blob-storage/open-volume.ts"
import type { VolumeEngine } from "#volume"
import { noise, parts, put } from "../../contract/blob-storage/engine-bytes.ts"
import {
  type BlobService,
  type BlobSetup,
  base64,
  withBlobs,
} from "../../world/blob-storage/service.ts"
import { freshFolder, segment_bytes } from "../../world/blob-storage/volume-folder.ts"

const path = "/v1/blobs/stream"
const mib = 1024 ** 2

/** The size of the largest blob here, and less than two uploads that stop halfway. */
const capacity_bytes = 40 * mib

/** The largest blob that fits; the rest is for its record and the index. */
const content_bytes = 39 * mib

interface OnDisk extends BlobService {
  readonly engine: VolumeEngine
}

const onDisk = (setup: BlobSetup, body: (service: OnDisk) => Effect.Effect<void>) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const dir = yield* freshFolder
        const options = { dir, capacity_bytes, segment_bytes }
        const engine = yield* Effect.orDie(openBlobVolume(options))
        yield* Effect.promise(() =>
          withBlobs({ ...setup, engine }, (service) => body({ ...service, engine })),
        )
      }),
    ),
  )

/** Waits for a condition, at most as long as a test may take. */
const until = (what: string, holds: () => boolean) =>
  Effect.promise(() => expect.poll(holds, { timeout: 15_000, message: what }).toBe(true))

const nothingStored = ({ engine, inFlight }: OnDisk) =>
  Effect.gen(function* () {
    yield* until("the request is released", () => inFlight() === 0)
    expect((yield* Effect.promise(engine.usage)).blob_count).toBe(0)
    expect(yield* Effect.promise(() => engine.scan(0, 1))).toEqual([])
    // Its space is free again: a blob that needs all of it fits.
    const all = Effect.result(fromEngine(() => put(engine, parts(noise(7, content_bytes), mib))))
    yield* Effect.repeat(all, { until: ({ _tag }) => _tag === "Success", times: 50 })
    expect((yield* Effect.promise(engine.usage)).blob_count).toBe(1)
  })

const head = (type: string, more = "Transfer-Encoding: chunked") =>
  [
    `POST ${path} HTTP/1.1`,
    "Host: a",
    "Authorization: Bearer writer",
    `Content-Type: ${type}`,
    more,
    "\r\n",
  ].join("\r\n")

const framed = (part: string) => `${part.length.toString(16)}\r\n${part}\r\n`

interface Talk {
  readonly socket: Socket
  readonly heard: () => string
}

/** A raw connection that sends only what the test writes. */
const dial = (port: number) =>
  Effect.promise(
    () =>
      new Promise<Talk>((resolve, reject) => {
        const parts: Array<Buffer> = []
        const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true })
        socket.on("data", (part) => parts.push(part))
        socket.on("error", reject)
        socket.once("connect", () => {
          socket.off("error", reject)
          socket.on("error", () => undefined)
          resolve({ socket, heard: () => Buffer.concat(parts).toString("latin1") })
        })
      }),
  )

const say = ({ socket }: Talk, text: string) =>
  Effect.promise(
    () => new Promise<void>((resolve) => socket.write(text, "latin1", () => resolve())),
  )

const part = "x".repeat(mib)
const line = `${JSON.stringify({ data: base64(noise(1, mib)), final: false })}\n`

describe("an upload that is cut off in the middle", () => {
  for (const [form, opening, body] of [
    ["plain bytes in chunks", head("application/octet-stream"), framed(part)],
    [
      "plain bytes with their length",
      head("application/octet-stream", `Content-Length: ${8 * mib}`),
      part,
    ],
    ["chunks of a put stream", head("application/x-ndjson"), framed(line)],
    ["half a message", head("application/x-ndjson"), framed(line.slice(0, 1000))],
  ] as const) {
    it(`leaves nothing of ${form}`, () =>
      onDisk({}, (service) =>
        Effect.gen(function* () {
          const talk = yield* dial(service.port)
          yield* say(talk, opening)
          for (let count = 0; count < 3; count++) yield* say(talk, body)
          yield* until("the request is in flight", () => service.inFlight() === 1)
          talk.socket.destroy()
          yield* nothingStored(service)
        }),
      ))
  }

  it("leaves nothing when it breaks the framing, and is answered", () =>
    onDisk({}, (service) =>
      Effect.gen(function* () {
        const talk = yield* dial(service.port)
        yield* say(talk, head("application/octet-stream") + framed(part))
        yield* say(talk, "no chunk size\r\n")
        yield* until("500 INTERNAL", () =>
          /^HTTP\/1.1 500[\s\S]*"code":"INTERNAL"/.test(talk.heard()),
        )
        talk.socket.destroy()
        yield* nothingStored(service)
      }),
    ))

  it("leaves nothing when the client only stops sending, and is answered", () =>
    onDisk({}, (service) =>
      Effect.gen(function* () {
        const talk = yield* dial(service.port)
        yield* say(talk, head("application/octet-stream") + framed(part))
        talk.socket.end()
        yield* until("500 INTERNAL", () =>
          /^HTTP\/1.1 500[\s\S]*"code":"INTERNAL"/.test(talk.heard()),
        )
        talk.socket.destroy()
        yield* nothingStored(service)
      }),
    ))
})

const any_rate = { body_bytes_per_second_min: 0 }

describe("an upload that stops", () => {
  it("is 504 after the idle deadline, and stores nothing", () =>
    onDisk({ settings: { api: { request_timeout_seconds: 1 } } }, (service) =>
      Effect.gen(function* () {
        const talk = yield* dial(service.port)
        yield* say(talk, head("application/octet-stream") + framed(part))
        yield* until("an answer", () => talk.heard().startsWith("HTTP/1.1 504 "))
        expect(talk.heard()).toContain("DEADLINE_EXCEEDED")
        talk.socket.destroy()
        yield* nothingStored(service)
      }),
    ))

  it("is 408 where bytes come too slowly, and stores nothing", () =>
    onDisk({ settings: { api: { request_timeout_seconds: 1 } } }, (service) =>
      Effect.gen(function* () {
        const talk = yield* dial(service.port)
        yield* say(talk, head("application/octet-stream"))
        const began = performance.now()
        while (performance.now() - began < 15_000 && talk.heard() === "") {
          yield* say(talk, framed("x"))
          yield* Effect.sleep("100 millis")
        }
        expect(talk.heard()).toMatch(/^HTTP\/1\.1 408 [\s\S]*DEADLINE_EXCEEDED/)
        talk.socket.destroy()
        yield* nothingStored(service)
      }),
    ))

  it("is kept for as long as bytes come, however few, where no rate is set", () =>
    onDisk({ settings: { api: { request_timeout_seconds: 1, ...any_rate } } }, (service) =>
      Effect.gen(function* () {
        const talk = yield* dial(service.port)
        yield* say(talk, head("application/octet-stream"))
        const began = performance.now()
        while (performance.now() - began < 2500) {
          yield* say(talk, framed("x"))
          yield* Effect.sleep("100 millis")
        }
        yield* say(talk, "0\r\n\r\n")
        yield* until("an answer", () => talk.heard().startsWith("HTTP/1.1 200 "))
        talk.socket.destroy()
      }),
    ))
})

describe("slow uploads", () => {
  it("block no other request, and are stored in the end", () =>
    onDisk({}, (service) =>
      Effect.gen(function* () {
        const slow = yield* Effect.all(Array.from({ length: 30 }, () => dial(service.port)))
        for (const [at, talk] of slow.entries()) {
          yield* say(talk, head("application/x-ndjson") + framed(`{"data":"${base64(`${at}`)}`))
        }
        yield* until("all are under way", () => service.inFlight() === slow.length)
        const began = performance.now()
        for (let count = 0; count < 20; count++) {
          const { id } = yield* Effect.promise(() => put(service.engine, noise(count, 1000)))
          expect((yield* service.call("GET", `/v1/blobs/${id}`)).status).toBe(200)
        }
        expect(performance.now() - began).toBeLessThan(5000)
        for (const talk of slow) yield* say(talk, `${framed('","final":true}')}0\r\n\r\n`)
        for (const talk of slow) {
          yield* until("an answer", () => talk.heard().startsWith("HTTP/1.1 200 "))
          talk.socket.destroy()
        }
        expect((yield* Effect.promise(service.engine.usage)).blob_count).toBe(50)
      }),
    ))
})

describe("a download whose client vanishes", () => {
  for (const [form, accept] of [
    ["plain bytes", "application/octet-stream"],
    ["chunks", "application/x-ndjson"],
  ] as const) {
    it(`releases the request and the blob's memory of ${form}`, () =>
      onDisk({}, ({ engine, ...service }) =>
        Effect.gen(function* () {
          const { id } = yield* Effect.promise(() =>
            put(engine, parts(noise(1, content_bytes), mib)),
          )
          const { extent_files } = engine.status()
          const path = `GET /v1/blobs/${id}/stream HTTP/1.1\r\nHost: a\r\nAccept: ${accept}\r\n`
          const talk = yield* dial(service.port)
          talk.socket.once("data", () => talk.socket.pause())
          yield* say(talk, `${path}Authorization: Bearer reader\r\n\r\n`)
          yield* until("the blob is read", () => talk.heard().length > 0)
          expect(service.inFlight()).toBe(1)
          yield* Effect.promise(() => engine.delete(id, put.origin, 1000n))
          talk.socket.destroy()
          yield* until("the request is released", () => service.inFlight() === 0)
          // An extent that is still being read would not be overwritten: there would be one more
          // file. Maintenance may have released an empty one in the meantime.
          yield* Effect.promise(() => put(engine, parts(noise(2, content_bytes), mib)))
          expect(engine.status().extent_files).toBeLessThanOrEqual(extent_files)
        }),
      ))
  }
})
