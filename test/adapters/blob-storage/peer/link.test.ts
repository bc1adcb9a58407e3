import assert from "node:assert/strict"
import { once } from "node:events"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { Duplex, PassThrough } from "node:stream"
import { afterEach, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { window_bytes } from "#adapters/blob-storage/peer/exchange.ts"
import {
  encodeFrame,
  encodeJson,
  type Frame,
  frameReader,
  piece_bytes_max,
} from "#adapters/blob-storage/peer/frame.ts"
import {
  clientLink,
  type Handler,
  type Message,
  serverLink,
} from "#adapters/blob-storage/peer/link.ts"
import { frameWriter } from "#adapters/blob-storage/peer/writer.ts"
import { isPeerFailure, peerFailure } from "#cluster"
import { noise } from "../../../contract/blob-storage/engine-bytes.ts"
import { codeOf } from "../../../world/blob-storage/peers-linked.ts"

const ends: Array<() => void> = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

const mib = 1024 * 1024

/** The two ends of a real connection. */
const linked = async (answering: Handler) => {
  const sockets: Array<Socket> = []
  let closed: Promise<Error> | undefined
  const server = createServer((socket) => {
    sockets.push(socket)
    closed = serverLink(socket, answering)
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  // A server that listens on a port has an address of this type.
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1")
  await once(socket, "connect")
  const link = clientLink(socket)
  ends.push(() => {
    link.close()
    server.close()
  })
  return { link, socket, sockets, closed: () => closed }
}

const bytesOf = async (message: Message) => {
  const parts: Array<Uint8Array> = []
  for await (const piece of message.pieces()) parts.push(piece)
  return Buffer.concat(parts)
}

const echo: Handler = async (question) => ({
  json: { operation: question.operation, echo: question.json },
  body: question.whole === undefined ? question.pieces() : [question.whole],
})

const pieces = async function* (sizes: ReadonlyArray<number>) {
  for (const [at, size] of sizes.entries()) yield noise(at + 1, size)
}

describe("a link between nodes", () => {
  it("carries a question with its operation, JSON and bytes, and its answer", async () => {
    const { link } = await linked(echo)
    const reply = await link.call(7, { id: "abc" }, [noise(1, 4096), noise(2, 5)], 1000)
    assert.deepEqual(reply.json, { operation: 7, echo: { id: "abc" } })
    assert.deepEqual(await bytesOf(reply), Buffer.concat([noise(1, 4096), noise(2, 5)]))
  })

  it("carries streams of any length both ways at once", { timeout: 20_000 }, async () => {
    const { link } = await linked(echo)
    const sizes = [1, 3 * mib, 17, 0, 6 * mib + 1, piece_bytes_max, 2 * window_bytes]
    const reply = await link.call(1, {}, pieces(sizes), 10_000)
    const sent: Array<Uint8Array> = []
    for await (const piece of pieces(sizes)) sent.push(piece)
    assert.ok((await bytesOf(reply)).equals(Buffer.concat(sent)))
  })

  it("keeps many exchanges apart", async () => {
    const { link } = await linked(async (question) => {
      if (Number(question.json) % 3 === 0) await new Promise((resolve) => setTimeout(resolve, 5))
      return echo(question, AbortSignal.abort())
    })
    const answers = await Promise.all(
      Array.from({ length: 500 }, async (_, at) => {
        const reply = await link.call(at % 200, at, [noise(at, at * 31)], 5000)
        assert.deepEqual(reply.json, { operation: at % 200, echo: at })
        return (await bytesOf(reply)).equals(noise(at, at * 31))
      }),
    )
    assert.ok(answers.every((is_same) => is_same))
  })

  it("says what the other side refused, with its code", async () => {
    const { link } = await linked(async ({ json }) => {
      throw json === 1 ? peerFailure("NOT_FOUND", "no such blob") : new Error("broken")
    })
    await assert.rejects(link.call(1, 1, undefined, 1000), { code: "NOT_FOUND" })
    await assert.rejects(link.call(1, 2, undefined, 1000), { code: "INTERNAL", message: "broken" })
  })

  it("times out at the deadline, and notifies the other side", async () => {
    const { promise: notified, resolve: tell } = Promise.withResolvers<void>()
    const { link } = await linked(async ({ operation, json }, signal) => {
      if (operation === 2) return { json }
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()))
      tell()
      return { json: null }
    })
    assert.equal(await codeOf(link.call(1, {}, undefined, 30)), "DEADLINE_EXCEEDED")
    await notified
    assert.equal((await link.call(2, "still here", undefined, 1000)).json, "still here")
  })

  it("holds a sender up whose bytes are not taken, and no other exchange", async () => {
    let sent = 0
    const endless = async function* () {
      for (;;) {
        sent += mib
        yield noise(1, mib)
      }
    }
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const { link } = await linked(async ({ operation, json }) => {
      if (operation === 1) await released
      return { json }
    })
    const stuck = codeOf(link.call(1, {}, endless(), 60_000))
    for (let turn = 0; turn < 20; turn++) {
      assert.equal((await link.call(2, turn, [noise(1, 1000)], 1000)).json, turn)
    }
    assert.ok(sent <= window_bytes + 2 * mib, `${sent} bytes were sent`)
    release()
    assert.equal(await stuck, "OK")
  })

  it("stops an answer of which no more is wanted", async () => {
    const { promise: stopped, resolve: stop } = Promise.withResolvers<void>()
    const { link } = await linked(async (_, signal) => {
      signal.addEventListener("abort", () => stop())
      const body = async function* () {
        for (;;) yield noise(1, mib)
      }
      return { json: {}, body: body() }
    })
    const reply = await link.call(1, {}, undefined, 1000)
    for await (const piece of reply.pieces()) {
      assert.ok(piece.length > 0 && piece.length <= mib)
      break
    }
    await stopped
  })

  it("fails what is under way when the connection is lost, on either side", async () => {
    const { promise: requested, resolve: ask } = Promise.withResolvers<void>()
    const { promise: aborted, resolve: abort } = Promise.withResolvers<void>()
    const { link, socket, closed } = await linked(async (_, signal) => {
      signal.addEventListener("abort", () => abort())
      ask()
      return new Promise(() => undefined)
    })
    const waiting = codeOf(link.call(1, {}, undefined, 60_000))
    await requested
    socket.destroy()
    assert.equal(await waiting, "UNAVAILABLE")
    await aborted
    assert.ok(isPeerFailure(await closed()))
    assert.equal(await codeOf(link.call(1, {}, undefined, 1000)), "UNAVAILABLE")
  })

  it("cuts off a side that sends what is no frame, or more than its window", async () => {
    const { sockets, link } = await linked(echo)
    await link.call(1, {}, undefined, 1000)
    sockets[0]?.write(Buffer.from("GET / HTTP/1.1\r\nHost: unknown\r\n\r\n"))
    assert.ok(isPeerFailure(await link.closed))

    const other = await linked(async () => new Promise(() => undefined))
    const open = { kind: "open", exchange: 1, operation: 1, is_last: false } as const
    for (const part of encodeFrame(open, encodeJson({}))) other.socket.write(part)
    const data = { ...open, kind: "data" } as const
    for (let turn = 0; turn < 8; turn++) {
      for (const part of encodeFrame(data, noise(1, mib))) other.socket.write(part)
    }
    assert.ok(isPeerFailure(await other.link.closed))
  })
})

/** Reassembles frames as they were sent: joins the parts of a stream's frame. */
const whole = (frames: ReadonlyArray<Frame>, sent: ReadonlyArray<Frame>) => {
  const rest = [...frames]
  return sent.map(({ kind, payload }) => {
    const [first, ...others] = rest.splice(0, 1)
    assert.ok(first)
    const parts = [first, ...others]
    while (kind === "data" && lengthOf(parts) < payload.length) {
      assert.ok(!parts.at(-1)?.is_last)
      parts.push(...rest.splice(0, 1))
    }
    const bytes = Uint8Array.from(Buffer.concat(parts.map((part) => part.payload)))
    return { ...first, is_last: parts.at(-1)?.is_last, payload: bytes }
  })
}

const lengthOf = (parts: ReadonlyArray<Frame>) =>
  parts.reduce((sum, { payload }) => sum + payload.length, 0)

describe("frames", () => {
  it("of a stream come as their bytes do, and are not kept", () => {
    const head = { kind: "data", exchange: 7, operation: 3, is_last: true } as const
    const wire = Buffer.concat(encodeFrame(head, noise(1, 1000)))
    const read = frameReader()
    assert.deepEqual(read(wire.subarray(0, 12)), [])
    const [first, ...none] = read(wire.subarray(12, 400))
    assert.deepEqual([first?.is_last, first?.payload.length, none.length], [false, 388, 0])
    assert.equal(first?.payload.buffer, wire.buffer)
    const [last] = read(wire.subarray(400))
    assert.deepEqual([last?.is_last, last?.exchange, last?.payload.length], [true, 7, 612])
  })

  it("of one exchange's bytes leave as one where they are said in one turn", async () => {
    const socket = new PassThrough()
    const write = frameWriter(socket)
    const head = { kind: "data", exchange: 1, operation: 0, is_last: false } as const
    write({ ...head, kind: "open" }, noise(1, 10))
    write(head, noise(2, 20), noise(3, 30))
    write({ ...head, is_last: true }, noise(4, 40))
    write({ ...head, exchange: 4 }, noise(8, 5))
    write({ ...head, exchange: 2 }, noise(5, piece_bytes_max - 10))
    write({ ...head, exchange: 2 }, noise(6, 11))
    await new Promise((resolve) => setImmediate(resolve))
    write({ ...head, exchange: 2 }, noise(7, 7))
    await new Promise((resolve) => setImmediate(resolve))
    for (let turn = 0; turn < 100; turn++) write({ ...head, exchange: 3 }, noise(turn, 1))
    await new Promise((resolve) => setImmediate(resolve))
    socket.end()
    const frames = frameReader()(Buffer.concat(await Array.fromAsync(socket)))
    assert.deepEqual(
      frames.map(({ kind, exchange, is_last, payload }) => [
        kind,
        exchange,
        is_last,
        payload.length,
      ]),
      [
        ["open", 1, false, 10],
        ["data", 1, true, 90],
        ["data", 4, false, 5],
        ["data", 2, false, piece_bytes_max - 10],
        ["data", 2, false, 11],
        ["data", 2, false, 7],
        ["data", 3, false, 64],
        ["data", 3, false, 36],
      ],
    )
    const second = Buffer.concat([noise(2, 20), noise(3, 30), noise(4, 40)])
    assert.ok(second.equals(frames[1]?.payload ?? new Uint8Array(0)))
  })

  it("of one turn are sent together before the event loop continues", async () => {
    const read = frameReader()
    const came: Array<Frame> = []
    const socket = new Duplex({
      read: () => undefined,
      writev: (chunks, done) => {
        for (const { chunk } of chunks) came.push(...read(chunk))
        done()
      },
    })
    const write = frameWriter(socket)
    const kindsAfter = async (wait: (run: () => void) => void) => {
      await new Promise<void>((resolve) => wait(resolve))
      return came.splice(0).map(({ kind, exchange }) => `${kind} ${exchange}`)
    }
    const turn = (run: () => void) => void setImmediate(run)
    // This code runs as a promise continuation: all ticks follow it, and then the rest of the loop.
    const ticks = (run: () => void) => process.nextTick(() => process.nextTick(run))
    const head = { operation: 0, is_last: false } as const
    write({ ...head, kind: "data", exchange: 1 }, noise(1, 10))
    assert.deepEqual(await kindsAfter(ticks), [])
    write({ ...head, kind: "open", exchange: 2, is_last: true }, noise(2, 10))
    write({ ...head, kind: "reply", exchange: 3, is_last: true }, noise(3, 10))
    assert.deepEqual(await kindsAfter(ticks), ["data 1", "open 2", "reply 3"])
    write({ ...head, kind: "data", exchange: 4, is_last: true }, noise(4, 10))
    assert.deepEqual(await kindsAfter(ticks), [])
    assert.deepEqual(await kindsAfter(turn), ["data 4"])
    write({ ...head, kind: "credit", exchange: 5 })
    assert.deepEqual(await kindsAfter(ticks), [])
    assert.deepEqual(await kindsAfter(turn), ["credit 5"])
  })

  it("come out as they went in, however they are cut", () => {
    const fields = {
      kind: fc.constantFrom("open", "reply", "data", "credit", "reset", "ping", "pong"),
      exchange: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
      operation: fc.integer({ min: 0, max: 255 }),
      is_last: fc.boolean(),
      payload: fc.uint8Array({ maxLength: 300 }),
    }
    const frame = fc.record(fields, { noNullPrototype: true })
    const cuts = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1 })
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 8 }), cuts, (frames, lengths) => {
        const wire = Buffer.concat(
          frames.flatMap(({ payload, ...head }) => encodeFrame(head as never, payload)),
        )
        const read = frameReader()
        const out = []
        for (let at = 0, turn = 0; at < wire.length; turn++) {
          const to = at + (lengths[turn % lengths.length] ?? 1)
          out.push(...read(wire.subarray(at, to)))
          at = to
        }
        // The generator produces exactly the kinds of frames.
        assert.deepEqual(whole(out, frames as never), frames)
      }),
    )
  })
})
