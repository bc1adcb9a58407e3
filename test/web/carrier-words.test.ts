/** Computations of the carrier search page: ranges, rate, the file. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { mc_number_max } from "#schemas/carrier-search/carrier.ts"
import { csv_header, rowOf } from "#schemas/carrier-search/format.ts"
import { csvOf } from "../../web/carrier-search/csv.ts"
import * as range from "../../web/carrier-search/range.ts"
import { addSample, duration, rateOf, timeLeft } from "../../web/carrier-search/rate.ts"

/** Characters that a CSV file or a spreadsheet could misinterpret. */
const odd_signs = [
  "=",
  "+",
  "-",
  "@",
  "\t",
  "\r",
  "\n",
  '"',
  ",",
  ";",
  " ",
  "a",
  "\u00e9",
  "\u798f",
]

describe("a range", () => {
  it("ends where the server's numbers end", () => {
    expect(range.mc_number_max).toBe(mc_number_max)
    expect(range.readRange("1", String(mc_number_max))).toEqual({ start: 1, end: mc_number_max })
  })

  it("is read as people write it", () => {
    for (const text of ["123456", " 123456 ", "MC123456", "mc-123456", "MC 123,456", "000123456"]) {
      expect([text, range.readRange(text, text)]).toEqual([text, { start: 123456, end: 123456 }])
    }
  })

  it("is none where it is anything else", () => {
    for (const text of [
      "1e3",
      "1.0",
      "+5",
      "12,34",
      "1 2",
      "MC",
      "MX-1",
      "\u0661",
      "0x10",
      "--1",
    ]) {
      expect([text, range.isRange(range.readRange(text, "9"))]).toEqual([text, false])
    }
  })

  it("goes into an address and comes back", () => {
    const request = { start: 7, end: 1_000_007 }
    const texts = range.fieldsInHash(range.hashOf(request))
    expect(range.readRange(texts?.start ?? "", texts?.end ?? "")).toEqual(request)
    expect(range.fieldsInHash("")).toBe(undefined)
    expect(range.fieldsInHash("#main")).toBe(undefined)
    expect(range.fieldsInHash("#end=3")).toEqual({ start: "", end: "3" })
  })
})

describe("the pace", () => {
  const rateAfter = (steps: ReadonlyArray<readonly [at: number, done: number]>) =>
    rateOf(
      steps.reduce<ReturnType<typeof addSample>>((all, [at, done]) => addSample(all, at, done), []),
    )

  it("is that of the last ten seconds", () => {
    expect(rateAfter([[0, 0]])).toBe(undefined)
    expect(
      rateAfter([
        [0, 0],
        [500, 100],
      ]),
    ).toBe(undefined)
    expect(
      rateAfter([
        [0, 0],
        [2_000, 100],
      ]),
    ).toBe(50)
    const slower = [
      [0, 0],
      [5_000, 5_000],
      [10_000, 5_050],
      [20_000, 5_150],
      [25_000, 5_200],
    ] as const
    expect(rateAfter(slower)).toBe(10)
    expect(
      rateAfter([
        [0, 0],
        [60_000, 600],
      ]),
    ).toBe(10)
  })

  it("is formatted in words, and so is the time", () => {
    expect([40, 9_990, 61_000, 3_780_000].map(duration)).toEqual([
      "40 ms",
      "10 s",
      "1 min 1 s",
      "1 h 3 min",
    ])
    expect([5, 30, 600, 72_000].map((left) => timeLeft(left, 1))).toEqual([
      "a few seconds left",
      "about 30 s left",
      "about 10 min left",
      "about 20 h left",
    ])
  })
})

describe("the file", () => {
  it("is the server's own, for any file names", () => {
    const odd = fc.string({ unit: fc.constantFrom(...odd_signs), maxLength: 8 })
    const carriers = fc.array(fc.tuple(fc.integer({ min: 1, max: mc_number_max }), odd))
    fc.assert(
      fc.property(carriers, (all) => {
        const found = { numbers: all.map(([mc]) => mc), names: all.map(([, name]) => name) }
        const rows = all.map(([mc, name]) => rowOf(mc, name, "csv"))
        expect(csvOf(found).join("")).toBe(csv_header + rows.join(""))
      }),
    )
  })

  it("has every row where there are many", () => {
    const numbers = Array.from({ length: 12_001 }, (_, index) => index + 1)
    const text = csvOf({ numbers, names: numbers.map((mc) => `Name ${mc}`) }).join("")
    expect(text.split("\r\n")).toHaveLength(12_003)
    expect(text).toContain("\r\n10001,Name 10001,ACTIVE,CARRIER\r\n")
  })
})
