import assert from "node:assert/strict"
import { describe, it } from "@effect/vitest"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import type { MemoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import {
  bytesOf,
  holdersIn,
  idOf,
  makeCluster,
  orderOf,
  origin,
  type TestCluster,
} from "./cluster.ts"

const failsWith = (tag: string, detail = /./) => ({
  fault: (cause: unknown) => {
    const fault = faultOf(cause)
    assert.equal(fault._tag, tag)
    if ("detail" in fault) assert.match(fault.detail, detail)
    return true
  },
})

/** Whether all nodes return these bytes. */
const readsEverywhere = async (cluster: TestCluster, bytes: Uint8Array) => {
  for (const [at, { is_up }] of cluster.nodes.entries()) {
    if (!is_up) continue
    const reading = await cluster.get(at, idOf(bytes))
    assert.ok((await cluster.until(bytesOf(reading))).equals(bytes))
  }
}

/** Wraps engines: `receive` fails on the named nodes at piece `at`, or at the end. */
const failing = (node_ids: ReadonlyArray<string>, at: number, stalls = false) => {
  const receiveOf =
    (made: NodeEngine): NodeEngine["receive"] =>
    (order, bytes) => {
      const receiving = made.receive(order, bytes)
      let piece = 0
      const fail = () => {
        if (stalls) return new Promise<never>(() => {})
        return Promise.reject(new Error("the disk has failed"))
      }
      return {
        ...receiving,
        write: (part) => (piece++ === at ? fail() : receiving.write(part)),
        finish: (time) => (piece <= at ? fail() : receiving.finish(time)),
      }
    }
  return (node_id: string, made: MemoryEngine): MemoryEngine =>
    node_ids.includes(node_id) ? { ...made, receive: receiveOf(made) } : made
}

const six = ["n00", "n01", "n02", "n03", "n04", "n05"]

describe("an erasure coded put", () => {
  it("stores a shard on each owner, and is readable on all nodes", async () => {
    const cluster = makeCluster({ nodes: 7 })
    for (const size of [0, 1, 63, 64, 65, 4096, 65_535, 65_536, 262_144, 262_145, 3_000_000]) {
      const bytes = noise(size, size)
      const { answer, stored_on, failed } = await cluster.put(0, orderOf("EC42"), [bytes])
      assert.equal(answer.created, true)
      assert.equal(answer.id, idOf(bytes))
      assert.equal(answer.meta.size, BigInt(size))
      assert.deepEqual(failed, [])
      const holders = await holdersIn(cluster, answer.id)
      assert.deepEqual(new Set(holders.keys()), new Set([0, 1, 2, 3, 4, 5]))
      assert.deepEqual(
        [...holders.values()].map(({ node_id }) => node_id).sort(),
        [...stored_on].sort(),
      )
      assert.deepEqual((await cluster.get(6, answer.id)).meta, answer.meta)
      await readsEverywhere(cluster, bytes)
    }
  })

  it("of 8 data shards needs ten nodes, and uses each", async () => {
    const cluster = makeCluster({ nodes: 10 })
    const bytes = noise(9, 1_700_000)
    const { stored_on } = await cluster.put(3, orderOf("EC82"), [
      bytes.subarray(0, 7),
      bytes.subarray(7),
    ])
    assert.equal(new Set(stored_on).size, 10)
    await readsEverywhere(cluster, bytes)
    const few = makeCluster({ nodes: 9 })
    await assert.rejects(few.put(0, orderOf("EC82"), [bytes]), (cause) => {
      assert.deepEqual(faultOf(cause), { _tag: "BlobTooFewNodes", have: 9, need: 10 })
      return true
    })
  })

  it("that is repeated changes nothing and returns the first response", async () => {
    const cluster = makeCluster({ nodes: 8 })
    const bytes = noise(1, 5000)
    const first = await cluster.put(0, orderOf("EC42"), [bytes])
    const before = await cluster.heldOf(first.answer.id)
    const second = await cluster.put(5, orderOf("EC42", { labels: { other: "1" } }), [bytes])
    assert.deepEqual(second.answer, { ...first.answer, created: false })
    assert.deepEqual(second.failed, [])
    assert.deepEqual(await cluster.heldOf(first.answer.id), before)
  })

  it("is refused if the blob is stored with another policy, or must not be stored", async () => {
    const cluster = makeCluster({ nodes: 10 })
    const bytes = noise(2, 5000)
    const { answer } = await cluster.put(0, orderOf("EC42"), [bytes])
    const refused = (order: ReturnType<typeof orderOf>, tag: string) =>
      assert.rejects(cluster.put(1, order, [bytes]), failsWith(tag).fault)
    await refused(orderOf("EC82"), "BlobAlreadyExists")
    await refused(orderOf("EC42", { if_none_match: true }), "BlobAlreadyExists")
    await refused(orderOf("EC42", { expected_id: idOf(noise(3, 3)) }), "BlobIdMismatch")
    const other = noise(4, 10)
    const whole = orderOf("REPLICATION_POLICY_REPLICA3")
    for (const { engine } of cluster.nodes) await engine.put(whole, [other], cluster.world.now())
    await assert.rejects(
      cluster.put(1, orderOf("EC42"), [other]),
      failsWith("BlobAlreadyExists").fault,
    )
    assert.deepEqual((await cluster.get(2, answer.id)).meta, answer.meta)
  })

  it("tolerates two failed owners at any piece, and is rolled back after three", async () => {
    const bytes = noise(5, 5 * 262_144 + 1000)
    for (const count of [1, 2, 3]) {
      for (let at = 0; at <= 6; at++) {
        const failed = ["n01", "n03", "n04"].slice(0, count)
        const cluster = makeCluster({ nodes: 6, seed: at, engineOf: failing(failed, at) })
        const put = cluster.put(0, orderOf("EC42"), [bytes])
        if (count < 3) {
          assert.deepEqual([...(await put).failed].sort(), failed)
          await readsEverywhere(cluster, bytes)
          continue
        }
        await assert.rejects(put, failsWith("BlobShardsFailed", /3 of 6 shard stores failed/).fault)
        assert.deepEqual(await cluster.heldOf(idOf(bytes)), {})
      }
    }
  })

  it("drops a node that accepts no more data", async () => {
    for (const size of [1000, 2_000_000]) {
      const cluster = makeCluster({ nodes: 6, engineOf: failing(["n02", "n05"], 0, true) })
      const bytes = noise(size, size)
      const { failed } = await cluster.put(0, orderOf("EC42"), [bytes])
      assert.deepEqual([...failed].sort(), ["n02", "n05"])
      assert.ok(cluster.world.ms() < 12_000, `${cluster.world.ms()} ms`)
      await readsEverywhere(cluster, bytes)
    }
  })

  it("leaves nothing if three owners are offline, cut off, or full", async () => {
    for (const failure of ["down", "cut", "full"]) {
      const cluster = makeCluster({ nodes: 6 })
      for (const at of [1, 2, 3]) {
        const node = cluster.nodeOf(at)
        if (failure === "down") cluster.down(node)
        if (failure === "cut") cluster.network.block("n00", node.node_id)
        if (failure === "full") node.engine.limit(0)
      }
      const bytes = noise(6, 700_000)
      const put = cluster.put(0, orderOf("EC42"), [bytes])
      await assert.rejects(put, failsWith("BlobShardsFailed", /3 of 6/).fault)
      const fault = await put.then(() => undefined, faultOf)
      assert.equal(fault?._tag === "BlobShardsFailed" && fault.is_full === true, failure === "full")
      assert.deepEqual(await cluster.heldOf(idOf(bytes)), {})
    }
  })

  it("reuses the shards of an unfinished put", async () => {
    const cluster = makeCluster({ nodes: 6 })
    const bytes = noise(7, 400_000)
    const { answer } = await cluster.put(0, orderOf("EC42"), [bytes])
    const holders = await holdersIn(cluster, answer.id)
    for (const index of [0, 2, 5]) {
      const engine = holders.get(index)?.engine
      const [copy] = (await engine?.copiesOf([answer.id])) ?? []
      assert.ok(engine && copy?.kind === "shard")
      await engine.release(answer.id, copy.stored_at, cluster.world.now())
    }
    const again = await cluster.put(2, orderOf("EC42"), [bytes])
    assert.equal(again.answer.created, true)
    assert.deepEqual(again.failed, [])
    assert.deepEqual(
      new Set((await holdersIn(cluster, answer.id)).keys()),
      new Set([0, 1, 2, 3, 4, 5]),
    )
    await readsEverywhere(cluster, bytes)
  })

  it("does not rely on a corrupt shard that was not read since", async () => {
    for (const corrupt_count of [1, 2, 3, 6]) {
      for (const left of [3, 6]) {
        const cluster = makeCluster({ nodes: 6, seed: corrupt_count })
        const bytes = noise(corrupt_count, 400_000)
        const { answer } = await cluster.put(0, orderOf("EC42"), [bytes])
        const holders = await holdersIn(cluster, answer.id)
        for (const [index, { engine }] of holders) {
          const [copy] = await engine.copiesOf([answer.id])
          const stored_at = copy?.kind === "shard" ? copy.stored_at : 0n
          if (index >= left) await engine.release(answer.id, stored_at, cluster.world.now())
          else if (index < corrupt_count) engine.corrupt(answer.id, 100)
        }
        // One of the nodes with an intact shard is offline.
        const away = holders.get(5)
        if (corrupt_count < 6 && away) cluster.down(away)
        const at = cluster.nodes.findIndex((node) => node !== away)
        const { stored_on } = await cluster.put(at, orderOf("EC42"), [bytes])
        for (const node_id of stored_on) {
          const reading = await cluster.nodeOf(node_id).engine.read(answer.id, {}, 1n)
          await Array.fromAsync(reading.windows())
        }
        assert.ok(
          stored_on.length >= 4,
          `${stored_on.length} of ${corrupt_count} rotten, ${left} left`,
        )
        await readsEverywhere(cluster, bytes)
      }
    }
  })

  it("is later than a cluster-wide deletion even if this node's clock is behind", async () => {
    const cluster = makeCluster({ nodes: 6 })
    const bytes = noise(8, 2000)
    const { answer } = await cluster.put(0, orderOf("EC42"), [bytes])
    const ahead = cluster.world.now() + 3_600_000_000_000n
    // One node does not receive it, and keeps its shard.
    for (const { engine } of cluster.nodes.slice(1)) {
      await engine.deleteClusterWide(answer.id, origin, ahead)
    }
    await assert.rejects(cluster.get(2, answer.id), failsWith("BlobNotFound").fault)
    const again = await cluster.put(3, orderOf("EC42"), [bytes])
    assert.equal(again.answer.created, true)
    assert.ok(again.answer.meta.created_at > ahead)
    for (const { engine } of cluster.nodes) {
      const [copy] = await engine.copiesOf([answer.id])
      assert.equal(copy?.kind === "shard" && copy.created_at, again.answer.meta.created_at)
    }
  })

  it("stays complete if another put of the same bytes fails and is rolled back", async () => {
    let rolled_back = 0
    for (let seed = 0; seed < 40; seed++) {
      const cluster = makeCluster({ nodes: 6, seed })
      const { world, network } = cluster
      const bytes = noise(seed, seed % 2 === 0 ? 3000 : 1_500_000)
      // The first put stores its shards, but three responses are lost.
      world.after(4 + (seed % 5), () => {
        for (const node_id of ["n03", "n04", "n05"]) network.block(node_id, "n00")
      })
      const first = cluster.put(0, orderOf("EC42"), [bytes]).catch((cause) => cause)
      const wait_ms = seed % 3 === 0 ? seed : seed * 131
      const second = await cluster
        .until(world.pause(wait_ms))
        .then(() => cluster.put(1, orderOf("EC42"), [bytes]))
      const is_failed = (await first) instanceof Error
      network.heal()
      await cluster.until(world.pause(60_000))
      const left = Object.keys(await cluster.heldOf(idOf(bytes)))
      if (is_failed && !second.answer.created) rolled_back += 1
      assert.ok(
        second.stored_on.every((node_id) => left.includes(node_id)),
        `seed ${seed}`,
      )
      await readsEverywhere(cluster, bytes)
    }
    assert.ok(rolled_back > 0)
  })

  it("tolerates any two offline nodes", async () => {
    for (let one = 0; one < six.length; one++) {
      for (let other = one + 1; other < six.length; other++) {
        const cluster = makeCluster({ nodes: 6, seed: one * 6 + other })
        cluster.down(cluster.nodeOf(one))
        cluster.down(cluster.nodeOf(other))
        const at = [0, 1, 2].find((index) => index !== one && index !== other) ?? 0
        const bytes = noise(one * 6 + other, 2_000_000)
        const { stored_on } = await cluster.put(at, orderOf("EC42"), [bytes])
        assert.equal(stored_on.length, 4)
        await readsEverywhere(cluster, bytes)
      }
    }
  })
})
