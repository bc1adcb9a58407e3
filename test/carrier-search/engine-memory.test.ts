import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"

const above_mb_max = 60

/**
 * V8 collects garbage late if it may, so the heap has little room beyond what loading needs (40
 * MB): the process then holds what it must, or fails.
 */
const limits = ["--max-semi-space-size=8", "--max-old-space-size=64"]

describe("the range engine", () => {
  it("holds at most 60 MB more for a million numbers of which 1% match", async () => {
    const child = join(import.meta.dirname, "hold-search.ts")
    const { stdout } = await promisify(execFile)(process.execPath, [...limits, child])
    const { done, found, above_mb } = JSON.parse(stdout)
    assert.deepEqual([done, found], [1_000_000, 10_000])
    assert.isAtMost(above_mb, above_mb_max)
  })
})
