import { assert, describe, it } from "@effect/vitest"
import { literal, makeMatcher, type PathMatch, patternBelow, patternsIn } from "../pattern.ts"

describe("a pattern", () => {
  const cases: ReadonlyArray<readonly [pattern: string, path: string, is: PathMatch]> = [
    ["notes.txt", "notes.txt", "matched"],
    ["notes.txt", "home/u1/notes.txt", "matched"],
    ["notes.txt", "home", "above"],
    ["home", "home/u1/notes.txt", "matched"],
    ["/home", "a/home", "none"],
    ["/home/u1", "home", "above"],
    ["/home/u1", "home/u1/x", "matched"],
    ["/home/u1", "home/u2", "none"],
    ["//home//u1/", "home/u1", "matched"],
    ["./home", "home/u1", "matched"],
    ["/./home/./u1", "home/u1", "matched"],
    [".", "home", "matched"],
    ["*.tmp", "a/b.tmp", "matched"],
    ["*.tmp", "a/b.tmp2", "above"],
    ["/*.tmp", "b.tm", "none"],
    ["/a?c", "abc", "matched"],
    ["/a?c", "ac", "none"],
    ["/a?c", "a\u{1f600}c", "matched"],
    ["/a*", "a", "matched"],
    ["/[a-c]x", "bx", "matched"],
    ["/[^a-c]x", "bx", "none"],
    ["/[a-c]x", "dx", "none"],
    [String.raw`/\*x`, "*x", "matched"],
    [String.raw`/\*x`, "ax", "none"],
    [String.raw`/[\]]x`, "]x", "matched"],
    ["/[x", "[x", "matched"],
    ["home/**/notes.txt", "home/notes.txt", "matched"],
    ["home/**/notes.txt", "home/a/b/notes.txt", "matched"],
    ["/home/**/notes.txt", "home/a", "above"],
    ["/home/**/notes.txt", "else", "none"],
    ["/a.c", "abc", "none"],
    ["/$(x)", "$(x)", "matched"],
    ["!bang", "!bang", "matched"],
    ["-dash", "-dash", "matched"],
    ["/a", "a\nb", "none"],
    ["/a*b", "a\nb", "matched"],
  ]
  for (const [pattern, path, expected] of cases) {
    it(`${pattern} is ${expected} of ${JSON.stringify(path)}`, () => {
      assert.equal(makeMatcher([pattern])(path.split("/")), expected)
    })
  }

  it("takes no more time with more wildcards", () => {
    const stars = `${"*a".repeat(60)}*b`
    const deep = `${"**/".repeat(60)}x`
    const started_ms = performance.now()
    assert.equal(makeMatcher([`/${stars}`])(["a".repeat(255)]), "none")
    assert.equal(makeMatcher([deep])(Array.from({ length: 200 }, () => "a")), "above")
    assert.isBelow(performance.now() - started_ms, 1_000)
  })

  it("is the closest match of several", () => {
    const judge = makeMatcher(["/a/b", "/c"])
    assert.deepEqual([judge(["a"]), judge(["c"]), judge(["d"])], ["above", "matched", "none"])
    assert.equal(makeMatcher([])(["a"]), "none")
  })
})

describe("patterns for a sub path", () => {
  for (const [patterns, path, expected] of [
    [["/home/u1", "*.tmp"], "", ["/home/u1", "/**/*.tmp", "/*.tmp"]],
    [["/home/u1"], "/home", ["/home/u1"]],
    [["/home/u1"], "/home/u1/a [b]", [String.raw`/home/u1/a \[b\]`]],
    [["/home/u1", "else"], "/home/u1", ["/home/u1"]],
    [["/home/*/docs/*.txt"], "/home/u[1]", [String.raw`/home/u\[1\]/docs/*.txt`]],
    [["/home"], "/else", []],
    [["."], "", ["/*"]],
  ] as const) {
    it(`${patterns.join(" and ")} continue from "${path}"`, () => {
      assert.deepEqual(patternsIn(patterns, path), [...expected])
    })
  }
})

describe("a pattern for restic", () => {
  it("is prefixed with the share's folder, whose name is escaped", () => {
    assert.equal(patternBelow("/s/[1]*", "/a/b"), String.raw`/s/\[1\]\*/a/b`)
    assert.equal(patternBelow("/s", "home/*.tmp"), "/s/**/home/*.tmp")
    assert.equal(patternBelow("/s", "!x"), "/s/**/!x")
  })

  it("is the path itself if it has no special characters", () => {
    assert.equal(literal("/a [b]*?\\"), String.raw`/a \[b\]\*\?\\`)
  })
})
