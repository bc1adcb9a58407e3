import { assert, describe, it } from "vitest"
import { decode } from "#adapters/commit-codec.ts"

describe("a commit's bytes", () => {
  const read = (text: string) => () => decode(7, "a.b.c", Buffer.from(text))

  it("that are no JSON are named by their position", () => {
    assert.throws(read("{"), "The commit at 7 is no JSON: something else wrote or changed it.")
  })

  it("of another version are named by their position", () => {
    assert.throws(read('{"v":2}'), "The commit at 7 has an unknown version.")
  })
})
