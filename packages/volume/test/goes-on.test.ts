/** A folder from a backup, or a new one, under a name whose later facts are in the log. */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import { copyOf, freshFolder, opened, origin, putEach, putOne, readOne } from "./opened.ts"

const seeds = [0, 1, 2, 3]

describe("a volume that is older than the log knows it", () => {
  for (const [what, older] of [
    ["an older state of its folder", [0, 1]],
    ["a new folder", []],
  ] as const) {
    it(`goes on behind the log's last fact with ${what}`, async () => {
      const dir = freshFolder()
      const before = await opened(dir)
      await putEach(before, older)
      await before.acknowledge(1)
      await before.shut()

      const said: Array<string> = []
      const report = (problem: string) => void said.push(problem)
      const engine = await opened(dir, { goes_on_after: 9, report })
      assert.match(said.join(), new RegExp(`ends at ${older.length}, .* up to 9`))
      assert.deepEqual(await engine.scan(0, 10), [])
      const { id } = await putOne(engine, 3)
      assert.deepEqual(
        (await engine.scan(9, 10)).map((fact) => [fact.cursor, fact.id]),
        [[10, id]],
      )

      // Killed, it has not forgotten that; and what is in the log needs no word any more.
      const again = await opened(copyOf(dir), { goes_on_after: 9, report })
      assert.equal(said.length, 1)
      const [fact] = await again.scan(0, 10)
      assert.equal(fact?.cursor, 10)
      await again.delete(id, origin, 9n)
      assert.deepEqual(
        (await again.scan(0, 10)).map(({ cursor, kind }) => `${cursor} ${kind}`),
        ["10 stored", "11 deleted"],
      )
      for (const seed of older) assert.equal(await readOne(again, seed), "whole")
    })
  }

  it("keeps facts that the log does not have yet", async () => {
    const dir = freshFolder()
    const engine = await opened(dir)
    await putEach(engine, seeds)
    await engine.shut()
    const again = await opened(dir, { goes_on_after: 3, report: assert.fail })
    const told = (await again.scan(3, 10)).map(({ cursor }) => cursor)
    assert.deepEqual(told, [4])
  })
})
