import assert from "node:assert/strict"
import { describe, it } from "@effect/vitest"
import fc from "fast-check"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { CopyOrder, NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import type { Peer, Peers } from "#actors/blob-storage/ports/peers.ts"
import type { MemoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { unit_bytes } from "#erasure"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import { getErasure } from "../../erasure/get.ts"
import { peerFailure } from "../../peer-failure.ts"
import {
  bytesOf,
  holdersIn,
  makeCluster,
  orderOf,
  origin,
  type TestCluster,
  type TestNode,
} from "./cluster.ts"

const policies = [
  { policy: "EC42", data_shards: 4, nodes: 7 },
  { policy: "EC82", data_shards: 8, nodes: 11 },
] as const

/** Every pair of a policy's shards. */
const pairsOf = (data_shards: number) => {
  const shards = Array.from({ length: data_shards + 2 }, (_, index) => index)
  return shards.flatMap((one) => shards.slice(one + 1).map((other) => [one, other] as const))
}

/** A cluster that stores these bytes, and a node without a shard of them, which reads them. */
const stored = async (policy: "EC42" | "EC82", bytes: Uint8Array, more: { seed?: number } = {}) => {
  const nodes = policy === "EC42" ? 7 : 11
  const cluster = makeCluster({ nodes, ...more })
  const { answer } = await cluster.put(0, orderOf(policy), [bytes])
  const holders = await holdersIn(cluster, answer.id)
  const holding = new Set(holders.values())
  const reader = cluster.nodes.findIndex((node) => !holding.has(node))
  const holder = (index: number) => {
    const node = holders.get(index)
    assert.ok(node)
    return node
  }
  return { cluster, id: answer.id, meta: answer.meta, reader, holder }
}

const assertReadable = async (
  cluster: TestCluster,
  reader: number,
  id: BlobId,
  bytes: Uint8Array,
) => {
  const reading = await cluster.get(reader, id)
  assert.ok((await cluster.until(bytesOf(reading))).equals(bytes))
}

const release = async ({ engine }: TestNode, id: BlobId) => {
  const [copy] = await engine.copiesOf([id])
  assert.ok(copy?.kind === "shard" && (await engine.release(id, copy.stored_at, 1n)))
  return copy
}

const failsWith = (tag: string) => (cause: unknown) => {
  assert.equal(faultOf(cause)._tag, tag)
  return true
}

describe("an erasure coded blob", () => {
  for (const { policy, data_shards } of policies) {
    it(`of ${policy} is readable after any two of its shards are lost`, {
      timeout: 60_000,
    }, async () => {
      for (const size of [1, 5000, 3 * data_shards * unit_bytes + 12_345]) {
        const bytes = noise(size, size)
        const { cluster, id, reader, holder } = await stored(policy, bytes)
        const { parts } = cluster.nodeOf(reader)
        const { copiesOf: have, fetch } = parts.peers
        for (const lost of pairsOf(data_shards)) {
          const [gone, down] = lost.map((index) => holder(index).node_id)
          const isDown = ({ node_id }: Peer) => node_id === down
          const away = () => Promise.reject(peerFailure("UNAVAILABLE", "it is down"))
          const peers: Peers = {
            ...parts.peers,
            fetch: (peer, ...of) => (isDown(peer) ? away() : fetch(peer, ...of)),
            copiesOf: async (peer, ids) => {
              if (isDown(peer)) return away()
              return peer.node_id === gone ? [undefined] : have(peer, ids)
            },
          }
          const reading = getErasure({ ...parts, peers }, id, {}, new Map())
          const got = await cluster.until(reading.then(bytesOf))
          assert.ok(got.equals(bytes), `${lost}`)
        }
      }
    })

    it(`of ${policy} is readable if two shards are corrupt at any stripe`, {
      timeout: 60_000,
    }, async () => {
      const bytes = noise(8, 5 * data_shards * unit_bytes + 777)
      for (let stripe = 0; stripe < 6; stripe++) {
        for (let index = stripe % 3; index < data_shards + 1; index += data_shards / 4) {
          const { cluster, id, reader, holder } = await stored(policy, bytes, { seed: stripe })
          assert.ok(holder(index).engine.corrupt(id, stripe * unit_bytes))
          assert.ok(holder(index + 1).engine.corrupt(id, Math.max(0, stripe - 1) * unit_bytes))
          await assertReadable(cluster, reader, id, bytes)
          const is_read = index < data_shards
          assert.equal(cluster.nodes[reader]?.shortfalls.includes(id), is_read)
        }
      }
    })
  }

  it("is readable in ranges of any size after the loss of any two shards", {
    timeout: 60_000,
  }, async () => {
    const given = fc.record({
      policy: fc.constantFrom("EC42" as const, "EC82" as const),
      size: fc.integer({ min: 0, max: 2_500_000 }),
      offset: fc.integer({ min: 0, max: 2_600_000 }),
      length: fc.oneof(fc.integer({ min: 0, max: 5000 }), fc.integer({ min: 0, max: 3_000_000 })),
      lost: fc.uniqueArray(fc.integer({ min: 0, max: 5 }), { maxLength: 2 }),
    })
    await fc.assert(
      fc.asyncProperty(given, async ({ policy, size, offset, length, lost }) => {
        const bytes = noise(size, size)
        const { cluster, id, reader, holder, meta } = await stored(policy, bytes, { seed: size })
        for (const index of lost) cluster.down(holder(index))
        const reading = await cluster.get(reader, id, { offset, length })
        assert.deepEqual(reading.meta, meta)
        const wanted = bytes.subarray(offset, offset + length)
        // The range can be read twice.
        assert.ok((await cluster.until(bytesOf(reading))).equals(wanted))
        assert.ok((await cluster.until(bytesOf(reading))).equals(wanted))
        assert.equal(reading.data !== undefined, wanted.length <= 983_040)
      }),
      { numRuns: 60 },
    )
  })

  it("reads only the stripes of a range", async () => {
    const bytes = noise(3, 40 * 4 * unit_bytes)
    const read: Array<{ offset?: number; length?: number }> = []
    const engineOf = (_: string, made: MemoryEngine): MemoryEngine => ({
      ...made,
      read: (id, range, at) => {
        read.push(range)
        return made.read(id, range, at)
      },
    })
    const cluster = makeCluster({ nodes: 6, engineOf })
    const { answer } = await cluster.put(0, orderOf("EC42"), [bytes])
    const offset = 17 * 4 * unit_bytes + 5
    const reading = await cluster.get(1, answer.id, { offset, length: 4 * unit_bytes })
    assert.ok((await bytesOf(reading)).equals(bytes.subarray(offset, offset + 4 * unit_bytes)))
    assert.equal(read.length, 4)
    for (const range of read)
      assert.deepEqual(range, { offset: 17 * unit_bytes, length: 2 * unit_bytes })
  })

  it("is readable if two nodes have the same shard, and from any node after a move", async () => {
    const bytes = noise(4, 600_000)
    const { cluster, id, reader, holder } = await stored("EC42", bytes)
    // The holder of shard 5 has shard 0 instead, a duplicate, and a data shard is offline.
    const { copy, data } = await holder(0).engine.read(id, {}, 1n)
    assert.ok(data)
    await release(holder(5), id)
    const order: CopyOrder = { ...copy, labels: {}, origin }
    const receiving = holder(5).engine.receive(order, data.length)
    await receiving.write(data)
    await receiving.finish(2n)
    cluster.down(holder(1))
    await assertReadable(cluster, reader, id, bytes)
    cluster.down(holder(0))
    await assertReadable(cluster, reader, id, bytes)
    // Without another node there are too few distinct shards, although four nodes have one.
    await release(holder(2), id)
    await assert.rejects(cluster.get(reader, id), failsWith("BlobUnreachable"))
  })

  it("is not found if three shards are lost, or unavailable if nodes are offline", async () => {
    const bytes = noise(5, 10_000)
    const { cluster, id, reader, holder } = await stored("EC42", bytes)
    for (const index of [0, 3]) await release(holder(index), id)
    await assertReadable(cluster, reader, id, bytes)
    cluster.down(holder(4))
    await assert.rejects(cluster.get(reader, id), failsWith("BlobUnreachable"))
    const again = await stored("EC42", bytes)
    for (const index of [0, 3, 5]) await release(again.holder(index), id)
    await assert.rejects(again.cluster.get(again.reader, id), failsWith("BlobNotFound"))
    assert.deepEqual(again.cluster.nodes[again.reader]?.shortfalls, [id])
  })

  it("is read without waiting for a node that hangs", async () => {
    for (const size of [3000, 2_000_000]) {
      const bytes = noise(size, size)
      const { cluster, id, reader, holder } = await stored("EC42", bytes)
      const { node_id } = cluster.nodes[reader] ?? { node_id: "" }
      const known = new Map<string, never>()
      cluster.network.block(holder(1).node_id, node_id)
      const before = cluster.world.ms()
      await assertReadable(cluster, reader, id, bytes)
      assert.ok(cluster.world.ms() - before < 2000, `${cluster.world.ms() - before} ms`)
      assert.equal(known.size, 0)
    }
  })

  it("continues if nodes hang or die during the read", async () => {
    const bytes = noise(6, 12 * 4 * unit_bytes + 99)
    for (let pieces = 0; pieces < 12; pieces++) {
      const { cluster, id, reader, holder } = await stored("EC42", bytes, { seed: pieces })
      const { node_id } = cluster.nodes[reader] ?? { node_id: "" }
      const reading = await cluster.get(reader, id)
      const got: Array<Uint8Array> = []
      const read = (async () => {
        for await (const window of reading.windows()) {
          got.push(window)
          if (got.length === pieces) {
            cluster.network.block(holder(2).node_id, node_id)
            cluster.down(holder(0))
          }
        }
      })()
      await cluster.until(read)
      assert.ok(Buffer.concat(got).equals(bytes))
    }
  })

  it("ends with an error if too few nodes are left during the read", async () => {
    const bytes = noise(7, 60 * 4 * unit_bytes)
    const { cluster, id, reader, holder } = await stored("EC42", bytes)
    const reading = await cluster.get(reader, id)
    let got = 0
    const read = (async () => {
      for await (const window of reading.windows()) {
        got += window.length
        for (const index of [0, 2, 5]) cluster.down(holder(index))
      }
    })()
    await assert.rejects(cluster.until(read), failsWith("BlobUnreachable"))
    assert.ok(got > 0 && got < bytes.length)
  })

  it("is read from known holders without another search", async () => {
    const bytes = noise(9, 3000)
    const { cluster, id, reader } = await stored("EC42", bytes)
    const node = cluster.nodeOf(reader)
    const known = new Map()
    for (const { node_id, engine } of cluster.nodes) {
      const [copy] = await engine.copiesOf([id])
      if (copy) known.set(node_id, copy)
    }
    const peers = { ...node.parts.peers, have: () => Promise.reject(new Error("asked again")) }
    const reading = await cluster.until(getErasure({ ...node.parts, peers }, id, {}, known))
    assert.ok((await bytesOf(reading)).equals(bytes))
  })
})

/** Replaces a shard's bytes with others whose checksums are valid. */
const falsify = async ({ engine }: TestNode, id: BlobId, at: number) => {
  const { copy, meta, data, windows } = await engine.read(id, {}, 1n)
  const bytes = data ? Buffer.from(data) : Buffer.concat(await Array.fromAsync(windows()))
  bytes[at] = (bytes[at] ?? 0) ^ 1
  await engine.release(id, copy.stored_at, 2n)
  const receiving: ReturnType<NodeEngine["receive"]> = engine.receive(
    { ...copy, labels: meta.labels, origin },
    bytes.length,
  )
  await receiving.write(bytes)
  await receiving.finish(3n)
}

describe("a corrupt shard", () => {
  it("is detected, and a small blob is read without it", async () => {
    const bytes = noise(10, 300_000)
    for (let index = 0; index < 6; index++) {
      const { cluster, id, reader, holder } = await stored("EC42", bytes)
      await falsify(holder(index), id, 70_000)
      await assertReadable(cluster, reader, id, bytes)
    }
    const { cluster, id, reader, holder } = await stored("EC42", bytes)
    for (const index of [0, 1]) await falsify(holder(index), id, 5)
    await assert.rejects(cluster.get(reader, id), failsWith("BlobCorrupt"))
  })

  it("never makes a client accept a large blob as complete", async () => {
    const bytes = noise(11, 20 * 4 * unit_bytes + 5)
    for (const at of [0, 20 * unit_bytes]) {
      const { cluster, id, reader, holder } = await stored("EC42", bytes)
      await falsify(holder(0), id, at)
      const reading = await cluster.get(reader, id)
      let got = 0
      const read = (async () => {
        for await (const window of reading.windows()) got += window.length
      })()
      await assert.rejects(cluster.until(read), failsWith("BlobCorrupt"))
      assert.ok(got < bytes.length)
      assert.ok(cluster.nodes[reader]?.shortfalls.includes(id))
    }
  })
})
