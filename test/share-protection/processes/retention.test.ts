import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import {
  type RetainableBackup,
  type RetentionRule,
  retain,
} from "#actors/share-protection/processes/retention.ts"
import { BackupId } from "#schemas/share-protection/id.ts"
import type { Retention } from "#schemas/share-protection/retention.ts"

const backupId = (n: number) =>
  BackupId.make(`0190a1b2-c3d4-7000-8000-${n.toString(16).padStart(12, "0")}`)

/** Backups made at these times; the first one has the lowest id. */
const taken = (...times: ReadonlyArray<string>): ReadonlyArray<RetainableBackup> =>
  times.map((time, n) => ({ backup_id: backupId(n), taken_at: new Date(time).toISOString() }))

/** The kept times, newest first. */
const kept = (retention: Retention, timezone: string, ...times: ReadonlyArray<string>) => {
  const all = taken(...times)
  const { keep, expire } = retain(all, retention, timezone)
  const timeOf = (id: BackupId) => times[all.findIndex(({ backup_id }) => backup_id === id)]
  assert.equal(keep.length + expire.length, times.length)
  return keep.map(({ backup_id }) => timeOf(backup_id))
}

describe("retention", () => {
  it("keeps the newest of each day, week and month", () => {
    const times = [
      "2026-03-31T06:00Z",
      "2026-03-30T23:00Z",
      "2026-03-30T06:00Z",
      "2026-03-29T06:00Z",
      "2026-03-28T06:00Z",
      "2026-03-22T06:00Z",
      "2026-02-28T06:00Z",
      "2026-01-31T06:00Z",
    ]
    const at = (...indexes: ReadonlyArray<number>) => indexes.map((index) => times[index])
    assert.deepEqual(kept({ keep_last: 3 }, "UTC", ...times), at(0, 1, 2))
    assert.deepEqual(kept({ keep_daily: 3 }, "UTC", ...times), at(0, 1, 3))
    assert.deepEqual(kept({ keep_weekly: 3 }, "UTC", ...times), at(0, 3, 5))
    assert.deepEqual(kept({ keep_monthly: 2 }, "UTC", ...times), at(0, 6))
    assert.deepEqual(kept({ keep_last: 1, keep_weekly: 2, keep_daily: 2 }, "UTC", ...times), [
      ...at(0, 1, 3),
    ])
  })

  it("reports the rules that keep each backup", () => {
    const all = taken("2026-03-29T06:00Z", "2026-03-30T06:00Z", "2026-03-30T07:00Z")
    const { keep, expire } = retain(all, { keep_last: 1, keep_daily: 2 }, "UTC")
    assert.deepEqual(keep, [
      { backup_id: backupId(2), rules: ["keep_last", "keep_daily"] },
      { backup_id: backupId(0), rules: ["keep_daily"] },
    ])
    assert.deepEqual(expire, [backupId(1)])
  })

  it("keeps the oldest while there are fewer periods than the rule has, as restic does", () => {
    const day = ["2026-03-30T09:00Z", "2026-03-30T08:00Z", "2026-03-30T07:00Z"]
    assert.deepEqual(kept({ keep_daily: 2 }, "UTC", ...day), [day[0], day[2]])
    assert.deepEqual(kept({ keep_daily: 1 }, "UTC", ...day), [day[0]])
  })

  it("counts days by the policy's time zone", () => {
    const times = ["2026-03-30T23:30Z", "2026-03-30T21:30Z", "2026-03-30T12:30Z"]
    assert.deepEqual(kept({ keep_daily: 1 }, "UTC", ...times), [times[0]])
    assert.deepEqual(kept({ keep_daily: 2 }, "Europe/Berlin", ...times), [times[0], times[1]])
    assert.deepEqual(kept({ keep_daily: 2 }, "America/New_York", ...times), [times[0], times[2]])
  })

  it("counts ISO weeks over the end of a year", () => {
    const times = ["2027-01-03T12:00Z", "2026-12-28T12:00Z", "2026-12-27T12:00Z"]
    assert.deepEqual(kept({ keep_weekly: 1 }, "UTC", ...times), [times[0]])
    assert.deepEqual(kept({ keep_weekly: 2 }, "UTC", ...times), [times[0], times[2]])
  })

  it("orders backups of the same time by their ids", () => {
    const all = taken("2026-03-30T06:00Z", "2026-03-30T06:00Z")
    const once = retain(all, { keep_last: 1 }, "UTC")
    assert.deepEqual(once.expire, [backupId(0)])
    assert.deepEqual(retain(all.toReversed(), { keep_last: 1 }, "UTC"), once)
  })

  it("keeps everything without rules, and nothing of nothing", () => {
    const all = taken("2026-03-30T06:00Z", "2026-03-30T07:00Z")
    assert.deepEqual(retain(all, {}, "UTC").expire, [])
    assert.deepEqual(retain(all, { keep_daily: 0 }, "UTC").expire, [])
    assert.deepEqual(retain([], { keep_daily: 1 }, "UTC"), { keep: [], expire: [] })
  })

  it("throws for an unknown time zone", () => {
    assert.throws(() => retain([], { keep_last: 1 }, "Mars/Phobos"))
  })
})

