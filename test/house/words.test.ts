/** The style check: prose and names in plain English. Source: CONTRIBUTING.md, Language. */
import { describe, expect, it } from "vitest"
import { passagesOf } from "./prose.ts"
import { readTree, type TreeFile, withoutComments } from "./tree.ts"
import { private_names, word_rules } from "./words.ts"

/** Recorded responses, and the rules' own examples. */
const is_exempt = /^test\/(house\/(words|rules)|golden\/)|\.json$|^LICENSE$/

const tree = readTree().filter(({ path }) => !is_exempt.test(path))

const problemsOf = (file: TreeFile) =>
  passagesOf(file).flatMap(({ kind, line, text }) => {
    return word_rules
      .filter(({ pattern, kinds }) => (!kinds || kinds.includes(kind)) && pattern.test(text))
      .map(({ pattern, use }) => {
        const found = pattern.exec(text)?.[0].trim()
        return `${file.path}:${line}: "${found}": write ${use} (${text.slice(0, 120)})`
      })
  })

describe("the words", () => {
  it("are plain English in documents, comments, messages and pages", () => {
    expect(tree.flatMap(problemsOf)).toEqual([])
  })

  it("are the field's terms in names", () => {
    const found = tree
      .filter(({ path }) => /\.(ts|mts|mjs)$/.test(path))
      .flatMap(({ path, text }) =>
        withoutComments(text)
          .replaceAll(/"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g, '""')
          .split("\n")
          .flatMap((line, index) => {
            const name = private_names.exec(line)?.[0]
            return name === undefined ? [] : [`${path}:${index + 1}: ${name}`]
          }),
      )
    expect(found).toEqual([])
  })
})

describe("each rule of words", () => {
  for (const { pattern, finds, permits } of word_rules) {
    it(`finds "${finds}"`, () => {
      expect(finds).toMatch(pattern)
      if (permits !== undefined) expect(permits).not.toMatch(pattern)
    })
  }

  it("reads every kind of prose", () => {
    const kinds = new Set(tree.flatMap(passagesOf).map(({ kind }) => kind))
    expect([...kinds].toSorted()).toEqual(["comment", "document", "message", "page"])
  })
})
