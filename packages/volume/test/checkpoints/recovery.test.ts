/**
 * The state of a volume after a kill, a power loss or bit rot: acknowledged content exists,
 * unwritten content does not, and damage affects only what it hit.
 */
import assert from "node:assert/strict"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, it } from "vitest"
import type { VolumeEngine } from "../../engine.ts"
import { decodeSuperblock, encodeSuperblock } from "../../log/format.ts"
import {
  batchesIn,
  checkpointPaths,
  type FoundBatch,
  flip,
  logPaths,
  lose,
  loseCheckpoints,
} from "../damaged.ts"
import { copyOf, freshFolder, opened, order, origin, putEach, putOne, readOne } from "../opened.ts"

const upTo = (count: number, from = 0) => Array.from({ length: count }, (_, n) => from + n)

const answers = (engine: VolumeEngine, seeds: ReadonlyArray<number>) =>
  Promise.all(seeds.map((seed) => readOne(engine, seed)))

const allWhole = async (engine: VolumeEngine, seeds: ReadonlyArray<number>) =>
  assert.deepEqual(new Set(await answers(engine, seeds)), new Set(["whole"]))

/** Everything that can be read from a volume, except content. */
const allOf = async (engine: VolumeEngine) => {
  const { ids } = await engine.list("", "", 10_000)
  return {
    ids,
    usage: await engine.usage(),
    facts: await engine.scan(0, 1000),
    metas: await Promise.all(ids.map((id) => engine.stat(id))),
  }
}

const nth = (batches: ReadonlyArray<FoundBatch>, n: number) =>
  batches.at(n) ?? assert.fail(`there is no batch ${n}`)

/** A volume with 40 blobs, one batch each, as a kill leaves it: without a checkpoint. */
const killed = async (count = 40) => {
  const dir = freshFolder()
  const engine = await opened(dir)
  await putEach(engine, upTo(count))
  return copyOf(dir)
}

describe("a volume that was killed", () => {
  it("keeps blobs, tombstones, usage, journal and times", async () => {
    const dir = freshFolder()
    const engine = await opened(dir)
    const ids = await putEach(engine, upTo(300))
    for (const id of ids.slice(0, 50)) await engine.delete(id, origin, 9n)
    await putEach(engine, upTo(10))
    await engine.put({ ...order, labels: { a: "b" } }, [Buffer.from("x")], 7n)
    await engine.acknowledge(17)
    await putOne(engine, 999)
    const buried = await engine.tombstone(ids[20] ?? assert.fail())
    const again = await opened(copyOf(dir))
    assert.deepEqual(await allOf(again), await allOf(engine))
    assert.equal(await again.tombstone(ids[20] ?? assert.fail()), buried)
    await allWhole(again, [...upTo(10), ...upTo(250, 50)])
    assert.equal((await again.scan(0, 1))[0]?.cursor, 18)
  })

  it("continues its cursors and times", async () => {
    const engine = await opened(await killed(3))
    const { meta } = await putOne(engine, 77)
    const facts = await engine.scan(0, 10)
    assert.deepEqual(
      facts.map(({ cursor }) => cursor),
      [1, 2, 3, 4],
    )
    assert(facts.every(({ at }, n) => n === 3 || at < meta.created_at))
  })

  it("is the same from its checkpoint, from an older one, and from its log alone", async () => {
    const dir = freshFolder()
    const engine = await opened(dir)
    const ids = await putEach(engine, upTo(60))
    await engine.checkpoint()
    for (const id of ids.slice(0, 20)) await engine.delete(id, origin, 9n)
    await engine.checkpoint()
    await putEach(engine, upTo(60, 60))
    const expected = await allOf(engine)
    const [first, second] = checkpointPaths(dir).map((path) => path.replace(dir, ""))
    for (const rotten of [[], [first], [second], [first, second]]) {
      const copy = copyOf(dir)
      for (const path of rotten) flip(join(copy, path ?? assert.fail()), 4096)
      assert.deepEqual(await allOf(await opened(copy)), expected)
    }
    const copy = copyOf(dir)
    loseCheckpoints(copy)
    assert.deepEqual(await allOf(await opened(copy)), expected)
  })
})

