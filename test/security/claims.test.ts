/** Each claim in docs/security.md names a test; a test with that title must exist. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"

const root = join(import.meta.dirname, "../..")
const page = readFileSync(join(root, "docs/security.md"), "utf8")

/** A row: the claim, a link to the test's file, and the test's title in that file. */
const row = /^\| (.+?) +\| \[([^\]]+)\]\(\.\.\/([^)]+)\) +\| (.+?) +\|$/gm

const claims = [...page.matchAll(row)].map(([, claim = "", label, file = "", title = ""]) => {
  return { claim, label, file, title }
})

const claims_min = 60

describe("docs/security.md", () => {
  it("has a test in each row of its claims", () => {
    const [, tables = ""] = page.split("## Claims\n")
    const rows = (tables.split("\n## ")[0] ?? "").split("\n").filter((line) => /^\| /.test(line))
    const heads = rows.filter((line) => /^\| (claim|-+) /.test(line))
    expect(claims.length).toBeGreaterThanOrEqual(claims_min)
    expect(rows.length - heads.length).toBe(claims.length)
  })

  for (const { claim, label, file, title } of claims) {
    it(`${claim}`, () => {
      expect(label).toBe(file)
      expect(existsSync(join(root, file)), file).toBe(true)
      const text = readFileSync(join(root, file), "utf8")
      const quoted = [`"${title}`, `\`${title}`, `'${title}`].some((words) => text.includes(words))
      expect(quoted, `a test called "${title}" in ${file}`).toBe(true)
    })
  }
})
