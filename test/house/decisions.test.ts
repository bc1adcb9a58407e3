/** The decision records and their index, docs/decisions/README.md. */
import { describe, expect, it } from "vitest"
import { readTree } from "./tree.ts"

const folder = "docs/decisions/"
const pages = readTree().filter(({ path }) => path.startsWith(folder))
const index = pages.find(({ path }) => path === `${folder}README.md`)?.text ?? ""
const records = pages.filter(({ path }) => path !== `${folder}README.md`)

/** The line that the index has for a record: its link, its title and what supersedes it. */
const lineOf = ({ path, text }: { path: string; text: string }): string => {
  const file = path.slice(folder.length)
  const [, title = ""] = /^# \d{4}: (.+)$/m.exec(text) ?? []
  const [, head = ""] = /^\d{4}-\d\d-\d\d\.? ?(.*)$/m.exec(text) ?? []
  const by = [...head.matchAll(/(?:by |\. )\[(\d{4})\]/g)].map(([, number]) => number)
  const part = head.startsWith("Superseded in part") ? " in part" : ""
  const mark = by.length === 0 ? "" : ` (superseded${part} by ${by.join(", ")})`
  return `- [${file.slice(0, 4)}](${file}): ${title}${mark}`
}

describe("the decisions", () => {
  it("are numbered once, and each has its three parts", () => {
    const numbers = records.map(({ path }) => path.slice(folder.length).slice(0, 4))
    expect(numbers).toEqual([...new Set(numbers)])
    const parts = ["## Context", "## Decision", "## Consequences"]
    const short = records.filter(({ text }) => !parts.every((part) => text.includes(part)))
    expect(short.map(({ path }) => path)).toEqual([])
  })

  it("begin with their number and title, then the date", () => {
    const head =
      /^# (\d{4}): [^\n]+\n\n\d{4}-\d\d-\d\d(\. Superseded (in part )?by \[\d{4}\].*)?\n\n/
    const other = records.filter(
      ({ path, text }) => head.exec(text)?.[1] !== path.slice(folder.length).slice(0, 4),
    )
    expect(other.map(({ path }) => path)).toEqual([])
  })

  it("are each in the index once, by title, with what supersedes them", () => {
    const listed = index.split("\n").filter((line) => line.startsWith("- "))
    expect(listed.toSorted()).toEqual(records.map(lineOf).toSorted())
  })

  it("are linked by the names that exist", () => {
    const names = new Set(pages.map(({ path }) => path.slice(folder.length)))
    const links = readTree().flatMap(({ path, text }) =>
      [...text.matchAll(/(?:decisions\/|\]\()(\d{4}-[\w-]+\.md)/g)].map(([, to = ""]) => ({
        path,
        to,
      })),
    )
    expect(links.length).toBeGreaterThan(0)
    expect(links.filter(({ to }) => !names.has(to))).toEqual([])
  })
})
