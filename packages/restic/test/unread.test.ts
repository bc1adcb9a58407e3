import { assert, describe, it } from "@effect/vitest"
import { unread_bytes_max, unread_max } from "#schemas/share-protection/backup.ts"
import { unreadIn } from "../unread.ts"

const root = "/srv/shares/one"

const unread = (items: ReadonlyArray<string>, errors_count = items.length) => {
  const nothing = { message: "", errors: [], verdict: undefined, is_opening: false }
  return unreadIn(root, { ...nothing, items, errors_count, code: 3 })
}

describe("the unread paths of a backup", () => {
  it("are listed below the folder, once, without their contents", () => {
    const items = [`${root}/a`, "a", "./b/c", "b/c/d", `${root}/e/f`]
    assert.deepEqual(unread(items), ["/a", "/b/c", "/e/f"])
  })

  it.each([
    ["there was no error", [], 0],
    ["there were more errors than recorded paths", ["a"], 2],
    ["an error names no path", ["a", ""], 2],
    ["a path is outside the folder", ["a", "/srv/shares/onetwo/b"], 2],
    ["the path is the folder", ["a", "."], 2],
    ["the path is the folder, absolute", ["a", root], 2],
  ])("may be anything where %s", (_, items, count) => {
    assert.deepEqual(unread(items, count), ["/"])
  })

  it("are summarized by their folders if there are too many", () => {
    const many = Array.from({ length: unread_max + 1 }, (_, n) => `many/${n}`)
    assert.deepEqual(unread([...many, "few/one"]), ["/few", "/many"])
    const long = Array.from({ length: 3 }, (_, n) => `${"x".repeat(unread_bytes_max / 3)}/${n}`)
    assert.lengthOf(unread(long), 1)
    const everywhere = Array.from({ length: unread_max + 1 }, (_, n) => `${n}/x`)
    assert.deepEqual(unread(everywhere), ["/"])
  })
})