describe("a volume that was closed", () => {
  it("keeps everything, even if its checkpoints are lost afterwards", async () => {
    const dir = freshFolder()
    const engine = await opened(dir)
    await putEach(engine, upTo(150))
    const expected = await allOf(engine)
    await engine.close()
    assert.equal(readdirSync(dir).filter((name) => name.startsWith("clean-")).length, 1)
    const copy = copyOf(dir)
    loseCheckpoints(copy)
    const again = await opened(dir)
    assert.deepEqual(await allOf(again), expected)
    assert.deepEqual(
      readdirSync(dir).filter((name) => name.startsWith("clean-")),
      [],
    )
    assert.deepEqual(await allOf(await opened(copy)), expected)
  })

  it("keeps later changes if it is killed after all", async () => {
    const dir = freshFolder()
    const engine = await opened(dir)
    await putEach(engine, upTo(5))
    await engine.close()
    const again = await opened(dir)
    await putEach(again, upTo(200, 5))
    await allWhole(await opened(copyOf(dir)), upTo(205))
  })
})

describe("the torn end of a log", () => {
  const torn = [
    ["its header is gone", (batch: FoundBatch) => [batch.position, 512]],
    ["a head is gone", (batch: FoundBatch) => [batch.records[0]?.position ?? 0, 64]],
    ["a payload is gone", (batch: FoundBatch) => [(batch.records[0]?.payload ?? 0) + 300, 512]],
  ] as const
  for (const [what, where] of torn) {
    it(`leaves no trace of the put if ${what}`, async () => {
      const dir = await killed()
      const last = nth(batchesIn(dir), -1)
      const [position = 0, bytes = 0] = where(last)
      lose(last.path, position, bytes)
      const engine = await opened(dir)
      await allWhole(engine, upTo(39))
      assert.equal(await readOne(engine, 39), "BlobNotFound")
      assert.equal(engine.status().damaged_batches, 0)
      assert.equal((await engine.usage()).blob_count, 39)
      const left = readFileSync(last.path).subarray(last.position, last.position + last.bytes)
      assert(
        left.every((byte) => byte === 0),
        "nothing of it is left",
      )
      await putOne(engine, 500)
      const again = await opened(copyOf(dir))
      await allWhole(again, [...upTo(39), 500])
      assert.equal(again.status().damaged_batches, 0)
    })
  }
})

