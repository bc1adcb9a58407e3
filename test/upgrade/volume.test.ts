/** A volume of this release, opened by the previous release, and vice versa. */
import assert from "node:assert/strict"
import { execFileSync } from "node:child_process"
import { copyFileSync } from "node:fs"
import { join } from "node:path"
import { it } from "vitest"
import type { VolumeEngine } from "#volume"
import { copyOf, freshFolder, opened, putEach, readOne } from "../../packages/volume/test/opened.ts"
import { describePrevious } from "./previous.ts"

const script = "previous-volume.mjs"
const seeds = [1, 2, 3, 4, 5]

interface Found {
  readonly whole?: number
  readonly refused?: string
}

const openOld = (place: string, dir: string, text: string): Found => {
  copyFileSync(join(import.meta.dirname, script), join(place, script))
  return JSON.parse(execFileSync(process.execPath, [script, dir, text], { cwd: place }).toString())
}

const wholeIn = (engine: VolumeEngine) =>
  Promise.all(seeds.map((seed) => readOne(engine, seed))).then((found) => new Set(found))

describePrevious("a volume and the release before", (place) => {
  it("go together as long as nothing is in it that only this release writes", async () => {
    const dir = freshFolder()
    const engine = await opened(dir)
    await putEach(engine, seeds)
    await engine.close()
    assert.deepEqual(openOld(place(), dir, "old"), { whole: seeds.length })
    const again = await opened(dir)
    assert.deepEqual(await wholeIn(again), new Set(["whole"]))
    assert.equal((await again.usage()).blob_count, seeds.length + 1)
  })
  it("do not once it says when a blob was put last: it is left as it is, and whole", async () => {
    const dir = freshFolder()
    const engine = await opened(dir)
    const [id] = await putEach(engine, seeds)
    assert(id !== undefined)
    const renewed = await engine.renew(id, 5000n, 6000n)
    assert.equal(renewed?.put_at, 5000n)
    for (const left of [copyOf(dir), dir]) {
      if (left === dir) await engine.close()
      assert.match(openOld(place(), left, "old").refused ?? "", /version 2, this program knows 1/)
      const again = await opened(left)
      assert.deepEqual(await wholeIn(again), new Set(["whole"]))
      assert.equal((await again.copiesOf([id]))[0]?.kind, "whole")
      const { blob_count, quarantined } = await again.usage()
      assert.deepEqual([blob_count, quarantined], [seeds.length, 0])
      await again.close()
    }
  })
})
