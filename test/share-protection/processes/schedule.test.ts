import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import {
  jitterOf,
  parseSchedule,
  type Schedule,
  ticksAt,
} from "#actors/share-protection/processes/schedule.ts"
import { PolicyId } from "#schemas/share-protection/id.ts"
import { cronTicks, localMinutes, type Walk } from "../../world/share-protection/cron-oracle.ts"

const at = (time: string) => Date.parse(time)
const text = (time: number) => new Date(time).toISOString().slice(0, 16)

const read = (expression: string, timezone = "UTC"): Schedule =>
  Result.getOrThrow(parseSchedule(expression, timezone))

/** The error of an expression, if any. */
const wrong = (expression: string, timezone = "UTC") =>
  Result.match(parseSchedule(expression, timezone), {
    onFailure: (why) => why,
    onSuccess: () => undefined,
  })

/** The first ticks after a time. */
const ticks = (schedule: Schedule, after: string, count: number) => {
  const found: Array<number> = []
  for (let from = at(after); found.length < count; from = found.at(-1) ?? Infinity) {
    found.push(schedule.next(from))
  }
  return found.map(text)
}

describe("a schedule", () => {
  it("has ticks strictly after and strictly before a time", () => {
    const schedule = read("30 2 * * *")
    assert.equal(text(schedule.next(at("2026-01-01T02:29:59.999Z"))), "2026-01-01T02:30")
    assert.equal(text(schedule.next(at("2026-01-01T02:30:00.000Z"))), "2026-01-02T02:30")
    assert.equal(text(schedule.last(at("2026-01-02T02:30:00.001Z"))), "2026-01-02T02:30")
    assert.equal(text(schedule.last(at("2026-01-02T02:30:00.000Z"))), "2026-01-01T02:30")
  })

  it("does not depend on earlier calls", () => {
    const schedule = read("*/7 * * * *")
    const times = ["2026-01-01T00:06Z", "2026-01-01T00:07Z", "2026-01-01T00:00Z", "2025-01-01Z"]
    for (const time of [...times, ...times.toReversed()]) {
      assert.equal(schedule.next(at(time)), read("*/7 * * * *").next(at(time)))
    }
  })

  it("accepts names, steps, lists, ranges and named expressions", () => {
    assert.deepEqual(ticks(read("0 0 * JAN mon"), "2026-01-01T00:00Z", 2), [
      "2026-01-05T00:00",
      "2026-01-12T00:00",
    ])
    assert.deepEqual(ticks(read("*/30 1-2 1,15 * *"), "2026-01-01T01:30Z", 3), [
      "2026-01-01T02:00",
      "2026-01-01T02:30",
      "2026-01-15T01:00",
    ])
    assert.deepEqual(ticks(read("@daily"), "2026-01-01T01:30Z", 1), ["2026-01-02T00:00"])
    assert.deepEqual(ticks(read("  0   4 *\t* 7 "), "2026-01-01T00:00Z", 1), ["2026-01-04T04:00"])
    assert.deepEqual(ticks(read("0 4 L * *"), "2026-02-01T00:00Z", 1), ["2026-02-28T04:00"])
  })

  it("may have gaps of years", () => {
    assert.deepEqual(ticks(read("0 0 29 2 *"), "2026-03-01T00:00Z", 2), [
      "2028-02-29T00:00",
      "2032-02-29T00:00",
    ])
    assert.deepEqual(ticks(read("0 0 29 2 +MON"), "2026-03-01T00:00Z", 1), ["2044-02-29T00:00"])
  })

  for (const expression of [
    "",
    "* * * *",
    "* * * * * *",
    "0 0 1 1 * * 2027",
    "@reboot",
    "@every",
    "@",
    "hello",
    "60 * * * *",
    "* 24 * * *",
    "* * 0 * *",
    "* * 32 * *",
    "* * * 13 *",
    "* * * * 8",
    "*/0 * * * *",
    "5-1 * * * *",
    "1,,2 * * * *",
    "a b c d e",
    "* * * FOO *",
    "1.5 * * * *",
    "2026-01-01T00:00:00",
    "2026-01-01T00:00:00Z",
    "-1 * * * *",
    "0 0 * * MON#6",
  ]) {
    it(`rejects ${JSON.stringify(expression)}`, () => {
      const why = wrong(expression)
      assert.isString(why)
      assert.notMatch(String(why), /Error|CronPattern/)
    })
  }

  for (const expression of ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31 2 +MON"]) {
    it(`rejects ${expression}, which never fires`, () => {
      assert.equal(wrong(expression), "No day matches this schedule: it would never run.")
      assert.isString(wrong(expression, "America/New_York"))
    })
  }

  it("rejects an invalid time zone", () => {
    for (const timezone of ["Mars/Phobos", "", "+05:00", "05:00", "-0100", "Europe", "UTC\n"]) {
      assert.match(String(wrong("0 0 * * *", timezone)), /^The time zone .* does not exist/)
    }
    for (const timezone of ["UTC", "Europe/Berlin", "America/Argentina/Ushuaia", "Etc/GMT+5"]) {
      assert.isUndefined(wrong("0 0 * * *", timezone))
    }
  })
})

