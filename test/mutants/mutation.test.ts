/** The mutations of `node test/mutants/mutants.ts`, and the tests that it runs for each. */
import { describe, expect, it } from "vitest"
import { chooseMutations, mutate, mutationsOf } from "./mutation.ts"
import { relatedTests } from "./related.ts"

const mutantsOf = (text: string) =>
  mutationsOf({ path: "actors/a.ts", text }).map((mutation) => mutate(text, mutation))

describe("a mutation", () => {
  it.each([
    ["const a = b < c", ["const a = b <= c"]],
    ["const a = b && c", ["const a = b || c"]],
    ["const a = b * c - d", ["const a = b * c + d", "const a = b / c - d"]],
    ["if (a) b()", ["if (!(a)) b()"]],
    ["if (!a) b()", ["if (a) b()"]],
    ["const a = b ? c : d", ["const a = !(b) ? c : d"]],
    ["const size_max = 1_000", ["const size_max = 1001"]],
    ["const size_max = 16n", ["const size_max = 17n"]],
    ["const a = true", ["const a = false"]],
    ['const a = { b: "c" }', ['const a = { b: "c~" }']],
  ])("changes one operator, condition or constant of %s", (text, mutants) => {
    expect(mutantsOf(text)).toEqual(mutants)
  })

  it.each([
    'import { a } from "b"',
    'export { a } from "b"',
    'type A = "b" | 1',
    "interface A { readonly b: true }",
    "const a = b satisfies 1 // 2 < 3",
    'const a = { "b": c, description: "d" }',
    // A sum of strings has no opposite.
    // biome-ignore lint/suspicious/noTemplateCurlyInString: source text
    "const a = b + `${c}` + d",
  ])("leaves %s alone", (text) => {
    expect(mutantsOf(text)).toEqual([])
  })

  it("is chosen by the seed and by its line, wherever the line is", () => {
    const lines = Array.from({ length: 20 }, (_, i) => `const a${i} = ${i} < b${i} ? c : true\n`)
    const chosen = (text: string, seed = 1) =>
      chooseMutations([{ path: "actors/a.ts", text }], seed, 12).map((mutation) => mutation.after)
    expect(chosen(lines.join(""))).toEqual(chosen(`\n${lines.toReversed().join("")}`))
    expect(chosen(lines.join(""))).not.toEqual(chosen(lines.join(""), 2))
    // No line has a string to change.
    expect(new Set(chosen(lines.join("")))).toHaveLength(11)
  })
})

describe("the related tests", () => {
  const related = relatedTests(
    [
      { path: "schemas/a.ts", text: "" },
      { path: "packages/p/p.ts", text: 'import { a } from "#schemas/a.ts"\n' },
      { path: "test/far.test.ts", text: 'import { p } from "#p"\n' },
      { path: "test/near.test.ts", text: 'import { a } from "../schemas/a.ts"\n' },
      { path: "test/types.test.ts", text: 'import type { A } from "../schemas/a.ts"\n' },
    ],
    { "#schemas/*": "./schemas/*", "#p": "./packages/p/p.ts" },
  )

  it("are those that import the file, the nearest first", () => {
    expect(related("schemas/a.ts")).toEqual(["test/near.test.ts", "test/far.test.ts"])
    expect(related("packages/p/p.ts")).toEqual(["test/far.test.ts"])
  })
})
