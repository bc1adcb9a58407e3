/** A restored or new folder for a node whose later facts are in the event log. */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import { copyOf, freshFolder, opened, origin, putEach, putOne, readOne } from "./opened.ts"

const seeds = [0, 1, 2, 3]

describe("a volume that is behind the event log", () => {
  for (const [what, older] of [
    ["an older state of its folder", [0, 1]],
    ["a new folder", []],
  ] as const) {
    it(`resumes after the last fact in the event log with ${what}`, async () => {
      const dir = freshFolder()
      const before = await opened(dir)
      await putEach(before, older)
      await before.acknowledge(1)
      await before.close()

      const reports: Array<string> = []
      const report = (problem: string) => void reports.push(problem)
      const engine = await opened(dir, { resume_after: 9, report })
      assert.match(reports.join(), new RegExp(`ends at ${older.length}, .* up to 9`))
      assert.deepEqual(await engine.scan(0, 10), [])
      const { id } = await putOne(engine, 3)
      assert.deepEqual(
        (await engine.scan(9, 10)).map((fact) => [fact.cursor, fact.id]),
        [[10, id]],
      )

      // It remembers that after a kill, and reports it only once.
      const again = await opened(copyOf(dir), { resume_after: 9, report })
      assert.equal(reports.length, 1)
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

  it("keeps facts that the event log does not have yet", async () => {
    const dir = freshFolder()
    const engine = await opened(dir)
    await putEach(engine, seeds)
    await engine.close()
    const again = await opened(dir, { resume_after: 3, report: assert.fail })
    const cursors = (await again.scan(3, 10)).map(({ cursor }) => cursor)
    assert.deepEqual(cursors, [4])
  })
})
