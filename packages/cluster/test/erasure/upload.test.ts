import assert from "node:assert/strict"
import { describe, it } from "@effect/vitest"
import type { Peers } from "#actors/blob-storage/ports/peers.ts"
import type { MemoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import { piece_bytes } from "../../erasure/layout.ts"
import { erasureUploads } from "../../erasure/upload.ts"
import { peerFailure } from "../../peer-failure.ts"
import { faultIn } from "../replicas/nodes.ts"
import { poisoningPool } from "../simulation/piece-pool.ts"
import { bytesOf, idOf, makeCluster, orderOf } from "./cluster.ts"

const mib = 1024 * 1024

/** A cluster that counts the bytes staged on its first node. */
const counted = () => {
  const counts = { staged: 0, ended: 0 }
  const engineOf = (_: string, made: MemoryEngine): MemoryEngine => ({
    ...made,
    stage: (size) => {
      const staging = made.stage(size)
      return {
        ...staging,
        write: (bytes) => {
          counts.staged += bytes.length
          return staging.write(bytes)
        },
        abort: () => {
          counts.ended += 1
          return staging.abort()
        },
      }
    },
  })
  const cluster = makeCluster({ nodes: 6, engineOf })
  return { cluster, counts, begin: erasureUploads(cluster.nodeOf(0).parts) }
}

describe("an erasure coded upload", () => {
  it("of up to 64 MiB uses no disk except those of its shards", async () => {
    const { cluster, counts, begin } = counted()
    const bytes = noise(1, 3 * mib)
    const upload = begin(orderOf("EC42"), undefined)
    for (let at = 0; at < bytes.length; at += 100_000) {
      assert.equal(upload.write(bytes.subarray(at, at + 100_000)), undefined)
    }
    const { answer, failed } = await cluster.until(upload.finish(cluster.world.now()))
    await upload.abort()
    assert.equal(answer.id, idOf(bytes))
    assert.deepEqual(failed, [])
    assert.equal(counts.staged, 0)
    const reading = await cluster.get(3, answer.id)
    assert.ok((await cluster.until(bytesOf(reading))).equals(bytes))
  })

  it("of more than that is staged, and read back from the disk", { timeout: 60_000 }, async () => {
    const { cluster, counts, begin } = counted()
    const bytes = noise(2, 65 * mib + 17)
    const upload = begin(orderOf("EC42"), undefined)
    for (let at = 0; at < bytes.length; at += mib) await upload.write(bytes.subarray(at, at + mib))
    const { answer, failed } = await cluster.until(upload.finish(cluster.world.now()))
    await upload.abort()
    assert.deepEqual(failed, [])
    assert.equal(answer.id, idOf(bytes))
    assert.equal(counts.staged, bytes.length)
    assert.equal(counts.ended, 1)
    const reading = await cluster.get(5, answer.id, { offset: 64 * mib, length: mib + 100 })
    const end = bytes.subarray(64 * mib)
    assert.ok((await cluster.until(bytesOf(reading))).equals(end))
  })

  it("of stored content needs no space here; of other content it is refused", {
    timeout: 60_000,
  }, async () => {
    const cluster = makeCluster({ nodes: 6 })
    const { engine, parts } = cluster.nodeOf(0)
    const begin = erasureUploads(parts)
    const upload = async (bytes: Uint8Array, size: number | undefined) => {
      const one = begin(orderOf("EC42"), size)
      try {
        for (let at = 0; at < bytes.length; at += mib) await one.write(bytes.subarray(at, at + mib))
        return await cluster.until(one.finish(cluster.world.now()))
      } finally {
        await one.abort()
      }
    }
    const bytes = noise(9, 65 * mib)
    const first = await upload(bytes, undefined)
    const usedBytes = async () =>
      Promise.all(cluster.nodes.map(async (node) => (await node.engine.usage()).payload_bytes))
    const used = await usedBytes()
    engine.limit(used[0] ?? 0)
    for (const size of [undefined, bytes.length]) {
      const { answer, failed } = await upload(bytes, size)
      assert.deepEqual([answer, failed], [{ ...first.answer, created: false }, []])
      const other = upload(noise(10, bytes.length), size)
      assert.equal(await faultIn(other), "BlobCapacityExceeded")
    }
    assert.deepEqual(await usedBytes(), used)
  })

  it("of an announced size is staged at once, and leaves nothing if it is aborted", async () => {
    const { cluster, counts, begin } = counted()
    const upload = begin(orderOf("EC42"), 70 * mib)
    await upload.write(noise(3, mib))
    assert.equal(counts.staged, mib)
    await upload.abort()
    assert.equal(counts.ended, 1)
    for (const { engine } of cluster.nodes) assert.equal((await engine.usage()).payload_bytes, 0)
  })

  it("shares the memory limit with the others", async () => {
    const { counts, begin } = counted()
    const part = noise(4, 32 * mib)
    const uploads = Array.from({ length: 4 }, () => begin(orderOf("EC42"), undefined))
    for (const upload of uploads) for (let turn = 0; turn < 2; turn++) await upload.write(part)
    assert.equal(counts.staged, 0)
    const fifth = begin(orderOf("EC42"), undefined)
    await fifth.write(noise(5, 10))
    assert.equal(counts.staged, 10)
    // Each upload returns its memory at its end.
    for (const upload of uploads) await upload.abort()
    const sixth = begin(orderOf("EC42"), undefined)
    await sixth.write(part)
    assert.equal(counts.staged, 10)
    await fifth.abort()
    await sixth.abort()
  })

  it("that is finishing is not disturbed by an abort", async () => {
    const cluster = makeCluster({ nodes: 6 })
    const bytes = noise(8, mib)
    const upload = erasureUploads(cluster.nodeOf(0).parts)(orderOf("EC42"), undefined)
    await upload.write(bytes)
    const finishing = upload.finish(cluster.world.now())
    await upload.abort()
    const { answer } = await cluster.until(finishing)
    assert.deepEqual([answer.id, answer.meta.size], [idOf(bytes), BigInt(mib)])
    const reading = await cluster.get(1, answer.id)
    assert.ok((await cluster.until(bytesOf(reading))).equals(bytes))
  })

  it("of few bytes counts with the whole piece that it occupies", async () => {
    const { counts, begin } = counted()
    const one = noise(6, 1)
    const uploads = Array.from({ length: (256 * mib) / piece_bytes }, () =>
      begin(orderOf("EC42"), undefined),
    )
    for (const upload of uploads) await upload.write(one)
    assert.equal(counts.staged, 0)
    // Further bytes that fit into the piece take no more memory.
    await uploads[0]?.write(one)
    assert.equal(counts.staged, 0)
    const another = begin(orderOf("EC42"), undefined)
    await another.write(one)
    assert.equal(counts.staged, 1)
    for (const upload of uploads) await upload.abort()
    const last = begin(orderOf("EC42"), undefined)
    await last.write(noise(7, mib))
    assert.equal(counts.staged, 1)
    await another.abort()
    await last.abort()
  })

  it("leaves its memory to the next one, unless a node may still read it", async () => {
    const cluster = makeCluster({ nodes: 6 })
    const { pool, counts } = poisoningPool()
    const { parts } = cluster.nodeOf(0)
    const cut_off = new Set<string>()
    const send: Peers["send"] = (peer, ...what) =>
      cut_off.has(peer.node_id)
        ? Promise.reject(peerFailure("UNAVAILABLE", "cut off"))
        : parts.peers.send(peer, ...what)
    const begin = erasureUploads({ ...parts, pool, peers: { ...parts.peers, send } })
    const upload = async (seed: number) => {
      const bytes = noise(seed, mib + 5)
      const one = begin(orderOf("EC42"), undefined)
      for (let at = 0; at < bytes.length; at += 70_001)
        await one.write(bytes.subarray(at, at + 70_001))
      const put = await cluster.until(one.finish(cluster.world.now()))
      await one.abort()
      const reading = await cluster.get(0, idOf(bytes))
      assert.ok((await cluster.until(bytesOf(reading))).equals(bytes))
      return put
    }
    assert.equal((await upload(1)).is_source_free, true)
    assert.deepEqual(counts, { taken: 5, given_back: 5 })
    // The same bytes again: nothing is sent, and no node reads them.
    assert.equal((await upload(1)).answer.created, false)
    assert.deepEqual(counts, { taken: 10, given_back: 10 })
    cut_off.add("n05")
    const { failed, is_source_free: is_read_out } = await upload(2)
    assert.deepEqual([failed, is_read_out], [["n05"], false])
    assert.deepEqual(counts, { taken: 15, given_back: 10 })

    const given_up = begin(orderOf("EC42"), undefined)
    await given_up.write(noise(3, mib))
    await given_up.abort()
    assert.deepEqual(counts, { taken: 19, given_back: 14 })
  })
})
