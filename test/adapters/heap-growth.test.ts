import { execFileSync } from "node:child_process"
import { assert, describe, it } from "vitest"

/**
 * Allocates and drops bytes of requests next to a small heap; prints the number of full
 * collections.
 */
const churn = (before: string) => `
  import { PerformanceObserver } from "node:perf_hooks"
  import { growHeap } from "#adapters/heap-growth.ts"
  ${before}
  let collections = 0
  new PerformanceObserver((seen) => {
    for (const { detail } of seen.getEntries()) if (detail.kind === 4) collections += 1
  }).observe({ entryTypes: ["gc"] })
  const live = Array.from({ length: 200_000 }, (_, i) => ({ i, text: "x" + i }))
  let bytes
  for (let i = 0; i < 3_000; i++) {
    bytes = Buffer.alloc(2 ** 20)
    if (i % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  await new Promise((resolve) => setTimeout(resolve, 20))
  console.log(collections, live.length + bytes.length > 0)
`

const collectionsOf = (before: string) => {
  const args = ["--input-type=module-typescript", "--eval", churn(before)]
  return Number.parseInt(execFileSync(process.execPath, args, { encoding: "utf8" }), 10)
}

describe("the growth of the heap", () => {
  it("makes collections of all of the heap rarer under large bodies", () => {
    const before = collectionsOf("")
    const after = collectionsOf("growHeap()")
    assert.isAbove(before, 10)
    assert.isAtMost(after, 0.5 * before)
  })
})
