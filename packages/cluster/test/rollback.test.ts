import assert from "node:assert/strict"
import { describe, it } from "@effect/vitest"
import { blake3 } from "@napi-rs/blake-hash"
import fc from "fast-check"
import type { CopyOrder } from "#actors/blob-storage/ports/node-engine.ts"
import { type MemoryEngine, memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { makeNewestMap, rollbackGuard } from "../rollback.ts"
import { idOf, origin } from "./erasure/cluster.ts"

const bytes = Buffer.from("some bytes that were put")
const id = idOf(bytes)
/** A shard as a put sends it; its bytes do not matter here. */
const shard = Buffer.alloc(64)

const orderAt = (created_at: bigint, index = 1): CopyOrder => ({
  ...{ id, checksum: blake3(bytes).toString("hex"), size: bytes.length, labels: {}, origin },
  ...{ policy: "REPLICATION_POLICY_EC42", created_at, shard: { index, data_shards: 4 } },
})

const makeNode = (change: (engine: MemoryEngine) => MemoryEngine = (engine) => engine) => {
  let time = 1000n
  const tick = () => {
    time += 1n
    return time
  }
  const engine = change(memoryEngine({}))
  const guard = rollbackGuard(engine, { now: tick, after: () => () => undefined })
  return {
    ...{ engine, guard },
    now: () => time,
    receive: async (created_at: bigint) => {
      const receiving = guard.receive(orderAt(created_at), shard.length)
      try {
        await receiving.write(shard)
        return await receiving.finish(tick())
      } finally {
        await receiving.abort()
      }
    },
    isHere: async () => (await engine.copiesOf([id]))[0]?.kind === "shard",
  }
}

describe("a shard of an unfinished put", () => {
  it("is rolled back only by the put that sent it", async () => {
    const { guard, receive, isHere } = makeNode()
    await receive(10n)
    await guard.rollBack(id, 11n)
    assert.equal(await isHere(), true)
    await guard.rollBack(id, 10n)
    assert.equal(await isHere(), false)
    // A missing shard counts as rolled back.
    await guard.rollBack(id, 10n)
  })

  it("is rewritten at most twice for any number of concurrent renewals", async () => {
    const renewals: Array<bigint> = []
    const written = new Set<bigint>()
    const { guard, receive } = makeNode((engine) => ({
      ...engine,
      renew: async (blob, put_at, at) => {
        renewals.push(put_at)
        const copy = await engine.renew(blob, put_at, at)
        if (copy) written.add(copy.stored_at)
        return copy
      },
    }))
    await receive(10n)
    const times = Array.from({ length: 50 }, (_, n) => 20n + BigInt(n))
    const copies = await Promise.all(times.map((time) => guard.renew(id, time, 1000n + time)))
    for (const [n, copy] of copies.entries()) assert.ok((copy?.put_at ?? 0n) >= 20n + BigInt(n))
    assert.equal(renewals.length, times.length)
    assert.ok(written.size <= 2, `${written.size} times`)
    assert.equal((await guard.renew(id, 100n, 2000n))?.put_at, 100n)
  })

  it("is renewed to a time whose first renewal failed", async () => {
    let turns = 0
    const { guard, receive } = makeNode((engine) => ({
      ...engine,
      renew: async (...renewing) => {
        turns += 1
        if (turns !== 2) return engine.renew(...renewing)
        // A renewal to an earlier time arrives meanwhile, and waits behind the others.
        await new Promise((resolve) => setImmediate(resolve))
        late = guard.renew(id, 20n, 4n)
        throw new Error("the disk is full")
      },
    }))
    let late: Promise<unknown> | undefined
    await receive(10n)
    const first = guard.renew(id, 11n, 1n)
    const [failing, behind] = [guard.renew(id, 30n, 2n), guard.renew(id, 40n, 3n)]
    await assert.rejects(failing, /full/)
    assert.equal((await behind)?.put_at, 40n)
    await Promise.all([first, late])
  })

  it("leaves the deletions that it replaced", async () => {
    const { engine, guard, receive } = makeNode()
    await engine.deleteClusterWide(id, origin, 5n)
    await engine.delete(id, origin, 7n)
    await receive(10n)
    await guard.rollBack(id, 10n)
    const [left] = await engine.copiesOf([id])
    assert.equal(left?.kind === "tombstone" && left.is_cluster_wide && left.deleted_at, 5n)
    await assert.rejects(receive(7n), /BlobDeletedHere/)
  })

  it("stays if it was reported to another put", async () => {
    const { guard, receive, isHere } = makeNode()
    await receive(10n)
    assert.equal((await receive(12n)).created, false)
    await guard.rollBack(id, 10n)
    await guard.rollBack(id, 12n)
    assert.equal(await isHere(), true)
  })

  it("stays if it was reported to any node", async () => {
    const { guard, receive, isHere } = makeNode()
    await guard.copiesOf([id])
    await receive(10n)
    await guard.copiesOf([idOf(shard), id])
    await guard.rollBack(id, 10n)
    assert.equal(await isHere(), true)
  })

  it("stays if another put has renewed it", async () => {
    const { engine, guard, receive, isHere } = makeNode()
    assert.equal(await guard.renew(id, 12n, 12n), undefined)
    await receive(10n)
    assert.equal((await guard.renew(id, 12n, 12n))?.put_at, 12n)
    await guard.rollBack(id, 10n)
    assert.equal(await isHere(), true)
    const [copy] = await engine.copiesOf([id])
    assert.equal(copy?.kind === "shard" && copy.created_at, 10n)
  })

  it("stays if it arrived before this process started", async () => {
    const { engine, receive } = makeNode()
    await receive(10n)
    const next = rollbackGuard(engine, { now: () => 5000n, after: () => () => undefined })
    await next.rollBack(id, 10n)
    assert.equal((await engine.copiesOf([id]))[0]?.kind, "shard")
  })

  it("is not reported during a rollback", async () => {
    const slow = Promise.withResolvers<void>()
    const { guard, receive } = makeNode((engine) => ({
      ...engine,
      release: async (...of) => {
        await slow.promise
        return engine.release(...of)
      },
    }))
    await receive(10n)
    const rollback = guard.rollBack(id, 10n)
    const query = guard.copiesOf([id])
    const again = receive(12n)
    slow.resolve()
    await rollback
    assert.deepEqual(await query, [undefined])
    assert.equal((await again).created, true)
  })

  it("is not rolled back while it is being reported", async () => {
    const slow = Promise.withResolvers<void>()
    let questions = 0
    const { guard, receive, isHere } = makeNode((engine) => ({
      ...engine,
      copiesOf: async (ids) => {
        const copies = await engine.copiesOf(ids)
        // The guard's own query on the shard's arrival is the first.
        if (questions++ === 1) await slow.promise
        return copies
      },
    }))
    await receive(10n)
    const query = guard.copiesOf([id])
    await guard.rollBack(id, 10n)
    slow.resolve()
    assert.equal((await query)[0]?.kind, "shard")
    assert.equal(await isHere(), true)
  })
})

describe("a shard of an abandoned put", () => {
  it("is discarded if it was not reported since", async () => {
    const { guard, receive, isHere, now } = makeNode()
    const { copy } = await receive(10n)
    await guard.copiesOf([id])
    const since = now() + 1n
    assert.equal(await guard.releaseUnreported(id, copy.stored_at + 1n, since), false)
    assert.equal(await guard.releaseUnreported(id, copy.stored_at, 2n), false)
    assert.equal(await guard.releaseUnreported(id, copy.stored_at, since - 1n), false)
    assert.equal(await guard.releaseUnreported(id, copy.stored_at, since), true)
    assert.equal(await isHere(), false)
  })

  it("stays if it was reported since", async () => {
    const { guard, receive, isHere, now } = makeNode()
    const { copy } = await receive(10n)
    const since = now() + 1n
    await guard.copiesOf([id])
    assert.equal(await guard.releaseUnreported(id, copy.stored_at, since), false)
    assert.equal(await isHere(), true)
  })
})

describe("a copy that a put relies on", () => {
  it("is verified once for all requests before it is confirmed", async () => {
    let reads = 0
    const { engine, guard, receive, isHere } = makeNode((made) => ({
      ...made,
      read: (...args) => {
        reads += 1
        return made.read(...args)
      },
    }))
    await receive(10n)
    const both = await Promise.all([guard.renew(id, 20n, 2000n), guard.renew(id, 21n, 2000n)])
    assert.ok(both.every((copy) => (copy?.put_at ?? 0n) >= 20n))
    assert.equal(reads, 1)
    engine.corrupt(id)
    assert.equal(await guard.renew(id, 30n, 3000n), undefined)
    assert.equal(await isHere(), false)
    assert.equal((await engine.usage()).quarantined, 1)
    assert.equal((await receive(40n)).created, true)
    assert.equal((await guard.renew(id, 50n, 5000n))?.put_at, 50n)
  })

  it("is not confirmed if it cannot be read", async () => {
    const { guard, receive } = makeNode((made) => ({
      ...made,
      read: () => Promise.reject(new Error("the disk has failed")),
    }))
    await receive(10n)
    await assert.rejects(guard.renew(id, 20n, 2000n), /the disk has failed/)
    assert.equal((await guard.renewVerified(id, 20n, 2000n))?.put_at, 20n)
  })
})

/** The model of the map: a list with the newest entry at its end. */
const naiveNewest = (pairs_max: number) => {
  let pairs: ReadonlyArray<readonly [BlobId, number]> = []
  const remove = (id: BlobId) => {
    pairs = pairs.filter(([other]) => other !== id)
  }
  return {
    get: (id: BlobId) => pairs.find(([other]) => other === id)?.[1],
    delete: remove,
    remember: (id: BlobId, value: number) => {
      remove(id)
      pairs = pairs.concat([[id, value]])
      if (pairs.length <= pairs_max) return undefined
      const [oldest] = pairs
      pairs = pairs.slice(1)
      return oldest?.[1]
    },
  }
}

describe("a bounded map", () => {
  it("keeps the newest entries after any updates and deletes", () => {
    const ids = Array.from({ length: 9 }, (_, n) => idOf(Buffer.from([n])))
    const act = fc.record({ is_delete: fc.boolean(), n: fc.nat({ max: ids.length - 1 }) })
    fc.assert(
      fc.property(fc.array(act, { maxLength: 300, size: "max" }), (acts) => {
        const [ours, naive] = [makeNewestMap<number>(4), naiveNewest(4)]
        for (const [value, { is_delete, n }] of acts.entries()) {
          const id = ids[n] ?? assert.fail()
          if (is_delete) {
            ours.delete(id)
            naive.delete(id)
          } else assert.equal(ours.remember(id, value), naive.remember(id, value))
          for (const one of ids) assert.equal(ours.get(one), naive.get(one))
        }
      }),
    )
  })
})
