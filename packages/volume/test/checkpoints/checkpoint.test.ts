/** A volume's checkpoint is either complete and of one attempt, or invalid. */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import { seeded } from "../../../../test/world/seeded.ts"
import {
  type CheckpointFacts,
  readCheckpoint,
  writeCheckpoint,
} from "../../checkpoints/checkpoint.ts"
import { fresh_counters } from "../../log/state.ts"
import { log_start } from "../../log/writer.ts"
import { simulateDisk } from "../simulated/disk.ts"

const dir = "/v"
const pieces = 6

const facts: CheckpointFacts = {
  serial: 1,
  volume_id: "00",
  generation: 1,
  end: log_start,
  counters: fresh_counters,
  logs: [],
  notes: {},
}

/** Images of this many pieces, with different bytes for each attempt. */
const imagesOf = (attempt: number) => ({
  index: Array.from({ length: pieces }, (_, n) => noise(100 * attempt + n, 5000)),
  extents: Array.from({ length: pieces }, (_, n) => noise(100 * attempt + 50 + n, 300)),
})

const isOf = (attempt: number, found: Awaited<ReturnType<typeof readCheckpoint>>) => {
  const { checkpoint } = found ?? assert.fail("there is no checkpoint")
  const wanted = imagesOf(attempt)
  // As bytes, because a failed comparison of arrays takes minutes to print.
  for (const kind of ["index", "extents"] as const) {
    assert(Buffer.concat(checkpoint[kind]).equals(Buffer.concat(wanted[kind])), `another ${kind}`)
  }
}

describe("a checkpoint", () => {
  it("of an interrupted attempt is never completed by an older one with its serial", async () => {
    // Every step of the second attempt is the last one once; the first attempt is all on disk.
    for (let step = 1; ; step++) {
      const simulated = simulateDisk(seeded(step))
      await writeCheckpoint(simulated.disk, dir, facts, imagesOf(1))
      isOf(1, await readCheckpoint(simulated.disk, dir))
      simulated.plan(step, { kind: "kill", moment: "before" })
      const written = writeCheckpoint(simulated.disk, dir, facts, imagesOf(2))
      const end = await Promise.race([written.then(() => "written"), simulated.end])
      if (end === "written") {
        assert(step > pieces, "it has been cut off in many places")
        return isOf(2, await readCheckpoint(simulated.disk, dir))
      }
      const after = simulated.after()
      const found = await readCheckpoint(after.disk, dir)
      // Before its first step the old one is intact; a kill before its sync leaves the new one.
      if (found) isOf(step === 1 ? 1 : 2, found)
      else assert(step > 1, "the old one is lost before anything was written")
    }
  })
})
