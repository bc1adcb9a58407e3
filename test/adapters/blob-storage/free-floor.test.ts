/** The default free-space floor, and the first-start record from which it is computed. */
import assert from "node:assert/strict"
import { mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { it } from "@effect/vitest"
import { Effect } from "effect"
import { describe, onTestFinished } from "vitest"
import { defaultFloor, floorOf } from "#volume"

const gib = 2 ** 30

const freshFolder = () => {
  const dir = mkdtempSync(join(tmpdir(), "floor-"))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

describe("the default floor", () => {
  it("is 1 GiB or 5% of the disk, and at most half of what was free at first", () => {
    assert.equal(defaultFloor(10 * gib, 9 * gib), gib)
    assert.equal(defaultFloor(100 * gib, 90 * gib), 5 * gib)
    assert.equal(defaultFloor(100 * gib, 4 * gib), 2 * gib)
    assert.equal(defaultFloor(100 * gib, 0), 0)
  })

  it.effect("stays what the first start found, however full the disk is later", () =>
    Effect.gen(function* () {
      const dir = freshFolder()
      const { blocks, bsize } = statfsSync(dir)
      const path = join(dir, "first-start.json")
      yield* floorOf(dir, 5)
      const { free_bytes } = JSON.parse(readFileSync(path, "utf8"))
      assert(free_bytes > 0)
      writeFileSync(path, JSON.stringify({ free_bytes: 1000 }))
      assert.equal(yield* floorOf(dir, 0), 500)
      assert.equal(JSON.parse(readFileSync(path, "utf8")).free_bytes, 1000)
      assert.equal(yield* floorOf(dir, 7), 7)
      // A damaged record is recreated.
      writeFileSync(path, "{")
      const again = yield* floorOf(dir, 0)
      assert.equal(
        again,
        defaultFloor(blocks * bsize, JSON.parse(readFileSync(path, "utf8")).free_bytes),
      )
    }),
  )
})
