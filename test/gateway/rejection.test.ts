import { Schema } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { parse, stringify } from "#gateway/json.ts"
import {
  grpc_codes,
  InvalidArgument,
  NotFound,
  Rejection,
} from "#schemas/blob-storage/rejection.ts"
import { as, type Given, type Served, settingsWith, startHttp } from "../world/http.ts"
import { probe } from "./probe.ts"

let served: Served & { readonly stop: () => Promise<void> }
let settings = settingsWith()
beforeAll(async () => {
  served = await startHttp([probe("blob-storage", "/v1/blobs")], { current: () => settings })
})
afterAll(() => served.stop())

const rejected = async (detail: string, error: Given["error"] = {}) => {
  settings = settingsWith({ error })
  const answer = await served.fetch(`/v1/blobs/absent?detail=${encodeURIComponent(detail)}`)
  const body = await answer.json()
  expect(body.request_id).toBe(answer.headers.get("x-request-id"))
  return { status: answer.status, ...body }
}

describe("a rejection", () => {
  it("is answered in the documented shape", async () => {
    expect(await rejected("No such blob.")).toEqual({
      status: 404,
      request_id: expect.any(String),
      code: "NOT_FOUND",
      message: "blob not found on any node",
      detail: "No such blob.",
    })
  })

  it("keeps what only it has", async () => {
    expect(await rejected("node")).toMatchObject({ status: 404, ok: false, commands: ["rejoin"] })
  })

  it("without words gets those of its status and keeps its headers", async () => {
    const answer = await served.fetch("/v1/blobs/absent?detail=bare")
    expect([answer.status, answer.headers.get("content-range")]).toEqual([416, "bytes */5"])
    expect(await answer.json()).toMatchObject({
      code: "OUT_OF_RANGE",
      message: "range not satisfiable",
    })
  })

  it("loses its detail when error.include_detail is false", async () => {
    expect((await rejected("secret", { include_detail: false })).detail).toBe("")
  })

  it("has grpc_code when error.include_grpc_code is true", async () => {
    expect((await rejected("x", { include_grpc_code: true })).grpc_code).toBe(grpc_codes.NOT_FOUND)
    expect(await rejected("x")).not.toHaveProperty("grpc_code")
  })

  it.each([
    [512, "x".repeat(600), "x".repeat(512)],
    [5, "ab\u20ac\u20ac", "ab\u20ac"],
    [4, "ab\u20ac", "ab"],
    [0, "ab", ""],
  ])("is cut to error.max_detail_bytes = %i", async (max_detail_bytes, detail, expected) => {
    expect((await rejected(detail, { max_detail_bytes })).detail).toBe(expected)
  })

  it("is held to the same settings when the door itself refuses", async () => {
    settings = settingsWith({
      error: { include_grpc_code: true, max_detail_bytes: 3 },
    })
    const body = await (await served.fetch("/v1/blobs")).json()
    expect(body).toMatchObject({ code: "UNAUTHENTICATED", grpc_code: 16, detail: "A b" })
    settings = settingsWith()
  })

  it("of a malformed blob ID says so in its message", async () => {
    const init = { method: "DELETE", headers: as("writer") }
    const answer = await served.fetch("/v1/blobs/item/abc", init)
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({
      code: "INVALID_ARGUMENT",
      message: "invalid blob ID",
      detail: "path.id: the ID must be exactly 16 bytes",
    })
  })

  it("of a wrong query names the parameter", async () => {
    const init = { method: "DELETE", headers: as("writer") }
    const answer = await served.fetch(`/v1/blobs/item/${"0".repeat(32)}?limit=x`, init)
    expect(await answer.json()).toMatchObject({
      code: "INVALID_ARGUMENT",
      message: "invalid argument",
      detail: expect.stringContaining("query.limit"),
    })
  })

  it("carries its full detail and no request id inside the system", () => {
    const inside = new NotFound({ detail: "x".repeat(9999) })
    expect(inside.detail.length).toBe(9999)
    expect(inside).not.toHaveProperty("request_id")
    expect(Schema.encodeSync(Rejection)(inside)).toMatchObject({ request_id: "" })
    expect(new InvalidArgument({ message: "invalid blob ID", detail: "" }).message).toBe(
      "invalid blob ID",
    )
  })
})

describe("64-bit integers in JSON", () => {
  it("are written exactly, or as text", () => {
    const value = { n: 2n ** 64n - 1n, list: [-1n, 1], text: "1" }
    expect(stringify(value, "number")).toBe('{"n":18446744073709551615,"list":[-1,1],"text":"1"}')
    expect(stringify(value, "string")).toBe(
      '{"n":"18446744073709551615","list":["-1",1],"text":"1"}',
    )
  })

  it("are read exactly", () => {
    expect(parse('{"a":18446744073709551615,"b":9007199254740991,"c":1.5,"d":1e300}')).toEqual({
      a: 18446744073709551615n,
      b: 9007199254740991,
      c: 1.5,
      d: 1e300,
    })
  })

  it("survive a request", async () => {
    const init = { method: "POST", body: '{"n":9223372036854775807}' }
    const headers = { "content-type": "application/json" }
    const answer = await served.fetch("/v1/blobs/exact", { ...init, headers })
    expect(await answer.json()).toEqual({ n: "9223372036854775807" })
  })

  it.each(["{", "", '{"n":"x"}', "[]"])("a body %j that does not fit is 400", async (body) => {
    const headers = { "content-type": "application/json" }
    const answer = await served.fetch("/v1/blobs/exact", { method: "POST", body, headers })
    expect(answer.status).toBe(400)
    expect((await answer.json()).detail).toMatch(/^body/)
  })
})
