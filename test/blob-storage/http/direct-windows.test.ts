/** Blobs that a direct route sends in several windows. */
import { connect } from "node:net"
import { describe, expect, it } from "vitest"
import { faultError } from "#actors/blob-storage/ports/fault.ts"
import { id, metaOf, path, run } from "../../world/blob-storage/direct-engine.ts"
import { accept_bytes, type BlobService } from "../../world/blob-storage/service.ts"
import { as, until } from "../../world/http.ts"

describe("bytes in windows", () => {
  const window = Buffer.alloc(983_040, 7)
  const reading = (count: number, windows: () => AsyncIterableIterator<Uint8Array>) => ({
    get: async () => ({ meta: metaOf(count * window.length), data: undefined, windows }),
  })
  const fault = faultError({ _tag: "BlobCorrupt", id: id as never, detail: "" })
  const ask = (service: BlobService) =>
    service.fetch(path, { headers: { ...as("reader"), ...accept_bytes } })

  it("come in full", () => {
    const get = reading(5, async function* () {
      for (let count = 0; count < 5; count++) yield window
    })
    return run(get, {}, async (service) => {
      const bytes = Buffer.from(await (await ask(service)).arrayBuffer())
      expect([bytes.length, bytes.equals(Buffer.alloc(bytes.length, 7))]).toEqual([
        5 * window.length,
        true,
      ])
      expect(service.inFlight()).toBe(0)
    })
  })

  it("are an error where the first is corrupt, and cut off where a later one is", () => {
    let good = 0
    const get = reading(5, async function* () {
      for (let count = 0; count < good; count++) yield window
      throw fault
    })
    return run(get, {}, async (service) => {
      expect((await ask(service)).status).toBe(404)
      good = 2
      const answer = await ask(service)
      expect(answer.status).toBe(200)
      await expect(answer.arrayBuffer()).rejects.toThrow()
      await until(() => service.inFlight() === 0)
      expect(service.logged.join()).toContain("A request failed.")
    })
  })

  it("are cut off where they end too early", () => {
    const get = reading(3, async function* () {
      yield window
    })
    return run(get, {}, async (service) => {
      const answer = await ask(service)
      await expect(answer.arrayBuffer()).rejects.toThrow()
    })
  })

  it("are read one ahead of a slow client, and closed when it goes", () => {
    let read = 0
    let closed = 0
    const get = reading(1000, async function* () {
      try {
        for (; read < 1000; read++) yield window
      } finally {
        closed += 1
      }
    })
    return run(get, {}, async (service) => {
      const socket = connect(service.port, "127.0.0.1")
      socket.pause()
      const lines = [`GET ${path} HTTP/1.1`, "Host: a", "Authorization: Bearer reader"]
      socket.write([...lines, "Accept: application/octet-stream", "\r\n"].join("\r\n"))
      await until(() => read > 0)
      for (let turn = 0; turn < 1000; turn++) await new Promise((next) => setImmediate(next))
      // At most the kernel's buffers at both ends plus two windows.
      expect(read).toBeLessThan(20)
      socket.destroy()
      await until(() => closed === 1 && service.inFlight() === 0)
    })
  })
})
