import { describe, expect, it } from "vitest"
import { dateOf, dayOf, first_date, last_date } from "#schemas/capital-pressure/day.ts"

const ms_of_day = 86_400_000
const naive = (day: number) => new Date(day * ms_of_day).toISOString().slice(0, 10)

describe("a date", () => {
  it("of each day that a value may have is what the language says", () => {
    const wrong: Array<string> = []
    for (let day = dayOf(first_date); day <= dayOf(last_date); day++) {
      if (dateOf(day) !== naive(day)) wrong.push(naive(day))
    }
    expect(wrong).toEqual([])
  })

  it("of another day is formatted too", () => {
    const days = [dayOf(first_date) - 1, dayOf(last_date) + 1]
    expect(days.map(dateOf)).toEqual(["1899-12-31", "2200-01-01"])
  })
})
