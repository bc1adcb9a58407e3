/** Contract of every NodeEngine for deleted and released copies, and for its list. */
import assert from "node:assert/strict"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { noise } from "./engine-bytes.ts"
import type { Promised } from "./node-engine.ts"
import {
  getAll,
  idOf,
  kindsOf,
  no_id,
  one,
  origin,
  putOrder,
  send,
  sendShard,
  shardOf,
  tagIn,
  wholeOf,
} from "./node-engine-copies.ts"

const tombstone = (id: BlobId, deleted_at: bigint, is_cluster_wide: boolean) => ({
  kind: "tombstone",
  id,
  deleted_at,
  is_cluster_wide,
})

export const deletions = (promised: Promised) => {
  promised("a copy as old as the deletion here, or older, is refused", async (engine) => {
    for (const size of [1000, 100_000]) {
      const bytes = noise(1, size)
      const { id } = wholeOf(bytes)
      await engine.deleteClusterWide(id, origin, 600n)
      for (const created_at of [500n, 600n]) {
        const sent = () => send(engine, wholeOf(bytes, { created_at }), bytes)
        assert.equal(await tagIn(sent), "BlobDeletedHere")
      }
      assert.deepEqual(await one(engine, id), tombstone(id, 600n, true))
      assert.equal(await engine.tombstone(id), 600n)
      const { created } = await send(engine, wholeOf(bytes, { created_at: 601n }), bytes)
      assert.equal(created, true)
      assert.equal(await engine.tombstone(id), undefined)
      assert((await getAll(engine, id)).equals(bytes))
    }
    assert.deepEqual(await kindsOf(engine), ["stored", "stored"])
  })
  promised("a deletion here alone refuses older copies too", async (engine) => {
    const bytes = noise(1, 1000)
    const { id } = await engine.put(putOrder, [bytes], 1000n)
    await engine.delete(id, origin, 2000n)
    assert.deepEqual(await one(engine, id), tombstone(id, 2000n, false))
    assert.equal(await tagIn(() => send(engine, wholeOf(bytes), bytes)), "BlobDeletedHere")
    await send(engine, wholeOf(bytes, { created_at: 2001n }), bytes, 2500n)
  })
  promised("a deletion of every node's copies takes the one here out", async (engine) => {
    for (const size of [1000, 100_000]) {
      const bytes = noise(1, size)
      const { id } = await engine.put(putOrder, [bytes], 1000n)
      await engine.deleteClusterWide(id, { ...origin, actor: "somebody" }, 5000n)
      assert.equal(await tagIn(() => engine.get(id, {}, 6000n)), "BlobNotFound")
      assert.deepEqual(await one(engine, id), tombstone(id, 5000n, true))
      const fact = (await engine.scan(0, 10)).at(-1)
      assert.equal(fact?.kind, "deleted")
      assert.equal(fact?.actor, "somebody")
      assert.equal((await engine.usage()).payload_bytes, 0)
    }
  })
  promised("a deletion of every node's copies is remembered without one", async (engine) => {
    await engine.deleteClusterWide(no_id, origin, 700n)
    assert.deepEqual(await one(engine, no_id), tombstone(no_id, 700n, true))
    assert.deepEqual(await engine.scan(0, 10), [])
    await engine.deleteClusterWide(no_id, origin, 600n)
    assert.deepEqual(await one(engine, no_id), tombstone(no_id, 700n, true))
    await engine.deleteClusterWide(no_id, origin, 800n)
    assert.deepEqual(await one(engine, no_id), tombstone(no_id, 800n, true))
  })
  promised("a copy that was made after the deletion stays", async (engine) => {
    const bytes = noise(1, 1000)
    const { id } = await engine.put(putOrder, [bytes], 1000n)
    const copy = await one(engine, id)
    await engine.deleteClusterWide(id, origin, 999n)
    assert.deepEqual(await one(engine, id), copy)
    await engine.deleteClusterWide(id, origin, 1000n)
    assert.deepEqual(await one(engine, id), tombstone(id, 1000n, true))
  })
  promised("of two deletions the cluster-wide one is returned", async (engine) => {
    const bytes = noise(1, 1000)
    const id = idOf(bytes)
    await engine.deleteClusterWide(id, origin, 600n)
    await engine.delete(id, origin, 2000n)
    assert.deepEqual(await one(engine, id), {
      ...tombstone(id, 600n, true),
      refuses_until: 2000n,
    })
    const between = wholeOf(bytes, { created_at: 1999n })
    assert.equal(await tagIn(() => send(engine, between, bytes)), "BlobDeletedHere")
    const other = noise(2, 1000)
    await engine.delete(idOf(other), origin, 3000n)
    await engine.deleteClusterWide(idOf(other), origin, 600n)
    assert.deepEqual(await one(engine, idOf(other)), {
      ...tombstone(idOf(other), 600n, true),
      refuses_until: 3000n,
    })
    const late = wholeOf(other, { created_at: 2999n })
    assert.equal(await tagIn(() => send(engine, late, other)), "BlobDeletedHere")
  })
  promised("a put after a deletion by a clock that is ahead is younger than it", async (engine) => {
    const bytes = noise(1, 1000)
    await engine.deleteClusterWide(idOf(bytes), origin, 9_000_000n)
    const { id, meta, created } = await engine.put(putOrder, [bytes], 4000n)
    assert.equal(created, true)
    assert.equal(meta.created_at, 9_000_001n)
    assert.deepEqual(await engine.stat(id), meta)
    await engine.deleteClusterWide(id, origin, 9_000_000n)
    assert((await getAll(engine, id)).equals(bytes))
    // Only the time that nodes compare is ahead, not the fact's own time.
    const [fact] = await engine.scan(0, 10)
    assert.equal(fact?.at, 4000n)
  })
  promised("a delete of a copy that is of a clock ahead keeps it away", async (engine) => {
    const bytes = noise(1, 1000)
    const order = wholeOf(bytes, { created_at: 9_000_000_000_000_000_000n })
    await send(engine, order, bytes, 1000n)
    await engine.delete(order.id, origin, 2000n)
    assert.equal(await tagIn(() => send(engine, order, bytes, 3000n)), "BlobDeletedHere")
  })
}

