/** The memory of the chunk tables that reads of large blobs keep. */
import assert from "node:assert/strict"
import { setImmediate } from "node:timers/promises"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { expect, it } from "vitest"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import { kib, put, readAll, withVolume } from "../volume-folder.ts"

const blobs = 100
/** Two windows. */
const size = 1024 * kib
const slab_bytes = 64 * kib

/** Bytes of reachable buffers. */
const liveBytes = async () => {
  setFlagsFromString("--expose-gc")
  const collect: () => void = runInNewContext("gc")
  // Buffers that other threads wrote to are freed in a later turn.
  for (let n = 0; n < 3; n++) {
    collect()
    await setImmediate()
  }
  return process.memoryUsage().arrayBuffers
}

it("does not keep the memory that Node shared between a table and other reads", async () => {
  await withVolume(async (volume) => {
    const ids = []
    for (let n = 0; n < blobs; n++) ids.push((await put(volume, noise(n, size))).id)
    const before = await liveBytes()
    for (const id of ids) {
      assert.equal((await readAll(volume, id)).length, size)
      // A table that the process reads in the meantime: the next table is in another slab.
      for (let used = 0; used < slab_bytes; used += 8 * kib) Buffer.allocUnsafe(8 * kib)
    }
    expect((await liveBytes()) - before).toBeLessThan((blobs * slab_bytes) / 4)
  })
})