const zones = [
  "UTC",
  "Europe/Berlin",
  "America/New_York",
  "America/St_Johns",
  "Asia/Kathmandu",
  "Australia/Lord_Howe",
  "Africa/Cairo",
  "Pacific/Kiritimati",
  "America/Santiago",
]

/** Daylight saving changes, ends of years and months, and a leap day. */
const moments = [
  "2026-03-29T01:00Z",
  "2026-10-25T01:00Z",
  "2026-03-08T07:00Z",
  "2026-11-01T06:00Z",
  "2026-12-31T23:59Z",
  "2027-01-01T00:00Z",
  "2020-12-31T12:00Z",
  "2024-02-29T12:00Z",
  "2026-04-23T22:00Z",
  "2026-04-04T15:00Z",
  "2026-08-31T23:00Z",
].map((moment) => Date.parse(moment))

const minute_ms = 60_000
const time = fc
  .tuple(
    fc.constantFrom(...moments),
    // Usually close to the moment, sometimes weeks or months away.
    fc.oneof(fc.integer({ min: -90, max: 90 }), fc.integer({ min: -200_000, max: 200_000 })),
  )
  .map(([moment, minutes]) => new Date(moment + minutes * minute_ms).toISOString())

const list = fc
  .array(time, { maxLength: 40 })
  .map((times) => times.map((taken_at, n) => ({ backup_id: backupId(n), taken_at })))

const keep = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 8 }))
const retention = fc
  .record({ keep_last: keep, keep_daily: keep, keep_weekly: keep, keep_monthly: keep })
  .filter((counts) => Object.values(counts).some((count) => count > 0))
const zone = fc.constantFrom(...zones)

/** As in ISO 8601, the week's Thursday determines its year and number. */
const weekText = (date: string) => {
  const day = new Date(`${date}T00:00:00Z`)
  day.setUTCDate(day.getUTCDate() + 4 - (day.getUTCDay() || 7))
  const year = day.getUTCFullYear()
  return `${year}-W${Math.ceil(((day.getTime() - Date.UTC(year, 0, 1)) / 86_400_000 + 1) / 7)}`
}

const periodTexts: Record<RetentionRule, (date: string, id: string) => string> = {
  keep_last: (_, id) => id,
  keep_daily: (date) => date,
  keep_weekly: weekText,
  keep_monthly: (date) => date.slice(0, 7),
}

/** The Swedish locale formats dates as ISO 8601 does. */
const formats = new Map(
  zones.map((timeZone) => [timeZone, new Intl.DateTimeFormat("sv-SE", { timeZone })]),
)

