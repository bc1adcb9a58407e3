/** Guarantees of direct routes in addition to their responses: bounds, deadlines, shutdown. */
import { connect } from "node:net"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import type { BlobEngine } from "#actors/blob-storage/ports/engine.ts"
import { faultError } from "#actors/blob-storage/ports/fault.ts"
import { putText, utf8Length } from "#gateway/blob-storage/direct/response.ts"
import { BlobId } from "#schemas/blob-storage/blob.ts"
import {
  id,
  metaOf,
  mib,
  never,
  nothing,
  path,
  run,
} from "../../world/blob-storage/direct-engine.ts"
import {
  accept_bytes,
  type BlobService,
  base64,
  bytes_type,
  json_type,
} from "../../world/blob-storage/service.ts"
import { as, settingsWith, until } from "../../world/http.ts"

const hurried = { settings: { api: { request_timeout_seconds: 1 } } }

const head = (...more: ReadonlyArray<string>) =>
  [
    "POST /v1/blobs/stream HTTP/1.1",
    "Host: a",
    "Authorization: Bearer writer",
    "Content-Type: application/octet-stream",
    ...more,
    "\r\n",
  ].join("\r\n")

const putSmall = ({ url }: BlobService, init: RequestInit = {}) =>
  fetch(`${url}/v1/blobs/stream`, {
    method: "POST",
    headers: { ...as("writer"), ...bytes_type },
    body: "hello",
    ...init,
  })

