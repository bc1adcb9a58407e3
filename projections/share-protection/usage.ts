/**
 * Usage and coverage: protected shares and their storage, now and at any earlier time.
 *
 * Both scan whole tables and belong on the read-only thread. Source: document 2 §2 Usage, Coverage
 * entry; DECISIONS, document 2, coverage and usage.
 */
import { Effect } from "effect"
import { type Kysely, type RawBuilder, sql } from "kysely"
import { integerIn } from "#projections/dialect.ts"
import type { BackupTables } from "#projections/share-protection/backup.ts"
import { holds } from "#projections/share-protection/history.ts"
import type { PolicyTables } from "#projections/share-protection/policy.ts"
import type {
  RestoreTestRow,
  RestoreTestTables,
} from "#projections/share-protection/restore-test.ts"
import type { TargetTables } from "#projections/share-protection/target.ts"
import type {
  BackupId,
  DomainId,
  PolicyId,
  ProjectId,
  ShareId,
  TargetId,
} from "#schemas/share-protection/id.ts"

type Tables = PolicyTables & BackupTables & TargetTables & RestoreTestTables

interface UsageRow {
  /** Null for buckets that projects share. */
  readonly project_id: ProjectId | null
  /** Shares with an enabled policy. */
  readonly protected_shares: number
  /** Number of available backups. */
  readonly backup_count: number
  /** Bytes of the newest available backup of each protected share. */
  readonly protected_bytes: number
  /** Bytes in the repositories, as last measured. */
  readonly stored_bytes: number
}

interface UsageFilter {
  readonly project_id?: ProjectId | undefined
  /** Only this domain's targets. */
  readonly domain_id?: DomainId | undefined
}

/** The versions valid at that time, optionally of one project and one domain. */
const versions = (
  table: keyof Tables,
  { project_id, domain_id }: UsageFilter,
  as_of: string | undefined,
) => {
  const terms = [
    holds(as_of),
    ...(project_id === undefined ? [] : [sql`project_id = ${project_id}`]),
    ...(domain_id === undefined ? [] : [sql`domain_id = ${domain_id}`]),
  ]
  return sql`select * from ${sql.table(table)} where ${sql.join(terms, sql` and `)}`
}

/** The newest available backup of each share, and the number of them. */
const newest = sql`
  select share_id, bytes, target_id, project_id, taken_at, backup_count from (
    select *, count(*) over (partition by share_id) as backup_count,
      row_number() over (partition by share_id order by taken_at desc, id desc) as place
    from backup
  ) as placed where place = 1`

/**
 * A row for each known project, by id.
 *
 * `as_of` is an `Instant`; without it the result is current.
 */
export const usageOf = (
  db: Kysely<Tables>,
  filter: UsageFilter,
  as_of?: string,
): Effect.Effect<ReadonlyArray<UsageRow>> =>
  rowsOf(
    db,
    sql<UsageRow>`
      with policy as (${versions("share_protection_policy_history", filter, as_of)}),
        backup as (${versions("share_protection_backup_history", filter, as_of)}),
        measured as (${versions("share_protection_usage", filter, as_of)}),
        newest as (${newest}),
        part as (
          select policy.project_id, 1 as protected_shares, 0 as backup_count,
            coalesce(newest.bytes, 0) as protected_bytes, 0 as stored_bytes
          from policy left join newest using (share_id) where policy.enabled = 1
          union all
          select project_id, 0, 1, 0, 0 from backup
          union all
          select project_id, 0, 0, 0, ${integerIn(db, "usage_stats", "stored_bytes")}
          from measured
        )
      select project_id, sum(protected_shares) as protected_shares,
        sum(backup_count) as backup_count, sum(protected_bytes) as protected_bytes,
        sum(stored_bytes) as stored_bytes
      from part group by project_id order by project_id nulls first`,
  )

export interface CoverageRow {
  readonly share_id: ShareId
  readonly project_id: ProjectId
  readonly policy_id: PolicyId | null
  /**
   * The policy's target; that of the newest backup if there is no policy or it names a template.
   */
  readonly target_id: TargetId | null
  /** Whether it has an enabled policy. */
  readonly protected: boolean
  /** Number of available backups. */
  readonly backup_count: number
  /** When the newest of them was taken, an `Instant`; null if none. */
  readonly last_backup_at: string | null
  /**
   * The last backup verified by a restore test, which may have been deleted since; null if none.
   */
  readonly last_proven_restorable: {
    readonly backup_id: BackupId
    readonly taken_at: string
    readonly proven_at: string
  } | null
  /** Null unless the share's last restore test failed. */
  readonly restore_test_failure: {
    readonly backup_id: BackupId
    readonly failed_at: string
    readonly reason: string
  } | null
}

type Tested = Omit<RestoreTestRow, "id">

interface CoverageRecord
  extends Omit<CoverageRow, "protected" | "last_proven_restorable" | "restore_test_failure">,
    Tested {
  readonly enabled: number
}

const toCoverageRow = (found: CoverageRecord): CoverageRow => {
  const { enabled, proven_backup_id, proven_taken_at, proven_at, ...row } = found
  const { failed_backup_id, failed_at, failure, ...about } = row
  const is_proven = proven_backup_id !== null && proven_taken_at !== null && proven_at !== null
  const is_failed = failed_backup_id !== null && failed_at !== null && failure !== null
  return {
    ...about,
    protected: enabled === 1,
    last_proven_restorable: is_proven
      ? { backup_id: proven_backup_id, taken_at: proven_taken_at, proven_at }
      : null,
    restore_test_failure: is_failed
      ? { backup_id: failed_backup_id, failed_at, reason: failure }
      : null,
  }
}

/**
 * A row for each share with a policy or an available backup, by id.
 *
 * `as_of` is an `Instant`; without it the result is current.
 */
export const coverageOf = (
  db: Kysely<Tables>,
  as_of?: string,
): Effect.Effect<ReadonlyArray<CoverageRow>> =>
  Effect.map(
    rowsOf(
      db,
      sql<CoverageRecord>`
        with policy as (${versions("share_protection_policy_history", {}, as_of)}),
          backup as (${versions("share_protection_backup_history", {}, as_of)}),
          newest as (${newest}),
          tested as (${versions("share_protection_restore_test_history", {}, as_of)})
        select coalesce(policy.share_id, newest.share_id) as share_id,
          coalesce(policy.project_id, newest.project_id) as project_id,
          policy.id as policy_id, coalesce(policy.target_id, newest.target_id) as target_id,
          coalesce(policy.enabled, 0) as enabled,
          coalesce(newest.backup_count, 0) as backup_count, newest.taken_at as last_backup_at,
          proven_backup_id, proven_taken_at, proven_at, failed_backup_id, failed_at, failure
        from policy full join newest using (share_id)
          left join tested on tested.id = coalesce(policy.share_id, newest.share_id)
        order by 1`,
    ),
    (rows) => rows.map(toCoverageRow),
  )

const rowsOf = <Row>(
  db: Kysely<Tables>,
  query: RawBuilder<Row>,
): Effect.Effect<ReadonlyArray<Row>> => Effect.promise(async () => (await query.execute(db)).rows)
