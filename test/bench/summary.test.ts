/** docs/benchmarks.md summarizes docs/benchmark-results.md: each figure is in its tables. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"

const docs = join(import.meta.dirname, "../../docs")
const summary = readFileSync(join(docs, "benchmarks.md"), "utf8")
const results = readFileSync(join(docs, "benchmark-results.md"), "utf8")

/** The measured tables of each suite. */
const tables = new Map(
  [...results.matchAll(/<!-- bench:([\w-]+) -->\n([\s\S]*?)<!-- \/bench:/g)].map(
    ([, suite = "", text = ""]) => [suite, text],
  ),
)

const rows = [...summary.matchAll(/^\| \[([\w-]+)\]\(benchmark-results\.md#.*$/gm)].map(
  ([line, suite = ""]) => {
    const [, , work = "", almanac = "", , , ratio = ""] = line.split("|").map((one) => one.trim())
    return { suite, work, almanac, ratio }
  },
)

describe("the summary of the benchmarks", () => {
  it("has a row for each suite", () => {
    assert.isAbove(tables.size, 15)
    assert.sameMembers([...new Set(rows.map(({ suite }) => suite))], [...tables.keys()])
  })

  it("has only figures that were measured", () => {
    for (const { suite, work, almanac, ratio } of rows) {
      const text = tables.get(suite) ?? ""
      const rate = /^[\d.,]+/.exec(almanac)?.[0] ?? ""
      assert.include(text, rate, `${suite}: ${work}`)
      // A ratio without a range is computed from two cells of the tables.
      if (ratio.includes("(")) assert.include(text, ratio.replace(/ s$/, ""), `${suite}: ${work}`)
    }
  })
})
