/** A client that sends its headers one byte at a time: the listener waits ten seconds in total. */
import { connect } from "node:net"
import { expect, it } from "vitest"
import { probe } from "../gateway/probe.ts"
import { startHttp } from "../world/http.ts"
import { until } from "../world/server/server.ts"

const drip_ms = 200
const ends_ms_max = 40_000

it("a head that arrives too slowly is cut off, however steadily it is sent", async () => {
  const served = await startHttp([probe("blob-storage", "/v1/blobs")])
  const socket = connect(Number(new URL(served.url).port), "127.0.0.1")
  let answer = ""
  let is_closed = false
  socket.on("data", (part: Buffer) => {
    answer += part.toString()
  })
  socket.on("error", () => undefined)
  socket.on("close", () => {
    is_closed = true
  })
  socket.write("GET /v1/blobs HTTP/1.1\r\nHost: a\r\nX: ")
  const dripping = setInterval(() => socket.write("x"), drip_ms)
  await until("its end", ends_ms_max, () => is_closed)
  clearInterval(dripping)
  expect(answer).toMatch(/^HTTP\/1\.1 408 /)
  expect(JSON.parse(answer.split("\r\n\r\n")[1] ?? "").detail).toContain("too slowly")
  await served.stop()
})
