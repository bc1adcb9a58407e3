/** CHANGELOG.md and the version of the project. */
import { describe, expect, it } from "vitest"
import { readTree } from "./tree.ts"

const tree = readTree()
const textOf = (path: string) => tree.find((file) => file.path === path)?.text ?? ""
const lines = textOf("CHANGELOG.md").split("\n")
const headings = lines.filter((line) => line.startsWith("## "))
const versions = headings.map((line) =>
  /^## (\d+)\.(\d+)\.(\d+) \(/.exec(line)?.slice(1).map(Number),
)

describe("the changelog", () => {
  it("begins with the version of package.json and package-lock.json", () => {
    const newest = versions[0]?.join(".")
    const lock = JSON.parse(textOf("package-lock.json"))
    expect(JSON.parse(textOf("package.json")).version).toBe(newest)
    expect([lock.version, lock.packages[""].version]).toEqual([newest, newest])
  })

  it("lists versions newest first, the newest with its date", () => {
    expect(versions).not.toContain(undefined)
    const order = versions.map((version = []) =>
      version.reduce((sum, part) => sum * 1000 + part, 0),
    )
    expect(order).toEqual([...new Set(order)].toSorted((one, other) => other - one))
    expect(headings[0]).toMatch(/ \(\d{4}-\d\d-\d\d\)$/)
  })

  it("has entries of one line, each under a subject", () => {
    const other = lines.filter((line) => /^\s+\S/.test(line))
    expect(other).toEqual([])
    const first = lines.findIndex((line) => line.startsWith("### "))
    expect(lines.findIndex((line) => line.startsWith("- "))).toBeGreaterThan(first)
  })
})
