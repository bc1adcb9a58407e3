import assert from "node:assert/strict"
import { describe, it } from "@effect/vitest"
import type { Members } from "#actors/blob-storage/ports/peers.ts"
import { erasureTools } from "#adapters/blob-storage/erasure.ts"
import { placement } from "#placement"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import { freshFolder, opened } from "../../../volume/test/opened.ts"
import { getErasure } from "../../erasure/get.ts"
import type { ErasureParts } from "../../erasure/layout.ts"
import { rebuildShards } from "../../erasure/rebuild.ts"
import { erasureUploads } from "../../erasure/upload.ts"
import { rollbackGuard } from "../../rollback.ts"
import { directPeers, type Host, timing } from "../replicas/direct.ts"
import { poisoningPool } from "../simulation/piece-pool.ts"
import { bytesOf, orderOf } from "./cluster.ts"

const mib = 1024 * 1024
const tools = { ...erasureTools(), pool: poisoningPool().pool }
const names = ["n0", "n1", "n2", "n3", "n4", "n5"]

const volumes = async () => {
  const down = new Set<string>()
  const hosts = new Map<string, Host>()
  const peers = directPeers(hosts, down)
  const drawn = placement({
    ring_version: 1,
    vnodes_per_node: 16,
    nodes: names.map((node_id) => ({ node_id, weight_percent: 100 })),
  })
  const open = async (node_id: string, dir = freshFolder()) => {
    const local = await opened(dir, { segment_bytes: 8 * mib })
    const guard = rollbackGuard(local, timing)
    hosts.set(node_id, { local, guard })
    const members: Members = {
      node_id,
      ring_version: 1,
      leaving: [],
      is_leaving: false,
      placement: drawn,
      active: names.map((name) => ({ node_id: name, address: name })),
    }
    const parts: ErasureParts = { local, guard, peers, timing, members: () => members, ...tools }
    return { dir, local, parts }
  }
  const nodes = await Promise.all(names.map((node_id) => open(node_id)))
  return { down, nodes, open }
}

describe("an erasure coded blob on volumes", () => {
  it("is stored, read, rebuilt, and still readable after a restart", {
    timeout: 60_000,
  }, async () => {
    const { down, nodes, open } = await volumes()
    const [first, , , , , last] = nodes
    assert.ok(first && last)
    const begin = erasureUploads(first.parts)
    for (const size of [0, 5000, 3 * mib + 77, 66 * mib + 5]) {
      const bytes = noise(size, size)
      const upload = begin(orderOf("EC42"), undefined)
      for (let at = 0; at < size; at += mib) await upload.write(bytes.subarray(at, at + mib))
      const { answer, failed } = await upload.finish(timing.now())
      await upload.abort()
      assert.deepEqual(failed, [])
      const { id } = answer
      for (const lost of [[], ["n1", "n4"], ["n2"]]) {
        down.clear()
        for (const node_id of lost) down.add(node_id)
        const reading = await getErasure(first.parts, id, {}, new Map())
        assert.ok((await bytesOf(reading)).equals(bytes), `${size} ${lost}`)
      }
      down.clear()
      // The last node loses its shard, which is rebuilt.
      const [held] = await last.local.copiesOf([id])
      assert.ok(held?.kind === "shard" && held.shard)
      const before = await bytesOf(await last.local.read(id, {}, timing.now()))
      assert.ok(await last.local.release(id, held.stored_at, timing.now()))
      const missing = [{ index: held.shard.index, peer: { node_id: "n5", address: "n5" } }]
      await rebuildShards(first.parts, { id, missing, known: new Map(), reason: "repair" })
      const after = await bytesOf(await last.local.read(id, {}, timing.now()))
      assert.ok(after.equals(before))
    }
    const { blob_count } = await last.local.usage()
    await last.local.close()
    const again = await open("n5", last.dir)
    assert.equal((await again.local.usage()).blob_count, blob_count)
    assert.equal(blob_count, 4)
  })
})
