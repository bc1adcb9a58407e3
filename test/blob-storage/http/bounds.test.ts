/**
 * Memory use of the HTTP path: it recycles a window once the system has sent it, and sends data
 * that is already in memory at once.
 */
import { connect } from "node:net"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { id, metaOf, path, run } from "../../world/blob-storage/direct-engine.ts"
import {
  accept_bytes,
  type BlobService,
  base64,
  json_type,
} from "../../world/blob-storage/service.ts"
import { as, until } from "../../world/http.ts"

const window_bytes = 983_040

/** Windows that are each filled with their own index; recycling overwrites it with 255. */
const lending = (count: number) => {
  const given: Array<number> = []
  const lent: Array<number> = []
  const recycle = (window: Uint8Array) => {
    given.push(window[0] ?? -1)
    window.fill(255)
  }
  const windows = async function* () {
    for (let n = 0; n < count; n++) {
      lent.push(n)
      yield Buffer.alloc(window_bytes, n)
    }
  }
  const meta = metaOf(count * window_bytes)
  return { given, lent, get: async () => ({ meta, data: undefined, windows, recycle }) }
}

const paused = (port: number) => {
  const socket = connect(port, "127.0.0.1")
  socket.pause()
  const lines = [`GET ${path} HTTP/1.1`, "Host: a", "Authorization: Bearer reader"]
  socket.write([...lines, "Accept: application/octet-stream", "\r\n"].join("\r\n"))
  return socket
}

const turns = async () => {
  for (let turn = 0; turn < 500; turn++) await new Promise((next) => setImmediate(next))
}

describe("the memory of a window", () => {
  it("is given back once the system has its bytes, however slow the client is", () => {
    const { given, lent, get } = lending(12)
    return run({ get }, {}, async (service) => {
      const socket = paused(service.port)
      await until(() => lent.length > 1)
      await turns()
      const parts: Array<Buffer> = []
      socket.on("data", (part: Buffer) => parts.push(part)).resume()
      await until(() => given.length === 12)
      const headBytes = () => Buffer.concat(parts).indexOf("\r\n\r\n") + 4
      await until(() => Buffer.concat(parts).length - headBytes() === 12 * window_bytes)
      const all = Buffer.concat(parts).subarray(headBytes())
      for (let n = 0; n < 12; n++) {
        const sent = all.subarray(n * window_bytes, (n + 1) * window_bytes)
        expect(sent.equals(Buffer.alloc(window_bytes, n)), `window ${n}`).toBe(true)
      }
      expect(given).toEqual(lent)
      socket.destroy()
    })
  })

  it("of a batch is given back once its digits are made, in the check and in the line", () => {
    const { given, lent, get } = lending(3)
    return run({ get }, {}, async (service) => {
      const { text } = await Effect.runPromise(
        service.call("POST", "/v1/blobs/get", { headers: json_type, body: JSON.stringify([id]) }),
      )
      const bytes = Buffer.concat([0, 1, 2].map((n) => Buffer.alloc(window_bytes, n)))
      expect(JSON.parse(text).data === base64(bytes)).toBe(true)
      expect(given).toEqual([0, 1, 2, 0, 1, 2])
      expect(given).toEqual(lent)
    })
  })

  it("is not given back while the socket's use of it is unknown", () => {
    const { given, lent, get } = lending(50)
    return run({ get }, {}, async (service) => {
      const socket = paused(service.port)
      await until(() => lent.length > 1)
      await turns()
      let before = -1
      for (; before !== given.length; await turns()) before = given.length
      expect(before).toBeLessThan(lent.length)
      socket.destroy()
      await until(() => service.inFlight() === 0)
      await turns()
      // The client read nothing more, so the writes in flight failed.
      expect(given.length).toBe(before)
    })
  })
})

describe("a blob that is at hand", () => {
  const data = Buffer.from("hello")
  const at_hand = { meta: metaOf(5), data, windows: () => assertNever() }
  const assertNever = () => {
    throw new Error("one window is enough")
  }
  const ask = (service: BlobService, more: Record<string, string> = {}, init: RequestInit = {}) =>
    service.fetch(path, { ...init, headers: { ...as("reader"), ...accept_bytes, ...more } })

  it("is answered, and nothing is waited for", () =>
    run({ getCached: () => at_hand }, {}, async (service) => {
      const answer = await ask(service)
      expect([answer.status, await answer.text()]).toEqual([200, "hello"])
      expect(answer.headers.get("content-length")).toBe("5")
    }))

  it("is answered as a get answers it, to the letter", async () => {
    const labelled = { ...at_hand, meta: { ...metaOf(5), labels: { a: "é", b: "" } } }
    const answers: Array<unknown> = []
    for (const engine of [{ getCached: () => labelled }, { get: async () => labelled }]) {
      await run(engine, {}, async (service) => {
        const answer = await ask(service, { "x-request-id": "the same" })
        const headers = [...answer.headers].filter(([name]) => !/^(date|x-request-id)$/.test(name))
        answers.push([answer.status, headers, await answer.text()])
        expect(headers.length).toBeGreaterThan(7)
      })
    }
    expect(answers[0]).toEqual(answers[1])
  })

  it("is asked for where it is not: by a get", () =>
    run({ getCached: () => undefined, get: async () => at_hand }, {}, async (service) => {
      expect(await (await ask(service)).text()).toBe("hello")
    }))

  it("is not what a range, a condition or a HEAD is answered with", () => {
    const getCached = () => {
      throw new Error("all of it was not asked for")
    }
    const stat = async () => metaOf(5)
    const part = { ...at_hand, data: data.subarray(0, 2) }
    return run({ getCached: getCached, stat, get: async () => part }, {}, async (service) => {
      expect((await ask(service, { range: "bytes=0-1" })).status).toBe(206)
      expect((await ask(service, { "if-none-match": "*" })).status).toBe(304)
      expect((await ask(service, {}, { method: "HEAD" })).status).toBe(200)
    })
  })

  it("requires read access", () =>
    run({ getCached: () => at_hand }, {}, async (service) => {
      const asNobody = { headers: { ...accept_bytes } }
      expect((await service.fetch(path, asNobody)).status).toBe(401)
      expect((await ask(service, as("stranger"))).status).toBe(403)
    }))
})
