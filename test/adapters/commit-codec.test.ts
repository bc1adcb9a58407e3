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

  it("are read when they are looked at, and their stream and position before", () => {
    const damaged = decode(7, "a.b.c", Buffer.from('{"v":1,"events":[}'))
    assert.deepEqual([damaged.position, damaged.stream], [7, "a.b.c"])
    assert.throws(() => damaged.commit, "The commit at 7 is no JSON")
    assert.deepEqual(decode(7, "a.b.c", Buffer.from('{"v":1,"events":[]}')).commit.events, [])
  })
})
