import { execFileSync } from "node:child_process"
import { assert, describe, it } from "vitest"
import { growthPercent } from "#adapters/heap-growth.ts"

const mib = 2 ** 20
const gib = 2 ** 30

describe("the growth of the heap", () => {
  it("is up to 512 MiB where little is live", () => {
    assert.equal(growthPercent(64 * mib, 24 * gib), 700)
    assert.equal(growthPercent(100 * mib, 24 * gib), 412)
    assert.equal(growthPercent(128 * mib, 24 * gib), 300)
  })

  it("is never less than to three times of what is live", () => {
    assert.equal(growthPercent(171 * mib, 24 * gib), 200)
    assert.equal(growthPercent(3 * gib, 24 * gib), 200)
  })

  it("takes no less than 64 MiB as live, since more may be by the next collection", () => {
    assert.equal(growthPercent(5 * mib, 24 * gib), 700)
    assert.equal(growthPercent(0, 24 * gib), 700)
  })

  it("is less on a machine of little memory", () => {
    assert.equal(growthPercent(64 * mib, 4 * gib), 300)
    assert.equal(growthPercent(64 * mib, gib), 200)
  })

  it("makes collections of all of the heap rarer", () => {
    const churn = (before: string) => `
      import { PerformanceObserver } from "node:perf_hooks"
      import { setFlagsFromString } from "node:v8"
      import { growHeap } from "#adapters/heap-growth.ts"
      ${before}
      let collections = -1
      new PerformanceObserver((seen) => {
        for (const { detail } of seen.getEntries()) if (detail.kind === 4) collections += 1
      }).observe({ entryTypes: ["gc"] })
      // 20 MB that are live, and replaced again and again.
      const held = Array.from({ length: 200_000 }, (_, i) => ({ i, text: "x" + i }))
      // Only behind one of them V8 goes by what is live.
      gc()
      for (let i = 0; i < 12_000_000; i++) {
        held[i % held.length] = { i, text: "y" + i }
        if (i % 10_000 === 0) await new Promise((resolve) => setImmediate(resolve))
      }
      await new Promise((resolve) => setTimeout(resolve, 20))
      console.log(collections)
    `
    const collectionsOf = (before: string) => {
      const args = ["--expose-gc", "--input-type=module-typescript", "--eval", churn(before)]
      return Number(execFileSync(process.execPath, args, { encoding: "utf8" }))
    }
    const by_factor = `
      setFlagsFromString("--external-memory-accounted-in-global-limit")
      setFlagsFromString("--heap-growing-percent=200")
    `
    const before = collectionsOf(by_factor)
    const after = collectionsOf("growHeap()")
    assert.isAbove(before, 2)
    assert.isAtMost(after, 0.7 * before)
  })
})