/** Whether a rule keeps a backup, by comparing it with all others: quadratic but simple. */
const isKeptBy = (
  rule: RetentionRule,
  count: number,
  all: ReadonlyArray<RetainableBackup>,
  one: RetainableBackup,
  timeZone: string,
) => {
  const dateOf = ({ taken_at }: RetainableBackup) =>
    formats.get(timeZone)?.format(new Date(taken_at)) ?? ""
  const periodOf = (backup: RetainableBackup) => periodTexts[rule](dateOf(backup), backup.backup_id)
  const key = ({ taken_at, backup_id }: RetainableBackup) => `${taken_at} ${backup_id}`
  const newer = all.filter((other) => key(other) > key(one))
  const newer_periods = new Set(newer.map(periodOf))
  if (newer_periods.size >= count) return false
  return !newer_periods.has(periodOf(one)) || newer.length === all.length - 1
}

const rules = ["keep_last", "keep_daily", "keep_weekly", "keep_monthly"] as const

const naive = (all: ReadonlyArray<RetainableBackup>, counts: Retention, timezone: string) =>
  new Map(
    all.map((one) => [
      one.backup_id,
      rules.filter((rule) => isKeptBy(rule, counts[rule] ?? 0, all, one, timezone)),
    ]),
  )

describe("retention of any backups", () => {
  it("agrees with a naive oracle", () => {
    fc.assert(
      fc.property(list, retention, zone, (all, counts, timezone) => {
        const { keep, expire } = retain(all, counts, timezone)
        const expected = naive(all, counts, timezone)
        assert.equal(keep.length + expire.length, all.length)
        for (const { backup_id, rules } of keep) assert.deepEqual(rules, expected.get(backup_id))
        for (const backup_id of expire) assert.deepEqual(expected.get(backup_id), [])
        assert.isTrue(keep.every(({ rules }) => rules.length > 0))
      }),
      { numRuns: 300 },
    )
  })

  it("does not depend on the order of the list", () => {
    const shuffled = list.chain((all) =>
      fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length })),
    )
    fc.assert(
      fc.property(shuffled, retention, zone, ([all, other], counts, timezone) => {
        assert.deepEqual(retain(other, counts, timezone), retain(all, counts, timezone))
      }),
    )
  })

  it("keeps all kept backups when a number grows", () => {
    fc.assert(
      fc.property(list, retention, retention, zone, (all, counts, more, timezone) => {
        const grown = Object.fromEntries(rules.map((rule) => [rule, counts[rule] + more[rule]]))
        const ids = new Set(retain(all, grown, timezone).keep.map(({ backup_id }) => backup_id))
        for (const { backup_id } of retain(all, counts, timezone).keep) {
          assert.isTrue(ids.has(backup_id))
        }
      }),
    )
  })

  it("keeps at least the last n backups, and exactly those without other rules", () => {
    fc.assert(
      fc.property(list, retention, zone, (all, counts, timezone) => {
        const { keep_last } = counts
        const newest = all.map(({ taken_at, backup_id }) => `${taken_at} ${backup_id}`).sort()
        const wanted = newest.slice(Math.max(0, all.length - keep_last)).map((key) => key.slice(25))
        const ids = retain(all, counts, timezone).keep.map(({ backup_id }) => backup_id as string)
        for (const id of wanted) assert.include(ids, id)
        if (keep_last === 0) return
        const { keep } = retain(all, { keep_last }, timezone)
        assert.lengthOf(keep, Math.min(keep_last, all.length))
      }),
    )
  })

  it("is idempotent", () => {
    fc.assert(
      fc.property(list, retention, zone, (all, counts, timezone) => {
        const { keep } = retain(all, counts, timezone)
        const ids = new Set(keep.map(({ backup_id }) => backup_id))
        const rest = all.filter(({ backup_id }) => ids.has(backup_id))
        assert.deepEqual(retain(rest, counts, timezone), { keep, expire: [] })
      }),
    )
  })
})
