/** Connection limits per address, over real sockets. Source: decision 0186. */
import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { connectionShares } from "#http"
import { as, type Served, startHttp } from "../world/http.ts"
import { probe } from "./probe.ts"

const own_max = 4
/** Connections beyond the limit that still get a response. */
const answered = 16

/** Opens a connection from one of this machine's own addresses. */
const opened: Array<Socket> = []
const dial = async (served: Served, localAddress: string) => {
  const socket = connect({ port: served.port, host: "127.0.0.1", localAddress })
  socket.on("error", () => undefined)
  opened.push(socket)
  await once(socket, "connect")
  return socket
}

/** Returns the response on a connection, or an empty string if it is closed. */
const sendRequest = async (socket: Socket, path = "/v1/blobs", more = "") => {
  let text = ""
  socket.on("data", (part: Buffer) => {
    text += part.toString()
  })
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${more}`)
  socket.write(`Authorization: ${as("reader").authorization}\r\n\r\n`)
  if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve))
  return text
}

describe("connections of one address", () => {
  const one = "127.0.0.2"
  let served: Served & { readonly stop: () => Promise<void> }
  beforeAll(async () => {
    const api = {
      max_connections_per_address: own_max,
      // The setting for reverse proxies.
      unlimited_addresses: ["127.0.0.1/32"],
    }
    served = await startHttp([probe("blob-storage", "/v1/blobs")], { settings: { api } })
    for (let n = 0; n < own_max; n++) await dial(served, one)
  })
  afterAll(async () => {
    for (const socket of opened) socket.destroy()
    await served.stop()
  })

  it("beyond its limit are 503, with the reason", async () => {
    const text = await sendRequest(await dial(served, one))
    expect(text).toMatch(/^HTTP\/1\.1 503 [\s\S]*from this address/)
    expect(text).toMatch(/retry-after: 1/i)
    const expectant = "Expect: 100-continue\r\n"
    const waiting = await sendRequest(await dial(served, one), "/v1/blobs", expectant)
    expect(waiting).toMatch(/^HTTP\/1\.1 503 /)
  })

  it("leave room for others, and unlimited addresses have no limit", async () => {
    expect(await sendRequest(await dial(served, "127.0.0.3"))).toMatch(/^HTTP\/1\.1 200 /)
    for (let n = 0; n < 2 * own_max; n++) await dial(served, "127.0.0.1")
    expect(await sendRequest(await dial(served, "127.0.0.1"))).toMatch(/^HTTP\/1\.1 200 /)
  })

  it("are closed beyond some that get an answer, and have room again when others end", async () => {
    const more: Array<Socket> = []
    for (let n = 0; n < answered; n++) more.push(await dial(served, one))
    expect(await sendRequest(await dial(served, one))).toBe("")
    for (const socket of [...more, ...opened.slice(0, own_max)]) socket.destroy()
    const status = async () => (await sendRequest(await dial(served, one))).slice(0, 12)
    await expect.poll(status, { timeout: 10_000 }).toBe("HTTP/1.1 200")
  })
})

describe("the share of an address", () => {
  const api = { max_connections_per_address: 1000, unlimited_addresses: ["::1/128", "10.0.0.0/8"] }

  it("of IPv6 is one for all addresses of a /64", () => {
    const { admit } = connectionShares({ ...api, max_connections_per_address: 2 }, 1000)
    const verdicts = ["1", "2", "3"].map((end) => admit(`2001:db8::${end}`, 1))
    expect(verdicts).toEqual(["served", "served", "excess"])
    expect(admit("2001:db8:0:1::1", 1)).toBe("served")
  })

  it("reserves some of all connections for unlimited addresses", () => {
    const { admit } = connectionShares(api, 1600)
    expect(admit("192.0.2.1", 1536)).toBe("served")
    expect(admit("192.0.2.1", 1537)).toBe("excess")
    expect(admit("192.0.2.1", 1569)).toBe("closed")
    for (const address of ["::1", "10.1.2.3", "::ffff:10.1.2.3"]) {
      expect(admit(address, 1600)).toBe("served")
    }
    expect(admit("::1", 1601)).toBe("excess")
  })
})
