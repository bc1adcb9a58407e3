import { describe, expect, it } from "vitest"
import {
  deltaOf,
  labelOf,
  roundedFraction,
  roundedZ,
  signed,
  valueText,
  zoneless,
} from "#projections/capital-pressure/formatting.ts"

describe("a value", () => {
  it.each([
    ["spread", 2.92, "2.92%"],
    ["percent", 2.924, "2.92%"],
    ["percent", -1.6, "-1.60%"],
    ["points", 0.41, "+0.41 pp"],
    ["points", -0.41, "-0.41 pp"],
    ["points", -0.001, "+0.00 pp"],
    ["ratio", 0.88, "0.88"],
    ["index", -0.52, "-0.52"],
    ["index", -0.004, "0.00"],
    ["basis_points", 94.4, "94 bp"],
    ["basis_points", -0.4, "0 bp"],
    ["growth", 4.7, "+4.7%"],
    ["growth", -4.66, "-4.7%"],
    ["growth", -0.04, "+0.0%"],
  ] as const)("as %s: %d is %s", (format, value, text) => {
    expect(valueText(format, value)).toBe(text)
  })
})

describe("a change", () => {
  it.each([
    ["spread", 0.07, "+7 bp"],
    ["spread", -0.123, "-12 bp"],
    ["spread", 0.004, "unch"],
    ["percent", 0.3, "+0.30%"],
    ["points", -0.03, "-0.03 pp"],
    ["ratio", 0.02, "+0.02"],
    ["index", -0.031, "-0.03"],
    ["index", -0.004, "unch"],
    ["basis_points", 3.2, "+3 bp"],
    ["basis_points", 0.4, "unch"],
    ["growth", 0.26, "+0.3%"],
    ["growth", 0, "unch"],
    ["growth", Number.NaN, "n/a"],
  ] as const)("as %s: %d is %s", (format, change, text) => {
    expect(deltaOf({ format, direction_kind: "higher_bullish" }, change).delta).toBe(text)
  })

  it.each([
    ["higher_bearish", 0.07, "bear"],
    ["higher_bearish", -0.07, "bull"],
    ["higher_bullish", 0.07, "bull"],
    ["higher_bullish", -0.07, "bear"],
    ["higher_bearish", 0.0004, "neutral"],
    ["higher_bearish", 0, "neutral"],
    ["higher_bearish", Number.NaN, "neutral"],
  ] as const)("of a %s metric, %d is %s", (direction_kind, change, of_class) => {
    expect(deltaOf({ format: "percent", direction_kind }, change).delta_class).toBe(of_class)
  })
})

describe("a label", () => {
  const below = (step: number) => step - 1e-9

  it.each([
    [0, "near normal", "neutral"],
    [below(0.5), "near normal", "neutral"],
    [-below(0.5), "near normal", "neutral"],
    [0.5, "mildly tight", "bear"],
    [-0.5, "mildly easy", "bull"],
    [below(1), "mildly tight", "bear"],
    [1, "tight", "bear"],
    [-1, "easy", "bull"],
    [below(2), "tight", "bear"],
    [2, "very tight", "bear"],
    [-2, "very easy", "bull"],
    [9, "very tight", "bear"],
  ] as const)("of a metric's pressure %d is %s, %s", (pressure, label, of_class) => {
    expect(labelOf("metric", pressure)).toEqual({ label, class: of_class })
  })

  it.each([
    [0, "balanced", "neutral"],
    [below(0.25), "balanced", "neutral"],
    [0.25, "tightening", "bear"],
    [-0.25, "easing", "bull"],
    [below(0.75), "tightening", "bear"],
    [0.75, "tight", "bear"],
    [-0.75, "easy", "bull"],
    [-below(1.5), "easy", "bull"],
    [1.5, "strained", "bear"],
    [-1.5, "flush", "bull"],
  ] as const)("of the composite %d is %s, %s", (pressure, label, of_class) => {
    expect(labelOf("composite", pressure)).toEqual({ label, class: of_class })
  })
})

describe("a formatted number", () => {
  it("has four decimals as a z-score, six as a fraction, and no minus before zero", () => {
    expect(roundedZ(1.234_56)).toBe(1.2346)
    expect(roundedZ(Number.NaN)).toBeNull()
    expect(Object.is(roundedZ(-0.000_01), 0)).toBe(true)
    expect(roundedFraction(0.123_456_78)).toBe(0.123_457)
    expect(Object.is(roundedFraction(-1e-9), 0)).toBe(true)
  })

  it("has its sign", () => {
    expect([0.416, -0.416, 0, -0.001].map((one) => signed(one, 2))).toEqual([
      "+0.42",
      "-0.42",
      "+0.00",
      "+0.00",
    ])
  })
})

describe("a time", () => {
  it("has no zone", () => {
    expect(zoneless("2026-11-20T22:05:00.000Z")).toBe("2026-11-20T22:05:00.000")
    expect(zoneless(null)).toBeNull()
  })
})
