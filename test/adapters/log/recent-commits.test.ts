import { assert, describe, it } from "@effect/vitest"
import { isReadable } from "#events/log.ts"
import { decode, recentCommits } from "#journal"

const bytes = (actor: string, size = 20_000) =>
  Buffer.from(
    JSON.stringify({
      v: 1,
      actor,
      at: "2026-11-20T12:00:00.000Z",
      events: [{ type: "x".repeat(size) }],
      snapshot: { machine: 1, value: "open", context: {} },
      commands: ["a"],
      prev: "",
    }),
  )

/** The cache of decoded commits, for entries that are readable. */
const recentReadable = () => {
  const decodeOnce = recentCommits(() => undefined)
  return (...args: Parameters<typeof decodeOnce>) => {
    const entry = decodeOnce(...args)
    assert(isReadable(entry))
    return entry
  }
}

describe("recent commits", () => {
  it("are given once more as they were read first, parsed and hashed once", () => {
    const decodeOnce = recentReadable()
    const first = decodeOnce(7, "a.b.c", bytes("alice"))
    const again = decodeOnce(7, "a.b.c", bytes("alice"))
    assert.strictEqual(again, first)
    assert.strictEqual(again.commit, first.commit)
    assert.deepEqual({ ...first }, { ...decode(7, "a.b.c", bytes("alice")) })
  })

  it("are not mistaken for others", () => {
    const decodeOnce = recentReadable()
    const first = decodeOnce(7, "a.b.c", bytes("alice"))
    assert.equal(decodeOnce(7, "a.b.c", bytes("bobby")).commit.actor, "bobby")
    assert.equal(decodeOnce(7, "a.b.c", bytes("alice")).commit.actor, "alice")
    assert.equal(decodeOnce(7, "a.b.d", bytes("alice")).stream, "a.b.d")
    assert.equal(decodeOnce(8, "a.b.c", bytes("alice")).position, 8)
    assert.equal(first.commit.actor, "alice")
  })

  it("are few: the oldest are forgotten, and small ones never kept", () => {
    const decodeOnce = recentReadable()
    const first = decodeOnce(1, "a.b.c", bytes("alice"))
    for (let position = 2; position <= 50; position++) decodeOnce(position, "a.b.c", bytes("bob"))
    assert.strictEqual(decodeOnce(1, "a.b.c", bytes("alice")), first)
    for (let position = 2; position <= 120; position++) decodeOnce(position, "a.b.c", bytes("bob"))
    assert.notStrictEqual(decodeOnce(1, "a.b.c", bytes("alice")), first)
    const small = decodeOnce(121, "a.b.c", bytes("carol", 100))
    assert.notStrictEqual(decodeOnce(121, "a.b.c", bytes("carol", 100)), small)
  })

  it("that cannot be read say so to each reader", () => {
    const decodeOnce = recentCommits(() => undefined)
    const broken = Buffer.from(`{"v":1,${"x".repeat(20_000)}`)
    assert.isFalse(isReadable(decodeOnce(1, "a.b.c", broken)))
    assert.isFalse(isReadable(decodeOnce(1, "a.b.c", broken)))
  })
})
