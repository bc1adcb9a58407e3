/** Retention rules of backups. Source: document 2 §2 Policy; DECISIONS, document 2, policy. */
import { Schema } from "effect"

/** More than one backup an hour for a hundred years is a mistake. */
const keep_max = 1_000_000

const Keep = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: keep_max }))

const kept = (which: string, description: string) =>
  Schema.optionalKey(Keep).annotateKey({ description, flag: `keep-${which}` })

const newestOf = (how_often: string, period: string) =>
  `Number of ${how_often} backups to keep, the newest of each ${period} that has backups.`

/** Number of newest backups to keep, and of the newest of each day, ISO week and month. */
export const Retention = Schema.Struct({
  keep_last: kept("last", "Number of the newest backups to keep."),
  keep_daily: kept("daily", newestOf("daily", "day")),
  keep_weekly: kept("weekly", newestOf("weekly", "ISO week")),
  keep_monthly: kept("monthly", newestOf("monthly", "month")),
})
  .check(
    Schema.makeFilter<{ readonly [rule: string]: number | undefined }>(
      (retention) =>
        Object.values(retention).some((keep) => (keep ?? 0) > 0) ||
        "Expected at least one of keep_last, keep_daily, keep_weekly and keep_monthly above 0",
      // Not only zeros. Clients have simpler types than with one alternative for each field.
      { toJsonSchema: () => ({ minProperties: 1, not: { additionalProperties: { const: 0 } } }) },
    ),
  )
  .annotate({
    description:
      "Which backups to keep. A backup expires when no rule keeps it. At least one number must " +
      "be above 0; an absent one is 0.",
  })
export type Retention = typeof Retention.Type
