/** Requests between nodes over real connections, and their rejections. */
import assert from "node:assert/strict"
import { afterEach, describe, it } from "@effect/vitest"
import { type BlobFault, faultError } from "#actors/blob-storage/ports/fault.ts"
import { memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { operations } from "#adapters/blob-storage/peers/message.ts"
import { noise } from "../../../contract/blob-storage/engine-bytes.ts"
import {
  all,
  codeOf,
  endAll,
  engineWith,
  idOf,
  keeps,
  known_ring,
  linked,
  mib,
  orderOf,
  origin,
} from "../../../world/blob-storage/peers-linked.ts"

afterEach(endAll)

describe("a copy that is fetched", () => {
  const stored = async (size: number) => {
    const local = memoryEngine()
    const bytes = noise(1, size)
    const order = orderOf(bytes)
    const receiving = local.receive(order, size)
    await receiving.write(bytes)
    const { copy } = await receiving.finish(7n)
    return { local, bytes, copy, id: order.id, ...(await linked(local)) }
  }

  for (const size of [0, 5, 3 * mib + 1]) {
    it(`comes with what is known of it, whole and in ranges, at ${size} bytes`, async () => {
      const { peers, peer, bytes, copy, id, local } = await stored(size)
      for (const range of [{}, { offset: 2 }, { offset: 1, length: 2 * mib }, { length: 0 }]) {
        const fetched = await peers.fetch(peer, id, range, 5000)
        assert.deepEqual(fetched.copy, copy)
        assert.deepEqual(fetched.meta, (await local.get(id, {}, 0n)).meta)
        const { offset = 0, length = size } = range
        assert.ok((await all(fetched.bytes)).equals(bytes.subarray(offset, offset + length)))
      }
    })
  }

  it("stops at the source when no more of it is wanted", async () => {
    const { promise: stopped, resolve: stop } = Promise.withResolvers<void>()
    const { local, id } = await stored(8 * mib)
    const watched = async function* (windows: AsyncIterable<Uint8Array>) {
      try {
        yield* windows
        yield* Array.from({ length: 64 }, () => noise(2, mib))
      } finally {
        stop()
      }
    }
    const { peers, peer } = await linked({
      ...local,
      read: async (...given) => {
        const reading = await local.read(...given)
        return { ...reading, windows: () => watched(reading.windows()) }
      },
    })
    const { bytes } = await peers.fetch(peer, id, {}, 5000)
    await bytes.next()
    await bytes.return?.()
    await stopped
    assert.deepEqual((await peers.copiesOf(peer, [id]))[0]?.kind, "whole")
  })

  it("ends where its next piece does not come in time", async () => {
    const { local, id } = await stored(2 * mib)
    const { peers, peer } = await linked({
      ...local,
      read: async (...given) => {
        const reading = await local.read(...given)
        const windows = async function* () {
          yield noise(1, mib)
          await new Promise(() => undefined)
        }
        return { ...reading, windows }
      },
    })
    const { bytes } = await peers.fetch(peer, id, {}, 100)
    for (let came = 0; came < mib; ) came += (await bytes.next()).value?.length ?? mib + 1
    assert.equal(await codeOf(bytes.next()), "DEADLINE_EXCEEDED")
  })

  it("says where its bytes turn out to be corrupt, in the middle too", async () => {
    const { local, id, peers, peer } = await stored(3 * mib)
    assert.ok(local.corrupt(id, 2 * mib))
    const { bytes } = await peers.fetch(peer, id, {}, 5000)
    assert.equal(await codeOf(all(bytes)), "DATA_LOSS")
    assert.equal(await codeOf(peers.fetch(peer, id, {}, 5000)), "NOT_FOUND")
  })
})

describe("what is known of blobs", () => {
  it("is answered of 10,000 at once, in the order in which they were asked for", async () => {
    const local = memoryEngine()
    const { peers, peer } = await linked(local)
    const [whole, gone] = [noise(1, 10), noise(2, 10)]
    const order = orderOf(whole)
    await peers.send(peer, order, [whole], "put", 5000)
    await peers.deleteClusterWide(peer, idOf(gone), origin, 5n)
    const blanks = Array.from({ length: 9998 }, (_, n) => idOf(Buffer.from(`${n}`)))
    const ids = [idOf(gone), ...blanks, order.id]
    const copies = await peers.copiesOf(peer, ids)
    assert.deepEqual(copies, await local.copiesOf(ids))
    assert.deepEqual(
      [copies.length, copies[0]?.kind, copies.at(-1)?.kind],
      [10_000, "tombstone", "whole"],
    )
    assert.deepEqual(await peers.copiesOf(peer, []), [])
    assert.equal(await codeOf(peers.copiesOf(peer, [...ids, order.id])), "INTERNAL")
  })

  it("is listed page by page, with deletions", async () => {
    const local = memoryEngine()
    const { peers, peer } = await linked(local)
    for (let n = 0; n < 20; n++) {
      const bytes = noise(n + 1, 10)
      if (n % 3 === 0) await local.deleteClusterWide(idOf(bytes), origin, 5n)
      else await peers.send(peer, orderOf(bytes), [bytes], "put", 5000)
    }
    for (const limit of [1, 7, 10_000, 1_000_000]) {
      const found = []
      for (let after: string | undefined = ""; after !== undefined; ) {
        const page: Awaited<ReturnType<typeof peers.copies>> = await peers.copies(
          peer,
          after,
          "",
          limit,
        )
        assert.ok(page.copies.length <= limit)
        found.push(...page.copies)
        after = page.next
      }
      assert.deepEqual(found, (await local.copies("", "", 100)).copies)
    }
    const half = "8".padEnd(32, "0")
    const { copies } = await peers.copies(peer, "", half, 100)
    assert.deepEqual(copies, (await local.copies("", half, 100)).copies)
  })
})

describe("a copy that takes over a later put's time", () => {
  it("is returned in its new state; a missing copy returns nothing", async () => {
    const local = memoryEngine()
    const { peers, peer } = await linked(local)
    const bytes = noise(1, 1000)
    const order = orderOf(bytes)
    assert.equal(await peers.renew(peer, order.id, 5n, 5000), undefined)
    await peers.send(peer, { ...order, put_at: order.created_at + 1n }, [bytes], "put", 5000)
    for (const put_at of [1n, order.created_at + 2n]) {
      const copy = await peers.renew(peer, order.id, put_at, 5000)
      assert.deepEqual([copy], await local.copiesOf([order.id]))
      const least = order.created_at + 1n
      assert.equal(copy?.put_at, put_at > least ? put_at : least)
    }
    await local.deleteClusterWide(order.id, origin, order.created_at + 2n)
    assert.equal(await peers.renew(peer, order.id, order.created_at + 3n, 5000), undefined)
  })

  it("is awaited until the caller's deadline", async () => {
    const { peers, peer } = await linked(engineWith({ renew: () => new Promise(() => {}) }))
    const pending = peers.renew(peer, orderOf(noise(1, 10)).id, 5n, 20)
    await assert.rejects(pending, /did not respond within 20 ms/)
  })
})

describe("what a node keeps", () => {
  it("is promised of each of 10,000, for the ring that is named", async () => {
    const { peers, peer } = await linked()
    const ids = Array.from({ length: 9999 }, (_, n) => idOf(Buffer.from(`${n}`)))
    const kept = await peers.keeps(peer, ids, 7, false)
    assert.deepEqual(kept, await keeps(ids, 7, false))
    assert.equal(kept.filter((is_kept) => is_kept).length, 5000)
    assert.deepEqual(await peers.keeps(peer, ids, 7, true), await keeps(ids, 7, true))
    assert.ok((await peers.keeps(peer, ids, 8, false)).every((is_kept) => !is_kept))
    assert.deepEqual(await peers.keeps(peer, [], 7, false), [])
  })
})

describe("a node's ring", () => {
  it("is returned by version", async () => {
    const { peers, peer } = await linked()
    assert.equal(await peers.ringVersion(peer), known_ring)
  })
})

describe("a node's refusal", () => {
  const id = idOf(noise(1, 1))
  const faults: ReadonlyArray<readonly [BlobFault, string]> = [
    [{ _tag: "BlobNotFound", id }, "NOT_FOUND"],
    [{ _tag: "BlobCorrupt", id, detail: "rot" }, "DATA_LOSS"],
    [{ _tag: "BlobAlreadyExists", id, detail: "another shard" }, "ALREADY_EXISTS"],
    [{ _tag: "BlobDeletedHere", id, deleted_at: 1n }, "FAILED_PRECONDITION"],
    [{ _tag: "BlobCapacityExceeded", detail: "full" }, "RESOURCE_EXHAUSTED"],
    [{ _tag: "BlobTooLarge", bytes_max: 1 }, "RESOURCE_EXHAUSTED"],
    [{ _tag: "BlobStoreReadOnly", detail: "a sync failed" }, "UNAVAILABLE"],
    [{ _tag: "BlobStoreFailed", detail: "broken" }, "INTERNAL"],
    [{ _tag: "BlobIdMismatch", expected: id, actual: id }, "INTERNAL"],
  ]
  for (const [fault, code] of faults) {
    it(`is ${code} for ${fault._tag}`, async () => {
      const failing = async () => {
        throw faultError(fault)
      }
      const { peers, peer } = await linked(
        engineWith({ read: failing, deleteClusterWide: failing, copiesOf: failing }),
      )
      assert.equal(await codeOf(peers.fetch(peer, id, {}, 5000)), code)
      assert.equal(await codeOf(peers.deleteClusterWide(peer, id, origin, 1n)), code)
      assert.equal(await codeOf(peers.copiesOf(peer, [id])), code)
    })
  }

  it("is FAILED_PRECONDITION for a copy that is older than a deletion there", async () => {
    const { peers, peer } = await linked()
    const bytes = noise(1, 10)
    const order = orderOf(bytes)
    await peers.deleteClusterWide(peer, order.id, origin, order.created_at)
    const sent = peers.send(peer, order, [bytes], "put", 5000)
    assert.equal(await codeOf(sent), "FAILED_PRECONDITION")
    const newer = { ...order, created_at: order.created_at + 1n }
    assert.equal((await peers.send(peer, newer, [bytes], "put", 5000)).created, true)
  })

  it("is UNAVAILABLE while its store is not open, and if no process listens", async () => {
    const { peers, peer } = await linked(memoryEngine(), false)
    assert.equal(await codeOf(peers.copiesOf(peer, [id])), "UNAVAILABLE")
    const nobody = { node_id: "node-9", address: "127.0.0.1:1" }
    assert.equal(await codeOf(peers.copiesOf(nobody, [id])), "UNAVAILABLE")
  })

  it("is INTERNAL for what is no question, and the link goes on", async () => {
    const { calls, address, peers, peer, door } = await linked()
    const wrong: ReadonlyArray<readonly [number, unknown, Uint8Array]> = [
      [200, {}, noise(1, 1)],
      [operations.replicate, {}, noise(1, 1)],
      [operations.replicate, { copy: "", labels: {}, origin }, noise(1, 1)],
      [
        operations.replicate,
        { copy: Buffer.alloc(80).toString("base64"), labels: {}, origin },
        noise(1, 1),
      ],
      [
        operations.store_shard,
        { copy: Buffer.alloc(80, 2).toString("base64"), labels: {}, origin },
        noise(1, 1),
      ],
      [operations.fetch_shard, { id: "../../etc/passwd" }, noise(1, 0)],
      [operations.fetch_shard, { id, offset: -1 }, noise(1, 0)],
      [operations.delete_internal, { id, origin, deleted_at: "now" }, noise(1, 0)],
      [operations.delete_internal, { id, origin, deleted_at: "-1" }, noise(1, 0)],
      [operations.have, {}, noise(1, 17)],
      [operations.have, {}, noise(1, 160_016)],
      [operations.copies, { after_id: "", until_id: "", limit: 0 }, noise(1, 0)],
      [operations.copies, { after_id: "x", until_id: "", limit: 1 }, noise(1, 0)],
      [operations.take_back, null, noise(1, 0)],
    ]
    for (const [operation, json, bytes] of wrong) {
      const pending = calls.call(address, operation, json, [bytes], 5000)
      assert.equal(await codeOf(pending), "INTERNAL", JSON.stringify([operation, json]))
    }
    assert.deepEqual(await peers.copiesOf(peer, [id]), [undefined])
    assert.equal(door.count(), 1)
  })
})
