import { describe, expect, it } from "vitest"
import { pathOf } from "../../web/capital-pressure/sparkline.ts"
import {
  compact,
  date,
  daysAgo,
  meaning,
  percent,
  price,
  relativeTime,
  short,
  shortDate,
  signed,
  tallyText,
  time,
  typeset,
  votingText,
} from "../../web/format.ts"

const now = Date.parse("2026-11-20T22:30:00Z")

describe("numbers", () => {
  it("have a sign of one width, and none where they round to zero", () => {
    expect([0.416, -1.267, 0, -0.004, 0.004].map((value) => signed(value))).toEqual([
      "+0.42",
      "\u22121.27",
      "0.00",
      "0.00",
      "0.00",
    ])
    expect([0.047, -0.0004, -0.12].map(percent)).toEqual(["+4.7%", "0.0%", "\u221212.0%"])
  })

  it("have as many places as they need", () => {
    expect([6_712_345.4, 104.23, 5.886, 0.01234, -0.52, -0.0001].map(compact)).toEqual([
      "6,712,345",
      "104.2",
      "5.89",
      "0.012",
      "\u22120.52",
      "0",
    ])
    expect([6_712_345.4, 36_123_456_789_012, -120_000, 99_999, 0.5].map(short)).toEqual([
      "6.712M",
      "36.12T",
      "\u2212120K",
      "99,999",
      "0.5",
    ])
    expect([1204.5, 833].map(price)).toEqual(["1,204.50", "833.00"])
  })

  it("have minus signs where the API writes hyphens, and words keep theirs", () => {
    expect(typeset("10-year -0.54 pp (z -1.48 over 3y)")).toBe(
      "10-year \u22120.54 pp (z \u22121.48 over 3y)",
    )
  })
})

describe("times", () => {
  it("are formatted as dates, with the year if it is another", () => {
    expect([
      date("2026-11-05"),
      shortDate("2026-11-05", now),
      shortDate("2025-12-31", now),
    ]).toEqual(["5 Nov 2026", "5 Nov", "31 Dec 2025"])
    expect(time("2026-11-20T22:05:00.000")).toBe("20 Nov 2026, 22:05 UTC")
  })

  it("are formatted by their age", () => {
    const days = ["2026-11-21", "2026-11-20", "2026-11-19", "2026-08-13", "2026-04-01"]
    expect(days.map((day) => daysAgo(day, now))).toEqual([
      "today",
      "today",
      "1 day ago",
      "99 days ago",
      "8 months ago",
    ])
    const times = ["2026-11-20T22:29:50", "2026-11-20T21:31:00", "2026-11-19T00:30:00"]
    expect(times.map((at) => relativeTime(at, now))).toEqual([
      "1 min ago",
      "59 min ago",
      "46 h ago",
    ])
    expect(relativeTime("2026-11-23T22:00:00", now)).toBe("in 3 days")
  })
})

describe("the composite", () => {
  const composite = {
    z: 0.28,
    z_label: "tightening",
    sign_class: "bear" as const,
    metrics_total: 16,
    tally: { bull: 5, neutral: 3, bear: 8 },
  }

  it("is said in words", () => {
    expect(`${meaning(composite)}: ${tallyText(composite)}`).toBe(
      "Pressure is building: 8 bear, 5 bull of 16",
    )
    expect(meaning({ ...composite, z_label: "odd" })).toBe("Pressure reads odd")
  })

  it("shows the number of its metrics, and of all if that is known", () => {
    expect(votingText(composite, 24, 0)).toBe("16 of 24 metrics vote")
    expect(votingText(composite, 24, 1)).toBe("16 of 24 metrics vote, 1 is stale")
    expect(votingText(composite, 0, 2)).toBe("16 metrics vote, 2 are stale")
  })
})

describe("a sparkline", () => {
  it("goes from the left to the right, the greatest on top", () => {
    expect(pathOf([1, 3, 2], 10, 4)).toBe("M0.0 4.0L5.0 0.0L10.0 2.0")
    expect(pathOf([7, 7], 10, 4)).toBe("M0.0 2.0L10.0 2.0")
  })
})