describe("rot in the log", () => {
  it("in a batch's header costs none of its blobs", async () => {
    const dir = await killed()
    const batch = nth(batchesIn(dir), 10)
    flip(batch.path, batch.position + 20)
    const engine = await opened(dir)
    await allWhole(engine, upTo(40))
    assert.equal(engine.status().damaged_batches, 1)
    assert.equal((await engine.scan(0, 1000)).length, 40)
  })

  it("in a batch's header in the current file does not end the log", async () => {
    const dir = freshFolder()
    const engine = await opened(dir, { segment_bytes: 8 * 1024 * 1024 })
    await putEach(engine, upTo(20))
    const copy = copyOf(dir)
    const batch = nth(batchesIn(copy), 10)
    flip(batch.path, batch.position + 20)
    const again = await opened(copy)
    await allWhole(again, upTo(20))
    await putEach(again, upTo(5, 20))
    await allWhole(await opened(copyOf(copy)), upTo(25))
  })

  it("in the header of a file's last batch costs none of its blobs", async () => {
    const dir = await killed(100)
    const batches = batchesIn(dir)
    const n = batches.findIndex(({ path }, at) => path !== batches[at + 1]?.path)
    assert(n > 0 && n < 90)
    flip(nth(batches, n).path, nth(batches, n).position + 20)
    const engine = await opened(dir)
    await allWhole(engine, upTo(100))
    assert.equal(engine.status().damaged_batches, 1)
    assert.equal((await engine.scan(0, 1000)).length, 100)
    await putEach(engine, upTo(100, 100))
    await allWhole(await opened(copyOf(dir)), upTo(200))
  })

  it("in a head costs its own blob, and no other of the batch", async () => {
    const dir = freshFolder()
    const engine = await opened(dir)
    await putEach(engine, upTo(5))
    await Promise.all(upTo(20, 5).map((seed) => putOne(engine, seed)))
    await putEach(engine, upTo(5, 25))
    const copy = copyOf(dir)
    const large = batchesIn(copy).find(({ records }) => records.length > 10) ?? assert.fail()
    flip(large.path, (large.records[4]?.position ?? 0) + 40)
    const again = await opened(copy)
    const read = await answers(again, upTo(30))
    assert.equal(read.filter((answer) => answer === "whole").length, 29)
    assert.equal(again.status().damaged_batches, 1)
  })

  it("in a payload is detected by a read, and the blob is quarantined", async () => {
    const dir = await killed()
    const batch = nth(batchesIn(dir), 10)
    flip(batch.path, (batch.records[0]?.payload ?? 0) + 500)
    const engine = await opened(dir)
    const read = await answers(engine, upTo(40))
    assert.equal(read[10], "BlobCorrupt")
    assert.equal(read.filter((answer) => answer === "whole").length, 39)
    assert.equal(await readOne(engine, 10), "BlobNotFound")
    assert.equal((await engine.usage()).quarantined, 1)
    assert.equal((await engine.scan(40, 10))[0]?.kind, "quarantined")
  })

  it("in a head covered by a checkpoint is reported, and a put restores the blob", async () => {
    const dir = freshFolder()
    const engine = await opened(dir)
    await putEach(engine, upTo(20))
    await engine.close()
    const batch = nth(batchesIn(dir), 7)
    flip(batch.path, (batch.records[0]?.position ?? 0) + 40)
    for (const how of ["get", "put", "delete"]) {
      const again = await opened(copyOf(dir))
      if (how === "get") assert.equal(await readOne(again, 7), "BlobCorrupt")
      const { id } = batch.records[0] ?? assert.fail()
      // A batch's record holds an id.
      if (how === "delete") await again.delete(id as Parameters<typeof again.delete>[0], origin, 9n)
      if (how !== "delete") assert.equal((await putOne(again, 7)).created, true)
      assert.equal(await readOne(again, 7), how === "delete" ? "BlobNotFound" : "whole")
      const kinds = (await again.scan(20, 10)).map(({ kind }) => kind)
      assert.deepEqual(kinds, how === "delete" ? ["quarantined"] : ["quarantined", "stored"])
      const count = how === "delete" ? 19 : 20
      const { blob_count, payload_bytes } = await again.usage()
      assert.deepEqual(
        { blob_count, payload_bytes },
        { blob_count: count, payload_bytes: count * 1000 },
      )
      const [fact = assert.fail()] = await again.scan(20, 1)
      const { size, checksum, policy } = fact
      assert.deepEqual({ size, policy }, { size: 1000, policy: "REPLICATION_POLICY_REPLICA3" })
      assert.equal(Buffer.from(checksum, "base64").toString("hex").slice(0, 32), id)
    }
  })

  it("of a whole page in the middle of a file loses nothing after it", async () => {
    const dir = await killed(100)
    const batch = nth(batchesIn(dir), 50)
    lose(batch.path, batch.position, batch.bytes)
    const engine = await opened(dir)
    const read = await answers(engine, upTo(100))
    assert.equal(read.filter((answer) => answer === "whole").length, 99)
    assert.equal(read[50], "BlobNotFound")
    const { meta } = await putOne(engine, 50)
    assert(meta.created_at > 0n)
  })

  it("in both copies of a superblock loses nothing, with a checkpoint or without", async () => {
    for (const has_checkpoint of [true, false]) {
      const dir = freshFolder()
      const engine = await opened(dir)
      await putEach(engine, upTo(60))
      if (has_checkpoint) await engine.checkpoint()
      await putEach(engine, upTo(60, 60))
      const copy = copyOf(dir)
      const [path = ""] = logPaths(copy)
      flip(path, 0, 8)
      flip(path, 4096, 8)
      await allWhole(await opened(copy), upTo(120))
    }
  })
})

describe("a write that lands on the start of a file", () => {
  it("loses the overwritten data, and nothing else in the file", async () => {
    const dir = freshFolder()
    const engine = await opened(dir)
    await putEach(engine, upTo(6))
    const copy = copyOf(dir)
    const [path = ""] = logPaths(copy)
    lose(path, 0, nth(batchesIn(copy), 2).position)
    const again = await opened(copy)
    assert.deepEqual(await answers(again, upTo(2)), ["BlobNotFound", "BlobNotFound"])
    await allWhole(again, upTo(4, 2))
  })
})

