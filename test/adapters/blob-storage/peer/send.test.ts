/** Copies that one node sends to another, over real connections. */
import assert from "node:assert/strict"
import { afterEach, describe, it } from "@effect/vitest"
import { faultError } from "#actors/blob-storage/ports/fault.ts"
import type { IncomingCopy } from "#actors/blob-storage/ports/node-engine.ts"
import { type MemoryEngine, memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { window_bytes } from "#adapters/blob-storage/peer/exchange.ts"
import { striping } from "#erasure"
import { noise } from "../../../contract/blob-storage/engine-bytes.ts"
import {
  codeOf,
  cut,
  endAll,
  engineWith,
  idOf,
  linked,
  mib,
  orderOf,
  origin,
} from "../../../world/blob-storage/peers-linked.ts"

afterEach(endAll)

describe("a copy that is sent", () => {
  for (const size of [0, 1, 4096, mib, 3 * mib + 17]) {
    it(`is stored there with all that is known of it, at ${size} bytes`, async () => {
      const local = memoryEngine()
      const { peers, peer } = await linked(local)
      const bytes = noise(1, size)
      const order = orderOf(bytes)
      const first = await peers.send(peer, order, [bytes], "put", 5000)
      const { id, checksum, policy, created_at, shard } = order
      assert.deepEqual(first, {
        copy: {
          kind: "whole",
          id,
          size,
          checksum,
          policy,
          created_at,
          put_at: created_at,
          shard,
          stored_at: 1_800_000_000_000_000_001n,
        },
        created: true,
      })
      const again = await peers.send(peer, order, cut(bytes, 1000), "repair", 5000)
      assert.deepEqual(again, { ...first, created: false })
      const { meta } = await local.get(id, {}, 0n)
      assert.deepEqual([meta.labels, meta.created_at], [order.labels, created_at])
      const [fact] = await local.scan(0, 10)
      assert.equal(fact?.actor, origin.actor)
    })
  }

  it("brings the largest labels there may be, however they are written", async () => {
    const local = memoryEngine()
    const { peers, peer } = await linked(local)
    const bytes = noise(1, 10)
    const labels = { k: "\u0001".repeat(8000), "\u0002": "\u0003".repeat(8000) }
    await peers.send(peer, orderOf(bytes, { labels }), [bytes], "put", 5000)
    const { meta } = await peers.fetch(peer, idOf(bytes), {}, 5000)
    assert.deepEqual(meta.labels, labels)
  })

  it("may be a shard, as long as its blob's size wants", async () => {
    const { peers, peer } = await linked()
    const blob = noise(1, 300_000)
    const { shard_bytes } = striping(blob.length, 4)
    const policy = "REPLICATION_POLICY_EC42"
    const order = orderOf(blob, { policy, shard: { index: 5, data_shards: 4 } })
    const { copy } = await peers.send(peer, order, [noise(2, shard_bytes)], "put", 5000)
    assert.deepEqual([copy.kind, copy.shard, copy.size], ["shard", order.shard, blob.length])
    const other = { ...order, shard: { index: 1, data_shards: 4 } }
    const refused = peers.send(peer, other, [noise(3, shard_bytes)], "put", 5000)
    assert.equal(await codeOf(refused), "ALREADY_EXISTS")
    for (const wrong of [shard_bytes - 1, shard_bytes + 1, 0]) {
      const sent = peers.send(peer, order, [noise(2, wrong)], "put", 5000)
      assert.equal(await codeOf(sent), "INTERNAL")
    }
  })

  it("leaves nothing where it is not what it says, or ends before it is whole", async () => {
    const local = memoryEngine()
    const { peers, peer } = await linked(local)
    const bytes = noise(1, 2 * mib)
    const order = orderOf(bytes)
    const broken = async function* () {
      yield bytes.subarray(0, mib)
      throw new Error("the disk of the sender")
    }
    const endless = async function* () {
      for (;;) yield bytes
    }
    const cases = [[noise(2, 2 * mib)], [bytes.subarray(1)], broken(), endless()]
    for (const wrong of cases) {
      assert.notEqual(await codeOf(peers.send(peer, order, wrong, "put", 5000)), "OK")
    }
    assert.deepEqual(await local.copiesOf([order.id]), [undefined])
    assert.equal((await local.usage()).payload_bytes, 0)
    local.limit(2 * mib)
    // The put would fail if an aborted copy still reserved space.
    assert.equal(await codeOf(peers.send(peer, order, [bytes], "put", 5000)), "OK")
  })

  it("is never finished with too many or too few bytes, regardless of its store", async () => {
    const bytes = noise(1, 1000)
    const order = orderOf(bytes)
    const { checksum, id, size, policy, created_at, shard } = order
    const times = { created_at, put_at: created_at }
    const held = { kind: "whole", id, size, checksum, policy, ...times, shard } as const
    const easy = engineWith({
      receive: () => ({
        write: () => undefined,
        finish: async (stored_at) => ({ copy: { ...held, stored_at }, created: true }),
        abort: async () => undefined,
      }),
    })
    const { peers, peer } = await linked(easy)
    assert.equal((await peers.send(peer, order, [bytes], "put", 5000)).created, true)
    for (const wrong of [[], [bytes.subarray(1)], [bytes, bytes]]) {
      assert.equal(await codeOf(peers.send(peer, order, wrong, "put", 5000)), "INTERNAL")
    }
  })

  it("is aborted when the connection is lost in the middle of it", async () => {
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
    const { promise: aborted, resolve: abort } = Promise.withResolvers<void>()
    const local = memoryEngine()
    const watched = (receiving: IncomingCopy): IncomingCopy => ({
      ...receiving,
      write: (piece) => {
        begin()
        return receiving.write(piece)
      },
      abort: async () => {
        await receiving.abort()
        abort()
      },
    })
    const { peers, peer, door } = await linked({
      ...local,
      receive: (...given) => watched(local.receive(...given)),
    })
    const bytes = noise(1, 2 * mib)
    const cutOff = async function* () {
      yield bytes.subarray(0, mib)
      await begun
      door.close()
      await aborted
      yield bytes.subarray(mib)
    }
    const sent = peers.send(peer, orderOf(bytes), cutOff(), "put", 5000)
    assert.equal(await codeOf(sent), "UNAVAILABLE")
    await aborted
    assert.deepEqual(await local.copiesOf([idOf(bytes)]), [undefined])
  })

  it("waits for a receiver that is slow, and keeps little of 64 MiB in memory", async () => {
    let pulled = 0
    let taken = 0
    let ahead = 0
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const local = engineWith({
      receive: () => ({
        write: async (piece) => {
          await released
          taken += piece.length
        },
        finish: async () => {
          throw faultError({ _tag: "BlobStoreFailed", detail: `${taken} bytes` })
        },
        abort: async () => undefined,
      }),
    })
    const { peers, peer } = await linked(local)
    const piece = noise(1, mib)
    const long = async function* () {
      for (let at = 0; at < 64; at++) {
        pulled += mib
        ahead = Math.max(ahead, pulled - taken)
        yield piece
      }
    }
    const order = orderOf(piece, { size: 64 * mib })
    const sent = peers.send(peer, order, long(), "put", 60_000)
    // The copy is still blocked after the responses to later requests.
    for (let turn = 0; turn < 20; turn++) await peers.copiesOf(peer, [order.id])
    assert.ok(pulled <= window_bytes + 2 * mib, `${pulled} bytes were sent`)
    release()
    await assert.rejects(sent, { code: "INTERNAL", message: `${64 * mib} bytes` })
    assert.ok(ahead <= 2 * window_bytes, `${ahead} bytes were in memory`)
  })

  it("has a deadline of the time in which nothing moves, and not of all of it", async () => {
    /** Takes this time per MiB, regardless of how the bytes are split. */
    const slow = (pause_ms: number): Partial<MemoryEngine> => ({
      receive: () => ({
        write: ({ length }) =>
          new Promise((resolve) => setTimeout(resolve, (pause_ms * length) / mib)),
        finish: async () => {
          throw faultError({ _tag: "BlobStoreFailed", detail: "all came" })
        },
        abort: async () => undefined,
      }),
    })
    const order = orderOf(noise(1, 1), { size: 16 * mib })
    const pieces = Array.from({ length: 16 }, () => noise(1, mib))
    const moving = await linked(engineWith(slow(60)))
    const sent = moving.peers.send(moving.peer, order, pieces, "put", 500)
    await assert.rejects(sent, { code: "INTERNAL", message: "all came" })
    const stuck = await linked(engineWith(slow(60_000)))
    const late = stuck.peers.send(stuck.peer, order, pieces, "put", 200)
    assert.equal(await codeOf(late), "DEADLINE_EXCEEDED")
  })

  it("is rolled back only if that put sent it", async () => {
    const local = memoryEngine()
    const { peers, peer } = await linked(local)
    const bytes = noise(1, 10)
    const order = orderOf(bytes)
    await peers.send(peer, order, [bytes], "put", 5000)
    await peers.rollBack(peer, order.id, order.created_at + 1n)
    assert.equal((await local.copiesOf([order.id]))[0]?.kind, "whole")
    await peers.rollBack(peer, order.id, order.created_at)
    assert.deepEqual(await local.copiesOf([order.id]), [undefined])
  })
})