describe("a request on a direct route", () => {
  it("is 504 and released if its engine does not respond", () =>
    run({ put: never, get: never }, hurried, async (service) => {
      const late = [putSmall(service), service.fetch(path, { headers: as("reader") })]
      for (const { status } of await Promise.all(late)) expect(status).toBe(504)
      expect(service.inFlight()).toBe(0)
    }))

  it("whose body stops coming is 504, and its upload is given up", () => {
    let aborted = 0
    const upload = () => ({
      write: () => undefined,
      finish: nothing,
      abort: async () => {
        aborted += 1
      },
    })
    return run({ upload }, hurried, async (service) => {
      const answer = await service.raw(head(`Content-Length: ${mib}`), "x".repeat(1000))
      expect(answer).toMatch(/^HTTP\/1.1 504[\s\S]*connection: close[\s\S]*DEADLINE_EXCEEDED/i)
      await until(() => service.inFlight() === 0)
      expect(aborted).toBe(1)
    })
  })

  it("whose client vanishes gives its upload up", () => {
    let aborted = 0
    let taken = 0
    const upload = () => ({
      write: (bytes: Uint8Array) => {
        taken += bytes.length
        return undefined
      },
      finish: nothing,
      abort: async () => {
        aborted += 1
      },
    })
    return run({ upload }, {}, async (service) => {
      const socket = connect(service.port, "127.0.0.1")
      socket.write(head(`Content-Length: ${mib}`) + "x".repeat(1000))
      await until(() => taken === 1000)
      socket.destroy()
      await until(() => service.inFlight() === 0)
      expect(aborted).toBe(1)
    })
  })

  it("is read no faster than its bytes are taken", () => {
    let taken = 0
    let release: () => void = () => undefined
    const upload = () => ({
      write: (bytes: Uint8Array) => {
        taken += bytes.length
        return new Promise<void>((resolve) => {
          release = resolve
        })
      },
      finish: nothing,
      abort: async () => undefined,
    })
    return run({ upload }, {}, async (service) => {
      const socket = connect(service.port, "127.0.0.1")
      socket.on("error", () => undefined)
      socket.write(head(`Content-Length: ${64 * mib}`))
      const part = Buffer.alloc(mib)
      const is_all_sent = new Promise<string>((resolve) => {
        for (let count = 0; count < 64; count++) {
          socket.write(part, () => count === 63 && resolve("all sent"))
        }
      })
      await until(() => taken > 0)
      const first = taken
      // The event loop turns a thousand times, enough for the socket's buffers to fill.
      for (let turn = 0; turn < 1000; turn++) await new Promise((next) => setImmediate(next))
      expect(taken).toBe(first)
      expect(await Promise.race([is_all_sent, Promise.resolve("held back")])).toBe("held back")
      release()
      await until(() => taken > first)
      socket.destroy()
      await until(() => {
        // A paused connection does not detect that its peer has closed.
        release()
        return service.inFlight() === 0
      })
    })
  })

  it("whose engine refuses in the middle of the body is answered there and then", () => {
    const full = { _tag: "BlobCapacityExceeded", detail: "The disk is full." } as const
    const upload = () => ({
      write: () => Promise.reject(faultError(full)),
      finish: nothing,
      abort: async () => undefined,
    })
    return run({ upload }, {}, async (service) => {
      const answer = await service.raw(head(`Content-Length: ${64 * mib}`), "x".repeat(100_000))
      expect(answer).toMatch(/^HTTP\/1.1 429[\s\S]*"detail":"The disk is full."/)
      expect(service.inFlight()).toBe(0)
    })
  })

  it("rejected before its end is never read as a request", () =>
    run({}, {}, async (service) => {
      const smuggled = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
      const nobody = head(`Content-Length: ${smuggled.length}`).replace("writer", "nobody")
      const last = "GET /nowhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
      const answers = await service.raw(nobody, smuggled, last)
      expect(answers.match(/HTTP\/1\.1 \d{3}/g)).toEqual(["HTTP/1.1 401", "HTTP/1.1 404"])
      const chunks = `${smuggled.length.toString(16)}\r\n${smuggled}\r\n`
      const chunked = head("Transfer-Encoding: chunked").replace("writer", "nobody")
      const cut = await service.raw(chunked, chunks)
      expect(cut.match(/HTTP\/1\.1 \d{3}/g)).toEqual(["HTTP/1.1 401"])
      expect(cut).toMatch(/connection: close/i)
    }))

  it("that fails by a defect of ours is 500 without detail, and logged", () => {
    const get = () => {
      throw new TypeError("a secret of the machine")
    }
    return run({ get }, {}, async (service) => {
      const answer = await service.fetch(path, { headers: { ...as("reader"), ...accept_bytes } })
      expect([answer.status, await answer.json()]).toMatchObject([500, { detail: "" }])
      expect(service.logged.join()).toContain("a secret of the machine")
    })
  })

  it("that is on its way when the server stops is answered", async () => {
    let answer: () => void = () => undefined
    const put: BlobEngine["put"] = () =>
      new Promise((resolve) => {
        answer = () => resolve({ id: id as never, meta: metaOf(5), created: true })
      })
    let status: Promise<number> | undefined
    let stopped = Promise.resolve()
    await run({ put }, {}, async (service) => {
      status = putSmall(service).then((response) => response.status)
      await until(() => service.inFlight() === 1)
      // The scope ends after this body: the server stops while the put is in progress.
      stopped = new Promise((resolve) => setImmediate(resolve)).then(() => answer())
    })
    await stopped
    expect(await status).toBe(200)
  })
})

describe("the text of a direct route", () => {
  it("counts its bytes in UTF-8, and has the id of a blob in base64", () => {
    expect(utf8Length("aé€")).toBe(6)
    const text = putText(BlobId.make(id), metaOf(3), "number")
    expect(JSON.parse(text).id.id).toBe(Buffer.from(id, "hex").toString("base64"))
  })
})

