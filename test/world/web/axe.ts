/** The problems that axe finds on a page in its current state. */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import type { Page } from "playwright-core"

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

interface Found {
  readonly id: string
  readonly impact: string | null
  readonly nodes: ReadonlyArray<{ readonly html: string }>
}

/** Serious and critical findings, each with its first location. */
export const serious = async (page: Page): Promise<ReadonlyArray<string>> => {
  await page.evaluate(axe)
  const violations: ReadonlyArray<Found> = await page.evaluate(async () => {
    // Axe cannot compute contrast over a gradient; the colour under it is the same.
    for (const one of document.querySelectorAll<HTMLElement>(".scroll")) {
      one.style.backgroundImage = "none"
    }
    const { run } = Reflect.get(window, "axe")
    return (await run(document)).violations
  })
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 160)}`)
}
