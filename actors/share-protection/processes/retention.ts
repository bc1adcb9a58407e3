/**
 * Retention: selects the backups of a share that its policy keeps, and the rules that keep them.
 *
 * Rules work as in restic. A rule keeps the newest backup of each of the last n calendar periods.
 * With fewer than n periods it also keeps the oldest backup, so that the history reaches back as
 * far as possible.
 *
 * Source: document 2 §2 Policy, §3 Backup; DECISIONS, document 2, policy.
 */
import { DateTime } from "effect"
import type { BackupId } from "#schemas/share-protection/id.ts"
import type { Retention } from "#schemas/share-protection/retention.ts"

const day_ms = 86_400_000

/** An available backup. */
export interface RetainableBackup {
  readonly backup_id: BackupId
  /** RFC 3339 in UTC, with milliseconds. */
  readonly taken_at: string
  /** Whether its tenant undeleted it: it is kept and counts for no rule. */
  readonly kept?: boolean
}

export type RetentionRule = keyof Retention

/** A kept backup and its rules: none if its tenant undeleted it or the policy has no rules. */
export interface KeptBackup {
  readonly backup_id: BackupId
  readonly rules: ReadonlyArray<RetentionRule>
}

export interface RetentionResult {
  /** Newest first, followed by undeleted backups. */
  readonly keep: ReadonlyArray<KeptBackup>
  /** Newest first. */
  readonly expire: ReadonlyArray<BackupId>
}

/**
 * Splits a share's backups into those to keep and those to expire. Days, ISO weeks and months are
 * in `timezone` (IANA; throws if unknown). Of two backups of the same time, the one with the higher
 * id is newer. A retention without rules keeps everything.
 */
export const retain = (
  backups: ReadonlyArray<RetainableBackup>,
  retention: Retention,
  timezone: string,
): RetentionResult => {
  const zone = DateTime.zoneMakeNamedUnsafe(timezone)
  const counts = rules
    .map((rule) => ({ rule, left: retention[rule] ?? 0, last: Number.NaN }))
    .filter(({ left }) => left > 0)
  const keep: Array<KeptBackup> = []
  const expire: Array<BackupId> = []

  const undeleted = backups.filter(({ kept }) => kept === true)
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
  keep.push(...undeleted.map(({ backup_id }) => ({ backup_id, rules: [] })))
  return { keep, expire }
}

const rules = ["keep_last", "keep_daily", "keep_weekly", "keep_monthly"] as const

const isNewer = (one: RetainableBackup, other: RetainableBackup) =>
  one.taken_at === other.taken_at ? one.backup_id > other.backup_id : one.taken_at > other.taken_at

/** The number of the period of each rule in which the backup falls. */
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
    // The day number of its Monday.
    keep_weekly: day_number - ((weekDay + 6) % 7),
    keep_monthly: year * 12 + month,
  }
}
