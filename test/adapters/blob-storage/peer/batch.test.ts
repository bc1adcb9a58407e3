/** Batches of small copies that one node sends to another, over real connections. */
import assert from "node:assert/strict"
import { afterEach, describe, it } from "@effect/vitest"
import { faultError } from "#actors/blob-storage/ports/fault.ts"
import { type MemoryEngine, memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import type { Connection } from "#adapters/blob-storage/peer/call.ts"
import { batch_copies_max, decodeOutcomes } from "#adapters/blob-storage/peers/batch.ts"
import { copyBytesIn } from "#adapters/blob-storage/peers/copy.ts"
import { peersLink } from "#adapters/blob-storage/peers/link.ts"
import { operations } from "#adapters/blob-storage/peers/message.ts"
import { copyQueue } from "#adapters/blob-storage/peers/queue.ts"
import { noise } from "../../../contract/blob-storage/engine-bytes.ts"
import {
  codeOf,
  endAll,
  engineWith,
  idOf,
  linked,
  mib,
  orderOf,
} from "../../../world/blob-storage/peers-linked.ts"

afterEach(endAll)

const { replicate, replicate_many } = operations

/**
 * Records the requests on a link to a node with this store: each operation, and its body size in
 * bytes.
 */
const watched = async (...given: Parameters<typeof linked>) => {
  const { calls, peer, ...rest } = await linked(...given)
  const requests: Array<{ operation: number; bytes: number }> = []
  const { version, call: ask } = await calls.to(peer.address)
  const link: Connection = {
    version,
    call: (operation, json, body, deadline_ms) => {
      assert(Array.isArray(body), "what is sent together is there at once")
      const bytes = body.reduce((sum: number, part: Uint8Array) => sum + part.length, 0)
      requests.push({ operation, bytes })
      return ask(operation, json, body, deadline_ms)
    },
  }
  const peers = peersLink({ ...calls, to: async () => link })
  const send = (bytes: Uint8Array, more: Parameters<typeof orderOf>[1] = {}, deadline_ms = 5000) =>
    peers.send(peer, orderOf(bytes, more), [bytes], "put", deadline_ms)
  return { ...rest, link, requests, send, version, ask }
}

/** That many copies of this size, each with different bytes. */
const copies = (count: number, size: number) =>
  Array.from({ length: count }, (_, n) => noise(n + 1, size))

const operationsOf = (requests: ReadonlyArray<{ readonly operation: number }>) =>
  requests.map(({ operation }) => operation)

/** A store whose writes do not finish before `let_go`. */
const held = (local = memoryEngine()) => {
  const { promise, resolve } = Promise.withResolvers<void>()
  let finishing = 0
  const store: MemoryEngine = {
    ...local,
    receive: (order, bytes) => {
      const receiving = local.receive(order, bytes)
      const finish = async (at: bigint) => {
        finishing += 1
        await promise
        return receiving.finish(at)
      }
      return { ...receiving, finish }
    },
  }
  return { local, store, let_go: resolve, finishing: () => finishing }
}

describe("small copies that are sent at once", () => {
  it("go as one question, and each is stored with all that is known of it", async () => {
    const local = memoryEngine()
    const { requests, send } = await watched(local)
    const all = [new Uint8Array(0), ...copies(30, 4096), noise(99, 65_536)]
    const origin = (n: number) => ({ actor: `a-${n}`, request_id: `r-${n}`, correlation_id: "c" })
    const orders = all.map((_, n) => ({
      labels: n % 2 === 0 ? {} : { n: `${n}` },
      origin: origin(n),
      created_at: BigInt(n + 1),
    }))
    const received = await Promise.all(all.map((bytes, n) => send(bytes, orders[n])))
    assert.deepEqual(operationsOf(requests), [replicate_many])
    const facts = await local.scan(0, 100)
    for (const [n, bytes] of all.entries()) {
      const { copy, created } = received[n] ?? assert.fail()
      assert(created)
      const { id, checksum, policy, created_at } = orderOf(bytes, orders[n])
      assert.deepEqual(copy, {
        kind: "whole",
        id,
        size: bytes.length,
        checksum,
        policy,
        shard: undefined,
        created_at,
        put_at: created_at,
        stored_at: copy.stored_at,
      })
      const { meta, data } = await local.get(id, {}, 0n)
      assert.deepEqual([meta.labels, data?.length], [orders[n]?.labels, bytes.length])
      assert.equal(facts.find((fact) => fact.id === id)?.actor, `a-${n}`)
    }
    const again = await Promise.all(all.map((bytes, n) => send(bytes, orders[n])))
    assert(again.every(({ created }) => !created))
  })

  it("fail each alone, for the reason that it has", async () => {
    const local = memoryEngine()
    const { requests, send } = await watched({
      ...local,
      receive: (order, bytes) => {
        if (order.labels.disk === "full")
          throw faultError({ _tag: "BlobCapacityExceeded", detail: "" })
        return local.receive(order, bytes)
      },
    })
    const [deleted, other, good, last] = copies(4, 100)
    assert(deleted && other && good && last)
    await local.deleteClusterWide(idOf(deleted), orderOf(deleted).origin, 2n ** 62n)
    const wrong = { id: idOf(last), checksum: orderOf(last).checksum }
    const codes = await Promise.all([
      codeOf(send(deleted)),
      codeOf(send(good)),
      codeOf(send(other, wrong)),
      codeOf(send(noise(9, 100), { labels: { disk: "full" } })),
      codeOf(send(last)),
    ])
    const codes_wanted = ["FAILED_PRECONDITION", "OK", "INTERNAL", "RESOURCE_EXHAUSTED", "OK"]
    assert.deepEqual(codes, codes_wanted)
    assert.deepEqual(operationsOf(requests), [replicate_many])
    assert.deepEqual(
      (await local.copiesOf([idOf(good), idOf(last)])).map((copy) => copy?.kind),
      ["whole", "whole"],
    )
  })

  it("go in as many questions as their bytes, their labels and their count want", async () => {
    const local = memoryEngine()
    const { requests, send } = await watched(local)
    const labels = { k: "\u0001".repeat(8000), "\u0002": "\u0003".repeat(8000) }
    const sent = [
      ...copies(600, 10).map((bytes) => send(bytes)),
      ...copies(40, 65_000).map((bytes) => send(bytes)),
      ...copies(9, 11).map((bytes) => send(bytes, { labels })),
    ]
    for (const { copy } of await Promise.all(sent)) {
      assert.equal((await local.copiesOf([copy.id]))[0]?.kind, "whole")
    }
    assert(requests.every(({ operation, bytes }) => operation === replicate_many && bytes <= mib))
    // The 600 are limited by count, the 40 by bytes, and the 9 by labels to one or two per request.
    assert(requests.length > 2 + 2 + 4 && requests.length < 20, `${requests.length} questions`)
  })

  it("are sent one by one to a node that knows of no batches", async () => {
    const { requests, send } = await watched(memoryEngine(), true, { oldest: 1, newest: 2 })
    const codes = await Promise.all(copies(5, 100).map((bytes) => codeOf(send(bytes))))
    assert.deepEqual(codes, Array(5).fill("OK"))
    assert.deepEqual(operationsOf(requests), Array(5).fill(replicate))
  })

  it("leave out a large one, and one that differs from its announced length", async () => {
    const { requests, send } = await watched()
    const bytes = noise(1, 100)
    const codes = [send(noise(2, 65_537)), send(bytes, { size: 99 }), send(noise(3, 10))]
    assert.deepEqual(await Promise.all(codes.map(codeOf)), ["OK", "INTERNAL", "OK"])
    const sent = operationsOf(requests).toSorted((one, other) => one - other)
    assert.deepEqual(sent, [replicate, replicate, replicate_many])
  })

  it("all fail if the connection is lost or no response arrives", async () => {
    const { store, finishing, let_go } = held()
    const { send, door } = await watched(store)
    const late = copies(3, 10).map((bytes) => codeOf(send(bytes, {}, 100)))
    assert.deepEqual(await Promise.all(late), Array(3).fill("DEADLINE_EXCEEDED"))
    const lost = copies(6, 11).map((bytes) => codeOf(send(bytes)))
    while (finishing() < 9) await new Promise(setImmediate)
    door.close()
    assert.deepEqual(await Promise.all(lost), Array(6).fill("UNAVAILABLE"))
    let_go()
  })
})

describe("small copies that come while others are under way", () => {
  it("go at once while few questions are, then wait for an answer and go together", async () => {
    const { store, let_go, finishing } = held()
    const { requests, link } = await watched(store)
    // The window is long, so no batch is sent because of a timeout.
    const queue = copyQueue(link, 60_000)
    const send = (bytes: Uint8Array) =>
      queue.send({ order: orderOf(bytes), bytes: [bytes], size: bytes.length }, 60_000)
    const sent: Array<ReturnType<typeof send>> = []
    for (const bytes of copies(20, 100)) {
      sent.push(send(bytes))
      await new Promise(setImmediate)
    }
    while (finishing() < 4) await new Promise(setImmediate)
    assert.equal(finishing(), 4)
    let_go()
    assert((await Promise.all(sent)).every(({ created }) => created))
    assert.deepEqual(operationsOf(requests), Array(5).fill(replicate_many))
  })

  it("do not wait long for one that is stuck", async () => {
    const local = memoryEngine()
    const stuck = held(local)
    const first = noise(1, 100)
    const { send } = await watched({
      ...local,
      receive: (order, bytes) =>
        (order.id === idOf(first) ? stuck.store : local).receive(order, bytes),
    })
    const sent = send(first)
    while (stuck.finishing() === 0) await new Promise(setImmediate)
    assert((await send(noise(2, 100))).created)
    stuck.let_go()
    assert((await sent).created)
  })
})

describe("a batch", () => {
  it("is refused as a whole where it is not what it says", async () => {
    const store = engineWith({ receive: () => assert.fail("nothing of it is taken") })
    const { ask, version } = await watched(store)
    const { origin } = orderOf(noise(1, 1))
    const record = Buffer.alloc(copyBytesIn(version))
    const cases: ReadonlyArray<[unknown, ReadonlyArray<Uint8Array>]> = [
      [[{ origin }], []],
      [[{ origin }], [record]],
      [[], [noise(1, 10)]],
      [[{}], [record]],
      [Array(batch_copies_max + 1).fill({ origin }), Array(batch_copies_max + 1).fill(record)],
      [[{ origin }], [noise(1, mib), noise(2, mib)]],
    ]
    for (const [json, body] of cases) {
      assert.equal(await codeOf(ask(replicate_many, json, body, 5000)), "INTERNAL")
    }
  })

  it("is answered for each of its copies, and for no other", () => {
    const replyWith = (whole: Uint8Array, json: unknown = []) => ({
      json,
      whole,
      pieces: () => assert.fail("they came at once"),
    })
    const bytes = 2 * (1 + copyBytesIn(3))
    const failed = [{ at: 1, code: "UNAVAILABLE", detail: "the disk" }]
    const outcomes = decodeOutcomes(replyWith(Buffer.alloc(bytes), failed), 2, 3)
    const codes = outcomes.map((outcome) => "code" in outcome && outcome.code)
    assert.deepEqual(codes, ["INTERNAL", "UNAVAILABLE"])
    assert.throws(() => decodeOutcomes(replyWith(Buffer.alloc(bytes)), 3, 3))
  })
})
