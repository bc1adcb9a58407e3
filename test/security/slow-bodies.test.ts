/** Slow bodies of every kind: how long a connection stays open. Source: decision 0186. */
import { connect } from "node:net"
import { Context, Effect, Layer, Schema, Stream } from "effect"
import { Multipart } from "effect/http"
import {
  HttpApi,
  HttpApiBuilder,
  HttpApiEndpoint,
  HttpApiGroup,
  HttpApiSchema,
} from "effect/http-api"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Needs } from "#gateway/access.ts"
import { Streamed } from "#gateway/limits.ts"
import { appOf } from "#gateway/routes.ts"
import { type Served, startHttp } from "../world/http.ts"
import { wrongEnvelope } from "./api-document.ts"

const deadline_s = 1
const drip_ms = 50
const ends_ms_max = 8000
/** Five times the minimum rate, for longer than the deadline. */
const honest_piece = "x".repeat(4096)
const pieces = 30

const groupOf = (base: `/${string}`) =>
  HttpApiGroup.make("slow").add(
    HttpApiEndpoint.post("json", base, {
      payload: Schema.Struct({ text: Schema.String }),
      success: Schema.Struct({ length: Schema.Int }),
    }).annotate(Needs, "public"),
    HttpApiEndpoint.post("form", `${base}/form`, {
      payload: Schema.Struct({ file: Multipart.FilesSchema }).pipe(HttpApiSchema.asMultipart()),
      success: Schema.String,
    }).annotate(Needs, "public"),
    HttpApiEndpoint.post("stream", `${base}/stream`, {
      payload: HttpApiSchema.StreamUint8Array(),
      success: Schema.Struct({ length: Schema.Int }),
    })
      .annotate(Needs, "public")
      .annotate(Streamed, true),
    HttpApiEndpoint.post("secret", `${base}/secret`, { success: Schema.String }).annotate(
      Needs,
      "authenticated",
    ),
  )

const serviceOf = (name: string, base: `/${string}`) => {
  const api = HttpApi.make(name).add(groupOf(base))
  const handlers = HttpApiBuilder.group(api, "slow", (group) =>
    group.handleAll({
      json: ({ payload }) => Effect.succeed({ length: payload.text.length }),
      form: () => Effect.succeed("taken"),
      stream: ({ payload }) =>
        Stream.runFold(
          payload,
          () => 0,
          (sum, part) => sum + part.length,
        ).pipe(
          Effect.orDie,
          Effect.map((length) => ({ length })),
        ),
      secret: () => Effect.succeed("never"),
    }),
  )
  const layer = HttpApiBuilder.layer(api).pipe(Layer.provide(handlers))
  return { name, api, routes: appOf(layer, Context.empty()) }
}

let served: Served & { readonly stop: () => Promise<void> }
beforeAll(async () => {
  const services = [serviceOf("blob-storage", "/v1/blobs"), serviceOf("shares", "/v1/shares")]
  const api = { request_timeout_seconds: deadline_s }
  served = await startHttp(services, { settings: { api } })
})
afterAll(() => served.stop())

/** Sends `head`, then `piece` every `drip_ms` until the connection ends; returns all responses. */
const dripping = (head: string, piece: string, count = Infinity) =>
  new Promise<{ answer: string; took_ms: number }>((resolve) => {
    const began = performance.now()
    const socket = connect(Number(new URL(served.url).port), "127.0.0.1")
    let answer = ""
    let sent = 0
    socket.on("error", () => undefined)
    socket.on("data", (part: Buffer) => {
      answer += part.toString()
    })
    socket.write(head)
    const drip = setInterval(() => {
      if (sent++ < count) socket.write(piece)
    }, drip_ms)
    const patience = setTimeout(() => socket.destroy(), ends_ms_max)
    socket.on("close", () => {
      clearInterval(drip)
      clearTimeout(patience)
      resolve({ answer, took_ms: performance.now() - began })
    })
  })

const head = (path: string, ...lines: ReadonlyArray<string>) =>
  `${[`POST ${path} HTTP/1.1`, "Host: a", ...lines].join("\r\n")}\r\n\r\n`

const length = "Content-Length: 99999"
const json = "Content-Type: application/json"
const chunked = "Transfer-Encoding: chunked"
const octets = "Content-Type: application/octet-stream"
const form = "Content-Type: multipart/form-data; boundary=x"
const part = '--x\r\nContent-Disposition: form-data; name="file"; filename=a\r\n\r\n'

const kinds = [
  ["JSON of a stated length", head("/v1/blobs", json, length), "x"],
  ["JSON of another service", head("/v1/shares", json, length), "x"],
  ["JSON in chunks", head("/v1/shares", json, chunked), "1\r\nx\r\n"],
  ["a multipart form", head("/v1/shares/form", form, length) + part, "x"],
  ["a raw stream", head("/v1/blobs/stream", octets, length), "x"],
  ["a raw stream in chunks", head("/v1/blobs/stream", octets, chunked), "1\r\nx\r\n"],
] as const

describe("a body that drips", () => {
  it.concurrent.each(kinds)("as %s is 408, and its connection closes", async (_, first, piece) => {
    const { answer, took_ms } = await dripping(first, piece)
    expect(answer).toMatch(/^HTTP\/1\.1 408 [\s\S]*connection: close/i)
    expect(took_ms).toBeLessThan(ends_ms_max - 1000)
    const [, path = ""] = / (\S+) /.exec(first) ?? []
    const body = JSON.parse(answer.slice(answer.indexOf("{"), answer.lastIndexOf("}") + 1))
    expect(wrongEnvelope(path, body)).toBeUndefined()
  })

  it.concurrent("of a request that was rejected before holds no connection either", async () => {
    const { answer, took_ms } = await dripping(head("/v1/blobs/secret", json, length), "x")
    expect(answer).toMatch(/^HTTP\/1\.1 401 /)
    expect(took_ms).toBeLessThan(ends_ms_max - 1000)
  })

  it.concurrent("fast enough is taken, however long it takes", async () => {
    const length = pieces * honest_piece.length
    const first = head("/v1/blobs/stream", octets, `Content-Length: ${length}`, "Connection: close")
    const { answer } = await dripping(first, honest_piece, pieces)
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
  })
})