describe("admission to a direct route", () => {
  const get: BlobEngine["get"] = async (_id, { offset = 0, length = 5 }) => ({
    meta: metaOf(5),
    data: Buffer.from("hello").subarray(offset, offset + length),
    windows: never as never,
  })
  const stat = async () => metaOf(5)
  const seen = async (service: BlobService, headers: Record<string, string>, more = "") =>
    (
      await service.fetch(path + more, {
        headers: { ...as("reader"), ...accept_bytes, ...headers },
      })
    ).status

  it("reads headers and address as for every other route", () =>
    run({ get, stat }, {}, async (service) => {
      expect(await seen(service, {})).toBe(200)
      expect(await seen(service, { range: "bytes=0-1" })).toBe(206)
      expect(await seen(service, {}, "/stream")).toBe(200)
      expect(await seen(service, {}, "?a=b")).toBe(200)
      expect(await seen(service, {}, "/")).toBe(200)
      expect(await seen(service, { "idempotency-key": "k" })).toBe(200)
      expect(await seen(service, { "x-almanac-position": "0" })).toBe(200)
      expect(await seen(service, { "x-almanac-position": "no" })).toBe(400)
      expect(await seen(service, { "x-auth-token": "reader" })).toBe(200)
      expect(await seen(service, { "x-auth-token": "reader", authorization: "" })).toBe(200)
      expect(await seen(service, { authorization: "Bearer unknown" })).toBe(401)
      expect(await seen(service, { authorization: "Bearer outage" })).toBe(503)
      expect(await seen(service, { authorization: "Bearer admin" })).toBe(403)
    }))

  it("waits for an identity that does not know the caller at once", () => {
    const caller = { actor: "a", kind: "static", scopes: new Set(["blobs:read"]) } as const
    const authenticate = () => Effect.as(Effect.sleep(10), { ...caller, roles: new Set<string>() })
    return run({ get }, { authenticate }, async (service) => {
      expect(await seen(service, {})).toBe(200)
      const never = { ...hurried, authenticate: () => Effect.never }
      await run({ get }, never, async (late) => {
        expect(await seen(late, {})).toBe(504)
        expect(late.inFlight()).toBe(0)
      })
    })
  })

  it("is 500 and logged where the identity has a defect", () =>
    run({ get }, { authenticate: () => Effect.die("a broken key store") }, async (service) => {
      expect(await seen(service, {})).toBe(500)
      expect(service.logged.join()).toContain("a broken key store")
      expect(service.inFlight()).toBe(0)
    }))

  it("counts against the rate limit, as soon as it is reloaded", () => {
    let settings = settingsWith()
    return run({ get }, { current: () => settings }, async (service) => {
      expect(await seen(service, {})).toBe(200)
      settings = settingsWith({ api: { rate_limit_per_second: 1, rate_limit_burst: 1 } })
      expect(await seen(service, {})).toBe(200)
      expect(await seen(service, {})).toBe(429)
      settings = settingsWith()
      expect(await seen(service, {})).toBe(200)
    })
  })

  it("refuses a body that is declared too large", () =>
    run({}, { settings: { blob: { json_body_bytes_max: 100 } } }, async (service) => {
      const body = JSON.stringify({ data: base64(Buffer.alloc(100)) })
      const { status } = await service.fetch("/v1/blobs", {
        method: "PUT",
        headers: { ...as("writer"), ...json_type },
        body,
      })
      expect(status).toBe(413)
    }))
})

describe("a put of JSON", () => {
  /** The size in bytes that the engine expects of a put, after the put has succeeded. */
  const announcedFor = async (body: (data: string) => RequestInit["body"]) => {
    const bytes = Buffer.alloc(700_000, "blob")
    const announced: Array<number | undefined> = []
    let taken = 0
    const upload: BlobEngine["upload"] = (_order, size) => {
      announced.push(size)
      return {
        write: (part) => {
          taken += part.length
          return undefined
        },
        // The engine only counts the bytes; their content is irrelevant here.
        finish: async () => ({ id: id as BlobId, meta: metaOf(taken), created: true }),
        abort: async () => undefined,
      }
    }
    await run({ upload }, {}, async ({ url }) => {
      const answer = await fetch(`${url}/v1/blobs`, {
        ...{ method: "PUT", headers: { ...as("writer"), ...json_type }, duplex: "half" },
        body: body(bytes.toString("base64")) ?? null,
      })
      expect(answer.status).toBe(200)
    })
    expect(taken).toBe(bytes.length)
    expect(announced.length).toBe(1)
    return announced[0]
  }

  it("announces what its message can hold at most, where that is known", async () => {
    const plain = await announcedFor((data) => JSON.stringify({ data }))
    expect(plain).toBeGreaterThanOrEqual(700_000)
    expect(plain).toBeLessThan(700_020)
    const escaped = await announcedFor((data) => `{"data":"${data.replaceAll("Y", "\\u0059")}"}`)
    expect(escaped).toBeGreaterThanOrEqual(700_000)
    const chunked = await announcedFor((data) =>
      new Blob([JSON.stringify({ data, labels: { a: "b" } })]).stream(),
    )
    expect(chunked).toBe(undefined)
  })
})
