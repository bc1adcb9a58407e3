import { assert, describe, it } from "@effect/vitest"
import { decode } from "#adapters/commit-codec.ts"
import { recentCommits } from "#adapters/recent-commits.ts"

const bytes = (actor: string, size = 20_000) =>
  Buffer.from(JSON.stringify({ v: 1, actor, at: "x".repeat(size), events: [] }))

describe("recent commits", () => {
  it("are given once more as they were read first, parsed and hashed once", () => {
    const decodeOnce = recentCommits()
    const first = decodeOnce(7, "a.b.c", bytes("alice"))
    const again = decodeOnce(7, "a.b.c", bytes("alice"))
    assert.strictEqual(again, first)
    assert.strictEqual(again.commit, first.commit)
    const { commit, hash, position, stream } = decode(7, "a.b.c", bytes("alice"))
    assert.deepEqual({ ...first }, { position, stream, commit, hash })
  })

  it("are not mistaken for others", () => {
    const decodeOnce = recentCommits()
    const first = decodeOnce(7, "a.b.c", bytes("alice"))
    assert.equal(decodeOnce(7, "a.b.c", bytes("bobby")).commit.actor, "bobby")
    assert.equal(decodeOnce(7, "a.b.c", bytes("alice")).commit.actor, "alice")
    assert.equal(decodeOnce(7, "a.b.d", bytes("alice")).stream, "a.b.d")
    assert.equal(decodeOnce(8, "a.b.c", bytes("alice")).position, 8)
    assert.equal(first.commit.actor, "alice")
  })

  it("are few: the oldest are forgotten, and small ones never kept", () => {
    const decodeOnce = recentCommits()
    const first = decodeOnce(1, "a.b.c", bytes("alice"))
    for (let position = 2; position <= 50; position++) decodeOnce(position, "a.b.c", bytes("bob"))
    assert.strictEqual(decodeOnce(1, "a.b.c", bytes("alice")), first)
    for (let position = 2; position <= 120; position++) decodeOnce(position, "a.b.c", bytes("bob"))
    assert.notStrictEqual(decodeOnce(1, "a.b.c", bytes("alice")), first)
    const small = decodeOnce(121, "a.b.c", bytes("carol", 100))
    assert.notStrictEqual(decodeOnce(121, "a.b.c", bytes("carol", 100)), small)
  })

  it("throw for each reader where they are no commits", () => {
    const decodeOnce = recentCommits()
    const broken = Buffer.from(`{"v":1,${"x".repeat(20_000)}`)
    const read = () => decodeOnce(1, "a.b.c", broken).commit
    assert.throws(read, /no JSON/)
    assert.throws(read, /no JSON/)
  })
})