describe("a recycled file", () => {
  /** The same file as one that was retired just before the process was killed. */
  const renew = (path: string) => {
    const bytes = readFileSync(path)
    const superblock = decodeSuperblock(bytes) ?? assert.fail("no superblock")
    const generation = superblock.generation + 1000
    encodeSuperblock({ ...superblock, generation }).copy(bytes)
    writeFileSync(path, bytes)
  }

  it("exposes none of its old contents, although the bytes still exist", async () => {
    const dir = await killed(100)
    const [path = ""] = logPaths(dir)
    const held = batchesIn(dir).filter((batch) => batch.path === path).length
    assert(held > 10)
    renew(path)
    const engine = await opened(dir)
    assert.equal((await engine.usage()).blob_count, 100 - held)
    await putEach(engine, upTo(held))
    await allWhole(engine, upTo(100))
    await putEach(engine, upTo(100, 200))
    const again = await opened(copyOf(dir))
    await allWhole(again, [...upTo(100), ...upTo(100, 200)])
    assert.equal(again.status().damaged_batches, 0)
  })

  it("takes no removal with it: a later removal of the same blob counts instead", async () => {
    for (const size of [1000, 100_000]) {
      const dir = freshFolder()
      const engine = await opened(dir)
      const { id } = await putOne(engine, 7, size)
      await putEach(engine, upTo(40, 100))
      await engine.delete(id, origin, 9n)
      await putEach(engine, upTo(40, 200))
      await engine.delete(id, origin, 9n)
      const copy = copyOf(dir)
      const removals = batchesIn(copy).filter(({ records }) => records[0]?.id === id)
      assert.equal(removals.length, 3)
      const [first = "", second = "", third = ""] = removals.map(({ path }) => path)
      assert(first !== second && second !== third)
      const held = batchesIn(copy).filter(({ path }) => path === second).length - 1
      renew(second)
      const again = await opened(copy)
      const { blob_count, payload_bytes } = await again.usage()
      assert.deepEqual([blob_count, payload_bytes], [80 - held, 1000 * (80 - held)])
      await putEach(again, upTo(80, 300))
      assert.equal((await putOne(again, 7, size)).created, true)
      assert.equal(await readOne(again, 7, size), "whole")
    }
  })

  it("that an older checkpoint refers to invalidates that one", async () => {
    const dir = freshFolder()
    const engine = await opened(dir)
    await putEach(engine, upTo(100))
    await engine.checkpoint()
    await engine.checkpoint()
    const copy = copyOf(dir)
    const [path = ""] = logPaths(copy)
    const held = batchesIn(copy).filter((batch) => batch.path === path).length
    renew(path)
    // The last one is lost: the other may refer to files that have been recycled.
    flip(checkpointPaths(copy)[1] ?? assert.fail(), 8)
    const again = await opened(copy)
    assert.equal((await again.usage()).blob_count, 100 - held)
  })

  it("leaves an invalid checkpoint behind, and the next one takes precedence", async () => {
    const dir = freshFolder()
    const engine = await opened(dir)
    await putEach(engine, upTo(100))
    for (let times = 0; times < 3; times++) await engine.checkpoint()
    const copy = copyOf(dir)
    const [path = ""] = logPaths(copy)
    const held = batchesIn(copy).filter((batch) => batch.path === path).length
    renew(path)
    // The third one. The second one refers to the file that was recycled.
    flip(checkpointPaths(copy)[0] ?? assert.fail(), 8)
    const again = await opened(copy)
    await again.checkpoint()
    assert.equal((await (await opened(copyOf(copy))).usage()).blob_count, 100 - held)
  })
})

describe("a checkpoint of another volume", () => {
  it("is not used for this one's files", async () => {
    const [one, other] = [freshFolder(), freshFolder()]
    for (const dir of [one, other]) await (await opened(dir)).close()
    for (const name of readdirSync(one).filter((file) => file.startsWith("checkpoint-"))) {
      writeFileSync(join(other, name), readFileSync(join(one, name)))
    }
    await assert.rejects(opened(other), /not match its checkpoint/)
  })
})
