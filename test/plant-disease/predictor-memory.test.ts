import { describe, expect, it } from "vitest"
import { growth_bytes_max, growthOver } from "./predictor-memory.ts"

describe("a predictor's memory", () => {
  it("is flat over 1,000 images", () => {
    expect(growthOver(1000)).toBeLessThan(growth_bytes_max)
  })
})
