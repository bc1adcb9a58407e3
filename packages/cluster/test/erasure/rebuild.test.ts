import assert from "node:assert/strict"
import { describe, it } from "@effect/vitest"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import { unit_bytes } from "#erasure"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import type { ErasureParts } from "../../erasure/layout.ts"
import { rebuildShards } from "../../erasure/rebuild.ts"
import { holdersIn, makeCluster, orderOf, origin, type TestNode } from "./cluster.ts"

const peerOf = ({ node_id }: TestNode) => ({ node_id, address: node_id })

const shardOf = async ({ engine }: TestNode, id: BlobId) => {
  const { copy, meta, data, windows } = await engine.read(id, {}, 1n)
  const bytes = data ? Buffer.from(data) : Buffer.concat(await Array.fromAsync(windows()))
  return { copy, meta, bytes }
}

/** A blob with some of its shards released, and the bytes of these. */
const stored = async (policy: "EC42" | "EC82", bytes: Uint8Array, lost: ReadonlyArray<number>) => {
  const cluster = makeCluster({ nodes: policy === "EC42" ? 8 : 12 })
  const { answer } = await cluster.put(0, orderOf(policy), [bytes])
  const { id } = answer
  const holders = await holdersIn(cluster, id)
  const nodeOf = (index: number) => {
    const node = holders.get(index)
    assert.ok(node)
    return node
  }
  const original = await Promise.all(lost.map((index) => shardOf(nodeOf(index), id)))
  for (const [at, index] of lost.entries()) {
    await nodeOf(index).engine.release(id, original[at]?.copy.stored_at ?? 0n, 1n)
  }
  const held = new Set(holders.values())
  const spare = cluster.nodes.filter((node) => !held.has(node))
  const rebuild = (targets: ReadonlyArray<readonly [number, TestNode]>, more = {}) => {
    const [worker] = holders.values()
    assert.ok(worker)
    const missing = targets.map(([index, node]) => ({ index, peer: peerOf(node) }))
    const order = { id, missing, known: new Map(), reason: "repair", ...more } as const
    return cluster.until(rebuildShards(worker.parts, order))
  }
  return { cluster, id, meta: answer.meta, were: original, nodeOf, spare, rebuild }
}

const failsWith = (tag: string) => (cause: unknown) => {
  assert.equal(faultOf(cause)._tag, tag)
  return true
}

