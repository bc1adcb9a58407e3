/** Facts that a volume reads from memory. copies.test.ts verifies that the disk has the same. */
import assert from "node:assert/strict"
import { describe, it } from "@effect/vitest"
import type { BlobFact } from "#actors/blob-storage/ports/engine.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { noise } from "../../../test/contract/blob-storage/engine-bytes.ts"
import {
  send,
  sendShard,
  shardOf,
  wholeOf,
} from "../../../test/contract/blob-storage/node-engine-copies.ts"
import { type VolumeDisk, type VolumeFile, volumeDisk } from "../disk.ts"
import type { VolumeEngine } from "../engine.ts"
import { makeRecentFacts } from "../log/recent-facts.ts"
import type { NewRecord } from "../log/record.ts"
import { bytesOf, freshFolder, opened, order, origin, putEach } from "./opened.ts"

/** A disk that counts reads. */
const counting = () => {
  let reads = 0
  const counted = (file: VolumeFile): VolumeFile => ({
    ...file,
    read: (...given) => {
      reads += 1
      return file.read(...given)
    },
  })
  const disk: VolumeDisk = {
    ...volumeDisk,
    create: async (...given) => counted(await volumeDisk.create(...given)),
    open: async (path) => counted(await volumeDisk.open(path)),
  }
  return { disk, reads: () => reads }
}

const plain: NewRecord = {
  kind: "tombstone",
  is_moved: false,
  is_large: false,
  policy: "REPLICATION_POLICY_NONE",
  // 32 hexadecimal digits.
  id: "0".repeat(32) as BlobId,
  hash: "",
  size: 0,
  shard: undefined,
  cursor: 0,
  origin,
  at: 1n,
  since: 0n,
  cluster_at: 0n,
  put_at: 0n,
  labels: {},
  payload_bytes: 0,
  crcs: [],
  extents: [],
  freed: [],
}

const allFacts = async ({ scan }: Pick<VolumeEngine, "scan">, limit: number) => {
  const facts: Array<BlobFact> = []
  for (;;) {
    const page = await scan(facts.at(-1)?.cursor ?? 0, limit)
    if (page.length === 0) return facts
    assert(page.length <= limit)
    facts.push(...page)
  }
}

/** The facts that a scan reads after a restart, when nothing is in memory. */
const fromDisk = async (engine: VolumeEngine, dir: string) => {
  await engine.close()
  return allFacts(await opened(dir), 1000)
}

describe("the most recent facts of a volume", () => {
  it("are returned without reading the disk, page by page", async () => {
    const dir = freshFolder()
    const { disk, reads } = counting()
    const engine = await opened(dir, {}, disk)
    const [first] = await putEach(engine, [1, 2, 3])
    await engine.delete(first ?? assert.fail(), { ...origin, actor: "a".repeat(5000) }, 5n)
    const whole = noise(4, 5000)
    const { copy } = await send(engine, wholeOf(whole), whole)
    await engine.release(copy.id, copy.stored_at, 6n)
    await sendShard(engine, shardOf(noise(5, 10_000), { index: 4, data_shards: 4 }))
    const before = reads()
    const facts = await allFacts(engine, 2)
    const kinds = ["stored", "stored", "stored", "deleted", "stored", "released", "stored"]
    assert.deepEqual(
      facts.map(({ kind }) => kind),
      kinds,
    )
    assert.deepEqual(await engine.scan(4, 2), facts.slice(4, 6))
    assert.equal(reads(), before)
    assert.deepEqual(await fromDisk(engine, dir), facts)
  })

  it("are read from the disk if memory lacks some of them", async () => {
    const dir = freshFolder()
    const before = await opened(dir)
    await putEach(before, [1, 2])
    await before.close()
    const { disk, reads } = counting()
    const engine = await opened(dir, {}, disk)
    await putEach(engine, [3])
    const begun = reads()
    assert.deepEqual(
      (await engine.scan(1, 10)).map(({ cursor }) => cursor),
      [2, 3],
    )
    assert(reads() > begun)
  })

  it("are dropped if their labels are large, and stay in the journal", async () => {
    const dir = freshFolder()
    const { disk, reads } = counting()
    const engine = await opened(dir, {}, disk)
    const labels = { k: "v".repeat(16_000) }
    const blobs = (1024 * 1024) / 16_000 + 2
    for (let seed = 1; seed < blobs; seed++) {
      await engine.put({ ...order, labels }, [bytesOf(seed)], BigInt(seed))
    }
    const before = reads()
    const facts = await allFacts(engine, 1000)
    assert(reads() > before, "the oldest are not in memory any more")
    const again = reads()
    await engine.scan(facts.length - 3, 10)
    assert.equal(reads(), again, "the newest are")
    assert.deepEqual(await fromDisk(engine, dir), facts)
  })
  it("are dropped if they have many extents", () => {
    const recent = makeRecentFacts()
    const extent = { file: 1, position: 4096, bytes: 4096, table_crc: 0 }
    const freed = Array.from({ length: 1000 }, () => extent)
    for (let cursor = 1; cursor <= 40; cursor++) recent.note({ ...plain, cursor, freed })
    assert.equal(recent.after(0, 1), undefined)
    assert.equal(recent.after(39, 9)?.[0]?.cursor, 40)
  })
})
