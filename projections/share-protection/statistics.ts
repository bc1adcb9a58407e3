/**
 * Statistics of share protection, for operators' metrics.
 *
 * Counts scan whole tables, so they belong on the read-only thread. Source: issue 10 §7; document 2
 * §2.
 */
import { Effect } from "effect"
import { type Kysely, sql } from "kysely"
import type { BackupTables } from "#projections/share-protection/backup.ts"
import type { JobTables } from "#projections/share-protection/job.ts"
import type { PolicyTables } from "#projections/share-protection/policy.ts"
import type { ReconciliationTables } from "#projections/share-protection/reconciliation.ts"
import type { RestoreTables } from "#projections/share-protection/restore.ts"
import type { RestoreTestTables } from "#projections/share-protection/restore-test.ts"
import type { RolloutTables } from "#projections/share-protection/rollout.ts"
import type { TargetTables } from "#projections/share-protection/target.ts"
import type { WorkerTables } from "#projections/share-protection/worker.ts"
import { job_steps } from "#schemas/share-protection/job.ts"

type Tables = TargetTables &
  (BackupTables & RestoreTables & JobTables & WorkerTables & RolloutTables) &
  (PolicyTables & RestoreTestTables & ReconciliationTables)

/** Tables and their state columns. */
const counted = {
  jobs: ["share_protection_job", "state"],
  backups: ["share_protection_backup", "status"],
  restores: ["share_protection_restore", "status"],
  targets: ["share_protection_target", "status"],
  workers: ["share_protection_worker", "state"],
  rollouts: ["share_protection_rollout", "state"],
} as const

export type Counted = keyof typeof counted

const countsOf = (db: Kysely<Tables>, [table, column]: (typeof counted)[Counted]) =>
  Effect.promise(async () => {
    const state = sql.ref(column)
    const query = sql<{ readonly state: string; readonly count: number | string }>`
      select ${state} as state, count(*) as count from ${sql.table(table)} group by ${state}`
    const { rows } = await query.execute(db)
    // PostgreSQL returns a count as digits.
    return new Map(rows.map(({ state, count }) => [state, Number(count)]))
  })

interface Waits {
  readonly queued: string | null
  readonly running: string | null
}

/**
 * RFC 3339: when the oldest job of this attempt was queued, and when the oldest running one
 * started.
 */
const waitsOf = (db: Kysely<Tables>): Effect.Effect<Waits> =>
  Effect.promise(async () => {
    const query = sql<Waits>`
      select
        (select min(case when attempt = 1 then created_at else updated_at end)
          from share_protection_job where state = 'queued') as queued,
        (select min(started_at) from share_protection_job
          where state in (${sql.join([...job_steps])})) as running`
    const [row] = (await query.execute(db)).rows
    return row ?? { queued: null, running: null }
  })

export interface Statistics extends Waits {
  /** Number of rows by state; states without rows are missing. */
  readonly counts: ReadonlyMap<Counted, ReadonlyMap<string, number>>
}

export const statisticsOf = Effect.fnUntraced(function* (db: Kysely<Tables>) {
  const counts = new Map<Counted, ReadonlyMap<string, number>>()
  for (const name of Object.keys(counted)) {
    // The keys of `counted` are its own.
    const kind = name as Counted
    counts.set(kind, yield* countsOf(db, counted[kind]))
  }
  const standing: Statistics = { counts, ...(yield* waitsOf(db)) }
  return standing
})