describe("a schedule during daylight saving changes", () => {
  it("fires a skipped time after the gap", () => {
    assert.deepEqual(ticks(read("30 2 * * *", "Europe/Berlin"), "2026-03-28T00:00Z", 3), [
      "2026-03-28T01:30",
      "2026-03-29T01:00",
      "2026-03-30T00:30",
    ])
    assert.deepEqual(ticks(read("30 2,14 * * *", "Europe/Berlin"), "2026-03-29T00:00Z", 2), [
      "2026-03-29T01:00",
      "2026-03-29T12:30",
    ])
    assert.deepEqual(ticks(read("0 0 * * *", "Africa/Cairo"), "2026-04-23T00:00Z", 2), [
      "2026-04-23T22:00",
      "2026-04-24T21:00",
    ])
  })

  it("fires a repeated time once, at the first", () => {
    assert.deepEqual(ticks(read("30 2 * * *", "Europe/Berlin"), "2026-10-24T12:00Z", 2), [
      "2026-10-25T00:30",
      "2026-10-26T01:30",
    ])
  })

  it("is not adjusted if it has a wildcard or a step", () => {
    assert.deepEqual(ticks(read("*/30 * * * *", "Europe/Berlin"), "2026-10-25T00:00Z", 4), [
      "2026-10-25T00:30",
      "2026-10-25T01:00",
      "2026-10-25T01:30",
      "2026-10-25T02:00",
    ])
    assert.deepEqual(ticks(read("0 */2 * * *", "Europe/Berlin"), "2026-03-28T23:30Z", 2), [
      "2026-03-29T02:00",
      "2026-03-29T04:00",
    ])
  })
})

const minute_ms = 60_000

const window_minutes = 36 * 60

/**
 * 36 hours each: a gap, an overlap, a half-hour overlap, an overlap at midnight, and quiet windows.
 */
const windows: ReadonlyArray<Walk> = [
  ["Europe/Berlin", "2026-03-28T12:00Z"],
  ["Europe/Berlin", "2026-10-24T12:00Z"],
  ["America/New_York", "2026-03-07T16:00Z"],
  ["America/New_York", "2026-10-31T16:00Z"],
  ["Australia/Lord_Howe", "2026-04-04T00:00Z"],
  ["Australia/Lord_Howe", "2026-10-03T00:00Z"],
  ["Africa/Cairo", "2026-04-23T12:00Z"],
  ["Africa/Cairo", "2026-10-29T12:00Z"],
  ["Asia/Kathmandu", "2026-12-31T00:00Z"],
  ["UTC", "2028-02-28T12:00Z"],
].map(([zone = "", from = ""]) =>
  localMinutes(zone, at(from), at(from) + window_minutes * minute_ms),
)