describe("lost shards", () => {
  for (const [policy, shards] of [
    ["EC42", 6],
    ["EC82", 10],
  ] as const) {
    it(`of ${policy} are rebuilt, for any two of them and any size`, async () => {
      let size = 0
      for (let one = 0; one < shards; one++) {
        for (let other = one; other < shards; other++) {
          size = (size * 7 + 65_537) % 700_000
          const lost = one === other ? [one] : [one, other]
          const bytes = noise(size, one === 0 && other === 1 ? 0 : size)
          const { id, meta, were, nodeOf, spare, rebuild } = await stored(policy, bytes, lost)
          // The first is sent to its former node, the second to a node without a shard.
          const targets = lost.map((index, at) => {
            const node = at === 0 ? nodeOf(index) : spare[0]
            assert.ok(node)
            return [index, node] as const
          })
          const { rebuilt, failed } = await rebuild(targets)
          assert.deepEqual(failed, [])
          assert.deepEqual(
            rebuilt,
            targets.map(([index, { node_id }]) => ({ index, node_id })),
          )
          for (const [at, [index, node]] of targets.entries()) {
            const made = await shardOf(node, id)
            assert.ok(made.bytes.equals(were[at]?.bytes ?? Buffer.from("none")), `${lost}`)
            assert.deepEqual(made.meta, meta)
            assert.deepEqual(made.copy.shard, { index, data_shards: shards - 2 })
            assert.equal(made.copy.created_at, meta.created_at)
          }
        }
      }
    })
  }

  it("are rebuilt by the node that lacks one, reading the others once for two", async () => {
    const bytes = noise(2, 1_000_000)
    const { cluster, id, nodeOf, were } = await stored("EC42", bytes, [1, 4])
    const worker = nodeOf(1)
    let fetched = 0
    const peers: ErasureParts["peers"] = {
      ...worker.parts.peers,
      fetch: (peer, of, range, deadline_ms) => {
        fetched += range.length ?? 0
        return worker.parts.peers.fetch(peer, of, range, deadline_ms)
      },
    }
    let paced = 0
    const pace = (count: number) => {
      paced += count
      return undefined
    }
    const missing = [1, 4].map((index) => ({ index, peer: peerOf(nodeOf(index)) }))
    const order = { id, missing, known: new Map(), reason: "repair", pace } as const
    await cluster.until(rebuildShards({ ...worker.parts, peers }, order))
    const shard_bytes = were[0]?.bytes.length ?? 0
    assert.ok((await shardOf(worker, id)).bytes.equals(were[0]?.bytes ?? Buffer.of(1)))
    assert.ok((await shardOf(nodeOf(4), id)).bytes.equals(were[1]?.bytes ?? Buffer.of(1)))
    assert.equal(fetched, 4 * shard_bytes)
    assert.equal(paced, 6 * shard_bytes)
  })

  it("are not stored if the other shards do not match the blob", async () => {
    for (const size of [1000, 1_000_000]) {
      const { cluster, id, nodeOf, rebuild } = await stored("EC42", noise(3, size), [5])
      const wrong = await shardOf(nodeOf(2), id)
      wrong.bytes[17] = (wrong.bytes[17] ?? 0) ^ 4
      await nodeOf(2).engine.release(id, wrong.copy.stored_at, 2n)
      const order = { ...wrong.copy, labels: {}, origin }
      const receiving = nodeOf(2).engine.receive(order, wrong.bytes.length)
      await receiving.write(wrong.bytes)
      await receiving.finish(3n)
      await assert.rejects(rebuild([[5, nodeOf(5)]]), failsWith("BlobCorrupt"))
      assert.equal((await cluster.heldOf(id))[nodeOf(5).node_id], undefined)
    }
  })

  it("are sent to the available node if the other one fails", async () => {
    const { cluster, id, nodeOf, rebuild } = await stored("EC42", noise(4, 900_000), [0, 3])
    cluster.down(nodeOf(0))
    const { rebuilt, failed } = await rebuild([
      [0, nodeOf(0)],
      [3, nodeOf(3)],
    ])
    assert.deepEqual(rebuilt, [{ index: 3, node_id: nodeOf(3).node_id }])
    assert.deepEqual(
      failed.map(({ index, node_id }) => ({ index, node_id })),
      [{ index: 0, node_id: nodeOf(0).node_id }],
    )
    assert.equal((await cluster.heldOf(id))[nodeOf(3).node_id], 3)
  })

  it("are rebuilt if one more is corrupt, but not if two are", async () => {
    const bytes = noise(5, 8 * 4 * unit_bytes)
    const { id, nodeOf, rebuild, were } = await stored("EC42", bytes, [5])
    nodeOf(1).engine.corrupt(id, 5 * unit_bytes)
    await rebuild([[5, nodeOf(5)]])
    assert.ok((await shardOf(nodeOf(5), id)).bytes.equals(were[0]?.bytes ?? Buffer.of(1)))
    const again = await stored("EC42", bytes, [5])
    for (const index of [0, 1]) again.nodeOf(index).engine.corrupt(id, 5 * unit_bytes)
    const { node_id } = again.nodeOf(5)
    await assert.rejects(again.rebuild([[5, again.nodeOf(5)]]), failsWith("BlobUnreachable"))
    assert.equal((await again.cluster.heldOf(id))[node_id], undefined)
  })

  it("cannot be rebuilt if too few are left", async () => {
    const { rebuild, nodeOf } = await stored("EC42", noise(6, 5000), [0, 1, 2])
    await assert.rejects(rebuild([[0, nodeOf(0)]]), failsWith("BlobNotFound"))
  })
})
