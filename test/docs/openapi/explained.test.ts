/**
 * The API document explains each operation, parameter, property and error, with examples.
 */
import { assert, describe, it } from "vitest"
import { shape_a } from "#gateway/share-protection/shapes/shape-a.ts"
import { shape_b } from "#gateway/share-protection/shapes/shape-b.ts"
import { portable } from "#gateway/system/document/schema.ts"
import { apisOf } from "../../world/every-api.ts"
import { documentOf, gapsIn, kinds } from "./gaps.ts"

const documents = [shape_a, shape_b].map((shape) => documentOf(apisOf(shape)))

const services = [
  "blob-storage",
  "system",
  "share-protection",
  "capital-pressure",
  "carrier-search",
  "plant-disease",
]

describe.each(services)("the API reference of %s", (service) => {
  it.each(kinds)("lacks no %s", (kind) => {
    const places = new Set(
      documents
        .flatMap(gapsIn)
        .filter((gap) => gap.service === service && gap.kind === kind)
        .map(({ place }) => place),
    )
    assert.deepEqual([...places], [])
  })
})

const patternsIn = (value: unknown): ReadonlyArray<string> => {
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([key, part]) =>
    key === "pattern" && typeof part === "string" ? [part] : patternsIn(part),
  )
}

describe("a pattern of the API reference", () => {
  it("means the same in JavaScript and in Python", () => {
    const patterns = new Set(documents.flatMap(patternsIn))
    assert.isAbove(patterns.size, 20)
    for (const pattern of patterns) {
      assert.notMatch(pattern, /\\[dwsDWSpP]/, "Python matches Unicode's digits and letters")
      assert.isDefined(new RegExp(pattern, "u"), pattern)
    }
  })

  it.each([
    ["^\\d{1,4}$", "^[0-9]{1,4}$"],
    ["^[\\w.-]+$", "^[A-Za-z0-9_.-]+$"],
    ["^[^\\p{Cc}]*$", "^[^\\x00-\\x1f\\x7f-\\x9f]*$"],
    ["^\\P{Cc}*$", "^[^\\x00-\\x1f\\x7f-\\x9f]*$"],
    ["^\\[\\d\\]$", "^\\[[0-9]\\]$"],
  ])("%s is written as %s", (pattern, expected) => {
    assert.equal(portable(pattern), expected)
  })
})
