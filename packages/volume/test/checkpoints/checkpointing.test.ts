/** A volume keeps working while its checkpoint is written, and the checkpoint is a snapshot. */
import assert from "node:assert/strict"
import { basename } from "node:path"
import { describe, it } from "vitest"
import { type VolumeDisk, volumeDisk } from "../../disk.ts"
import { copyOf, freshFolder, opened, origin, putEach, putOne, readOne } from "../opened.ts"

/** The real disk, whose checkpoints become durable only when the gate opens. */
const gatedDisk = () => {
  let gate = Promise.withResolvers<void>()
  const opened_files: Array<string> = []
  gate.resolve()
  const disk: VolumeDisk = {
    ...volumeDisk,
    open: async (path) => {
      const file = await volumeDisk.open(path)
      const datasync = async () => {
        opened_files.push(basename(path))
        await gate.promise
        await file.datasync()
      }
      return path.includes("checkpoint") ? { ...file, datasync } : file
    },
  }
  const shutGate = () => {
    gate = Promise.withResolvers()
  }
  return { disk, opened_files, shutGate, openGate: () => gate.resolve() }
}

const small = 100
const seeds = Array.from({ length: 20 }, (_, n) => n)

describe("a checkpoint", () => {
  it("lets puts and deletes continue, and contains none of them", async () => {
    const { disk, shutGate, openGate } = gatedDisk()
    const dir = freshFolder()
    const engine = await opened(dir, {}, disk)
    const ids = await putEach(engine, seeds, small)
    shutGate()
    const made = engine.checkpoint()
    await putEach(engine, [100, 101], small)
    await engine.delete(ids[3] ?? assert.fail(), origin, 9n)
    const cut_off = copyOf(dir)
    openGate()
    await made
    for (const copy of [cut_off, copyOf(dir)]) {
      const again = await opened(copy)
      assert.equal((await again.usage()).blob_count, seeds.length + 1)
      for (const seed of [...seeds, 100, 101]) {
        assert.equal(await readOne(again, seed, small), seed === 3 ? "BlobNotFound" : "whole")
      }
    }
  })
  it("is written after the previous one, and both before the volume is closed", async () => {
    const { disk, opened_files, shutGate, openGate } = gatedDisk()
    const dir = freshFolder()
    const engine = await opened(dir, {}, disk)
    await putOne(engine, 1, small)
    shutGate()
    const both = [engine.checkpoint(), engine.checkpoint()]
    await putOne(engine, 2, small)
    const shut = engine.close()
    await putOne(engine, 3, small).catch(() => undefined)
    assert(opened_files.length <= 1, "one at a time")
    openGate()
    await Promise.all([...both, shut])
    assert.deepEqual(opened_files, ["checkpoint-1", "checkpoint-2", "checkpoint-1"])
    assert.equal(await readOne(await opened(copyOf(dir)), 2, small), "whole")
  })
})
