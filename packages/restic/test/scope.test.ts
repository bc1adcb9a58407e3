import { assert, describe, it } from "@effect/vitest"
import { exactArgs, isScopeTag, type Scope, scopeTag, sparedOf } from "../scope.ts"

const scope = (exclude: ReadonlyArray<string>, include: ReadonlyArray<string> = []): Scope => ({
  include_patterns: include,
  exclude_patterns: exclude,
})

describe("the arguments of an exact restore", () => {
  for (const [what, of, path, args] of [
    ["everything in a snapshot", scope([]), "", ["--delete"]],
    ["no deletion if the scope is unknown", undefined, "", []],
    ["a path without deletion", undefined, "/a [b]", [String.raw`--include=/a \[b\]`]],
    ["a path", scope([]), "/a", ["--delete", "--include=/a"]],
    [
      "everything except the excludes",
      scope(["*.tmp", "/c"]),
      "",
      ["--delete", "--exclude=/**/*.tmp", "--exclude=/c"],
    ],
    [
      "a path except the excludes",
      scope(["!x"]),
      "/a",
      ["--delete", "--include=/a", "--include=!/**/!x"],
    ],
    [
      "the includes except the excludes",
      scope(["x"], ["/a", "b"]),
      "",
      ["--delete", "--include=/a", "--include=/**/b", "--include=/b", "--include=!/**/x"],
    ],
    [
      "the included paths below a path",
      scope(["x"], ["/a/b", "/c"]),
      "/a",
      ["--delete", "--include=/a/b", "--include=!/**/x"],
    ],
    ["an included path", scope([], ["/a"]), "/a/b", ["--delete", "--include=/a/b"]],
  ] as const) {
    it(`are for ${what}`, () => {
      assert.deepEqual(exactArgs(of, path), [...args])
    })
  }

  it("spare folders by names of any bytes", () => {
    const spared = ["/new", "/f\uFFFDr [1]"]
    assert.deepEqual(exactArgs(scope(["x"]), "", spared), [
      "--delete",
      "--exclude=/**/x",
      "--exclude=/new",
      String.raw`--exclude=/f?r \[1\]`,
    ])
    assert.include(exactArgs(scope(["x"]), "/a", ["/a/new"]), "--include=!/a/new")
  })
})

describe("a new folder", () => {
  it("is spared by its topmost name if it contains excluded items", () => {
    const deleted = [
      "/home/new/a.txt",
      "/new/deep/x.tmp",
      "/new/deep",
      "/new/y.txt",
      "/new",
      "/newer/y.txt",
      "/newer",
      "/home/u1/new/x.tmp",
      "/home/u1/new",
    ]
    assert.deepEqual(sparedOf(scope(["*.tmp"]), deleted), ["/new", "/home/u1/new"])
    assert.deepEqual(sparedOf(scope(["/x.tmp"]), deleted), [])
    assert.deepEqual(sparedOf(scope([]), deleted), [])
  })
})

describe("the tag of a scope", () => {
  it("is one word that restic does not split, and is found among others", () => {
    const tag = scopeTag(scope(["a,b", "ö =*"], ["c"]))
    assert.match(tag, /^patterns=[\w-]+$/)
    assert.deepEqual([tag, "policy=1"].map(isScopeTag), [true, false])
  })
})