export const releases = (promised: Promised) => {
  promised("a released copy leaves a fact and no deletion", async (engine) => {
    for (const size of [1000, 100_000]) {
      const bytes = noise(1, size)
      const { id } = await engine.put(putOrder, [bytes], 1000n + BigInt(size))
      const copy = await one(engine, id)
      const stored_at = copy?.kind === "whole" ? copy.stored_at : 0n
      assert.equal(await engine.release(id, stored_at - 1n, 2_000_000n), false)
      assert.deepEqual(await one(engine, id), copy)
      assert.equal(await engine.release(id, stored_at, 2_000_000n), true)
      assert.equal(await engine.release(id, stored_at, 3_000_000n), false)
      assert.equal(await one(engine, id), undefined)
      assert.equal(await engine.tombstone(id), undefined)
      assert.equal(await tagIn(() => engine.get(id, {}, 4_000_000n)), "BlobNotFound")
      assert.equal(await tagIn(() => engine.stat(id)), "BlobNotFound")
      const { payload_bytes, blob_count, quarantined } = await engine.usage()
      assert.deepEqual({ payload_bytes, blob_count, quarantined }, empty)
      const fact = (await engine.scan(0, 10)).at(-1)
      assert.deepEqual([fact?.kind, fact?.id, fact?.size], ["released", id, size])
      const again = await send(engine, wholeOf(bytes), bytes, 5_000_000n)
      assert.equal(again.created, true)
      assert((await getAll(engine, id)).equals(bytes))
      await engine.delete(id, origin, 6_000_000n)
    }
    assert.equal(await engine.release(no_id, 1000n, 2000n), false)
  })
  promised("a released shard frees its own bytes", async (engine) => {
    const order = shardOf(noise(1, 100_000), { index: 2, data_shards: 4 })
    const { copy } = await sendShard(engine, order)
    const { payload_bytes } = await engine.usage()
    assert.equal(await engine.release(order.id, copy.stored_at, 2000n), true)
    const [stored, released] = await engine.scan(0, 10)
    assert.deepEqual(released?.shard, { index: 2, data_shards: 4, bytes: payload_bytes })
    assert.deepEqual(released?.shard, stored?.shard)
    assert.equal((await engine.usage()).payload_bytes, 0)
    // Another shard may take its place.
    const other = shardOf(noise(1, 100_000), { index: 3, data_shards: 4 })
    assert.equal((await sendShard(engine, other, 3000n)).created, true)
  })
}
const empty = { payload_bytes: 0, blob_count: 0, quarantined: 0 }

export const listing = (promised: Promised) => {
  promised("copies and deletions are listed in the order of their identifiers", async (engine) => {
    const messages: Array<string> = []
    for (let seed = 0; seed < 60; seed++) {
      const bytes = noise(seed, 100)
      const order = shardOf(bytes, { index: seed % 6, data_shards: 4 })
      const at = 10_000n + BigInt(seed)
      if (seed % 4 === 0) await engine.deleteClusterWide(order.id, origin, at)
      else if (seed % 4 === 1) await sendShard(engine, order, at)
      else await send(engine, wholeOf(bytes), bytes, at)
      const copy = await one(engine, order.id)
      if (seed % 4 !== 3) messages.push(order.id)
      else if (copy?.kind === "whole") {
        assert.equal(await engine.release(order.id, copy.stored_at, at), true)
      }
    }
    messages.sort()
    for (const limit of [1, 7, 1000]) {
      const ids: Array<string> = []
      let after: string | undefined = ""
      while (after !== undefined) {
        const page = await engine.copies(after, "", limit)
        assert(page.copies.length <= limit)
        ids.push(...page.copies.map(({ id }) => id))
        const all = await engine.copiesOf(page.copies.map(({ id }) => id))
        assert.deepEqual(all, page.copies)
        after = page.next
      }
      assert.deepEqual(ids, messages)
    }
    const [first = "", , third = "", fourth = ""] = messages
    const inside = await engine.copies(first, fourth, 10)
    assert.deepEqual(
      inside.copies.map(({ id }) => id),
      messages.slice(1, 3),
    )
    assert.equal(inside.next, undefined)
    const upTo = await engine.copies("", third, 10)
    assert.deepEqual(
      upTo.copies.map(({ id }) => id),
      messages.slice(0, 2),
    )
  })
  promised("unknown identifiers return nothing", async (engine) => {
    const bytes = noise(1, 10)
    const { id } = await engine.put(putOrder, [bytes], 1000n)
    const [none, copy, same] = await engine.copiesOf([no_id, id, id])
    assert.equal(none, undefined)
    assert.equal(copy?.id, id)
    assert.deepEqual(same, copy)
    assert.deepEqual(await engine.copiesOf([]), [])
    assert.equal(await tagIn(() => engine.read(no_id, {}, 2000n)), "BlobNotFound")
  })
}