const field = (min: number, max: number) => {
  const value = fc.integer({ min, max })
  const range = fc.tuple(value, value).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`)
  const step = fc.integer({ min: 1, max: Math.max(2, Math.floor((max - min) / 2)) })
  return fc.oneof(
    { weight: 4, arbitrary: value.map(String) },
    { weight: 2, arbitrary: fc.array(value, { minLength: 2, maxLength: 4 }).map(String) },
    { weight: 1, arbitrary: range },
    { weight: 1, arbitrary: fc.tuple(range, step).map(([range, step]) => `${range}/${step}`) },
    { weight: 1, arbitrary: step.map((step) => `*/${step}`) },
    { weight: 2, arbitrary: fc.constant("*") },
  )
}
const days = fc.oneof({ weight: 5, arbitrary: fc.constant("*") }, fc.constantFrom("1-15", "29,30"))
const weekdays = fc.oneof(
  { weight: 4, arbitrary: fc.constant("*") },
  fc.constantFrom("0", "7", "1-5", "6,7", "SAT,SUN", "MON-FRI"),
)
const months = fc.oneof({ weight: 5, arbitrary: fc.constant("*") }, fc.constantFrom("3,10", "JAN"))
const expression = fc
  // The hours in which clocks change.
  .tuple(field(0, 59), fc.oneof(field(0, 4), field(0, 23)), days, months, weekdays)
  .map((fields) => fields.join(" "))

const walk = fc.constantFrom(...windows)

describe("a schedule of any expression", () => {
  it("has the ticks that a minute-by-minute search finds", () => {
    fc.assert(
      fc.property(expression, walk, (cron, window) => {
        const schedule = read(cron, window.zone)
        const expected = cronTicks(cron, window)
        const found: Array<number> = []
        for (let next = schedule.next(window.from); next < window.to; next = schedule.next(next)) {
          found.push(next)
        }
        assert.deepEqual(found.map(text), expected.map(text))
        // A sample, because dense schedules have many ticks.
        for (const [index, tick] of expected.entries()) {
          if (index % 50 > 2) continue
          assert.equal(schedule.last(tick + 1), tick)
          if (index > 0) assert.equal(schedule.last(tick), expected[index - 1])
        }
      }),
      { numRuns: 200 },
    )
  })

  it("has only the last missed tick due", () => {
    const minutes = fc.integer({ min: 1, max: window_minutes - 1 })
    const jitter = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 600_000 }))
    fc.assert(
      fc.property(expression, walk, minutes, minutes, jitter, (cron, window, a, b, jitter_ms) => {
        const since = window.from + Math.min(a, b) * minute_ms
        const now = window.from + Math.max(a, b) * minute_ms
        const all = cronTicks(cron, window).filter((tick) => tick > since)
        const passed = all.filter((tick) => tick + jitter_ms <= now)
        const found = ticksAt(read(cron, window.zone), { since, now, jitter_ms })
        assert.equal(found.due, passed.at(-1))
        const next = all[passed.length]
        if (next === undefined) assert.isAtLeast(found.next_at, window.to)
        else assert.equal(found.next_at, next + jitter_ms)
      }),
      { numRuns: 200 },
    )
  })
})

describe("the ticks of a schedule", () => {
  const schedule = read("0 * * * *")
  const due = (since: string, now: string, jitter_ms = 0) => {
    const ticks = ticksAt(schedule, { since: at(since), now: at(now), jitter_ms })
    return [ticks.due === undefined ? undefined : text(ticks.due), text(ticks.next_at)]
  }

  it("are due once each", () => {
    assert.deepEqual(due("2026-01-01T00:30Z", "2026-01-01T00:59:59Z"), [
      undefined,
      "2026-01-01T01:00",
    ])
    assert.deepEqual(due("2026-01-01T00:30Z", "2026-01-01T01:00Z"), [
      "2026-01-01T01:00",
      "2026-01-01T02:00",
    ])
    assert.deepEqual(due("2026-01-01T01:00Z", "2026-01-01T01:00Z"), [undefined, "2026-01-01T02:00"])
  })

  it("include only one of the missed ticks", () => {
    assert.deepEqual(due("2026-01-01T00:30Z", "2026-03-01T12:34Z"), [
      "2026-03-01T12:00",
      "2026-03-01T13:00",
    ])
  })

  it("are delayed by the jitter, but keep their times", () => {
    const jitter_ms = 90_000
    assert.deepEqual(due("2026-01-01T00:30Z", "2026-01-01T01:01:29Z", jitter_ms), [
      undefined,
      "2026-01-01T01:01",
    ])
    assert.deepEqual(due("2026-01-01T00:30Z", "2026-01-01T01:01:30Z", jitter_ms), [
      "2026-01-01T01:00",
      "2026-01-01T02:01",
    ])
  })

  it("do not count before the policy's definition, even if their jitter ends after it", () => {
    assert.deepEqual(due("2026-01-01T01:00:30Z", "2026-01-01T01:01:30Z", 90_000), [
      undefined,
      "2026-01-01T02:01",
    ])
  })
})

describe("jitter", () => {
  const ids = Array.from({ length: 4000 }, (_, n) =>
    PolicyId.make(`0190a1b2-c3d4-7${n.toString(16).padStart(3, "0")}-8000-000000000000`),
  )

  it("is the same for the same policy, and below its bound", () => {
    for (const id of ids) {
      const jitter = jitterOf(id, 60)
      assert.equal(jitter, jitterOf(id, 60))
      assert.isTrue(Number.isInteger(jitter) && jitter >= 0 && jitter < 60_000)
    }
  })

  it("is zero if disabled", () => {
    assert.isTrue(ids.every((id) => jitterOf(id, 0) === 0))
  })

  it("spreads policies evenly", () => {
    const tenths = Array.from({ length: 10 }, () => 0)
    for (const id of ids) {
      const tenth = Math.floor(jitterOf(id, 60) / 6000)
      tenths[tenth] = (tenths[tenth] ?? 0) + 1
    }
    for (const count of tenths) assert.closeTo(count, ids.length / 10, ids.length / 25)
  })
})
