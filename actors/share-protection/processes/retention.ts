/**
 * Retention: which backups of a share its policy keeps, and by which of its rules.
 *
 * A rule means what restic means by it. It keeps the newest backup of each calendar period, as
 * many periods as it says; and the oldest of all while there are fewer periods than that, so that
 * the history reaches as far back as it can.
 *
 * Source: document 2 §2 Policy, §3 Backup; DECISIONS, document 2, policy.
 */
import { DateTime } from "effect"
import type { BackupId } from "#schemas/share-protection/id.ts"
import type { Retention } from "#schemas/share-protection/retention.ts"

const day_ms = 86_400_000

/** A backup that is available. */
export interface RetainableBackup {
  readonly backup_id: BackupId
  /** RFC 3339 in UTC, with milliseconds. */
  readonly taken_at: string
  /** Whether its tenant brought it back: it stays, and counts for no rule. */
  readonly kept?: boolean
}

export type RetentionRule = keyof Retention

/** A backup that stays, and why; no rule is named where its tenant or no rule at all keeps it. */
export interface Kept {
  readonly backup_id: BackupId
  readonly rules: ReadonlyArray<RetentionRule>
}

export interface Retained {
  /** Newest first, and then what their tenant keeps. */
  readonly keep: ReadonlyArray<Kept>
  /** Newest first. */
  readonly expire: ReadonlyArray<BackupId>
}

/**
 * Sorts a share's backups into those that stay and those that may go. Days, ISO weeks and months
 * are those of `timezone` (IANA; one that nobody knows throws). Of two backups of the same time
 * the one with the higher id is the newer. A retention without a rule keeps everything.
 */
export const retain = (
  backups: ReadonlyArray<RetainableBackup>,
  retention: Retention,
  timezone: string,
): Retained => {
  const zone = DateTime.zoneMakeNamedUnsafe(timezone)
  const counts = rules
    .map((rule) => ({ rule, left: retention[rule] ?? 0, last: Number.NaN }))
    .filter(({ left }) => left > 0)
  const keep: Array<Kept> = []
  const expire: Array<BackupId> = []

  const keep_apart = backups.filter(({ kept }) => kept === true)
  const newest_first = backups
    .filter(({ kept }) => kept !== true)
    .toSorted((one, other) => (isNewer(one, other) ? -1 : 1))
  for (const [index, { backup_id, taken_at }] of newest_first.entries()) {
    const periods = periodsOf(taken_at, index, zone)
    const is_oldest = index === newest_first.length - 1
    const matching = counts.filter(
      ({ rule, left, last }) => left > 0 && (is_oldest || periods[rule] !== last),
    )
    for (const count of matching) {
      count.left--
      count.last = periods[count.rule]
    }
    if (matching.length === 0 && counts.length > 0) expire.push(backup_id)
    else keep.push({ backup_id, rules: matching.map(({ rule }) => rule) })
  }
  keep.push(...keep_apart.map(({ backup_id }) => ({ backup_id, rules: [] })))
  return { keep, expire }
}

const rules = ["keep_last", "keep_daily", "keep_weekly", "keep_monthly"] as const

const isNewer = (one: RetainableBackup, other: RetainableBackup) =>
  one.taken_at === other.taken_at ? one.backup_id > other.backup_id : one.taken_at > other.taken_at

/** A number for each rule's period that the backup falls into: the same for the same period. */
const periodsOf = (
  taken_at: string,
  index: number,
  timeZone: DateTime.TimeZone,
): Record<RetentionRule, number> => {
  const local = DateTime.toParts(DateTime.makeZonedUnsafe(taken_at, { timeZone }))
  const { year, month, day, weekDay } = local
  const day_number = Date.UTC(year, month - 1, day) / day_ms
  return {
    keep_last: index,
    keep_daily: day_number,
    // The number of its Monday.
    keep_weekly: day_number - ((weekDay + 6) % 7),
    keep_monthly: year * 12 + month,
  }
}
