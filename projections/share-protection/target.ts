/**
 * Targets as tenants see them, now and at any earlier time.
 *
 * Source: document 2 §2 Target, §3 Target; DECISIONS, document 2, target create.
 */
import { type Effect, Struct } from "effect"
import { type Kysely, sql } from "kysely"
import { TargetEvent } from "#events/share-protection/target.ts"
import { type Place, projection } from "#projections/projection.ts"
import { extendProtection } from "#projections/share-protection/backup.ts"
import { dated, history, holds, type Version } from "#projections/share-protection/history.ts"
import { removeJobsOf } from "#projections/share-protection/job.ts"
import type { Listed, Page } from "#projections/share-protection/listing.ts"
import { type Stored, table } from "#projections/table.ts"
import { nullsOf } from "#schemas/fields.ts"
import type {
  DomainId,
  ProjectId,
  TargetId,
  TargetTemplateId,
} from "#schemas/share-protection/id.ts"
import { type TargetRow, type TargetStatus, target_row } from "#schemas/share-protection/target.ts"

export interface TargetTables {
  readonly share_protection_target: Stored<TargetRow>
  readonly share_protection_target_history: Version<Stored<Omit<TargetRow, "usage_stats">>>
  readonly share_protection_usage: Version<
    Stored<Pick<TargetRow, "id" | "project_id" | "domain_id" | "usage_stats">>
  >
}

const targets = table({
  name: "share_protection_target",
  fields: target_row,
  indexes: [["template_id"], ["project_id"], ["domain_id"], ["status"]],
})

/** Frequent measurements are stored apart from settings, which rarely change. */
const versioned = Struct.keys(targets.columns).filter((column) => column !== "usage_stats")

const past = history({
  name: "share_protection_target_history",
  of: targets,
  by: "id",
  keeps: versioned,
  indexes: [["id"], ["project_id", "id"], ["domain_id", "id"], ["status", "id"]],
})

/** Size of each target's repository, from one measurement to the next. */
const usage = history({
  name: "share_protection_usage",
  of: targets,
  by: "id",
  keeps: ["id", "project_id", "domain_id", "usage_stats"],
  indexes: [
    ["project_id", "valid_to"],
    ["domain_id", "valid_to"],
  ],
})

type Refs = { readonly access_key: string; readonly secret_key: string } | null

const refsOf = (map: Refs) => ({
  access_key_ref: map?.access_key ?? null,
  secret_key_ref: map?.secret_key ?? null,
})

const project = (event: TargetEvent, { id: target_id, commit: { at } }: Place) => {
  // The stream's own id.
  const id = target_id as TargetId
  const change = (values: Partial<TargetRow>) => [
    targets.update(id, { ...values, updated_at: at }),
    ...past.record(id, at),
  ]
  return TargetEvent.match(event, {
    TargetCreated: ({ type: _, vault_secret_map, ...target }) => [
      targets.insert({
        id,
        ...nullsOf(target_row),
        ...target,
        ...refsOf(vault_secret_map),
        status: "pending",
        created_at: at,
        updated_at: at,
      }),
      ...past.record(id, at),
    ],
    TargetUpdated: ({ type: _, vault_secret_map, ...changes }) =>
      change({ ...changes, ...(vault_secret_map === undefined ? {} : refsOf(vault_secret_map)) }),
    TargetEnrolled: ({ type: _, ...enrolled }) =>
      change({
        ...enrolled,
        status: "available",
        reason: null,
        preflight_at: enrolled.capabilities.checked_at,
      }),
    TargetEnrollmentFailed: ({ reason }) => change({ status: "error", reason }),
    TargetEnrollmentRestarted: ({ job_id }) => change({ status: "pending", reason: null, job_id }),
    TargetPreflighted: ({ at: preflight_at, capabilities }) =>
      change({ preflight_at, ...(capabilities === null ? {} : { capabilities }) }),
    TargetFormatUpgradeStarted: ({ job_id }) => change({ format_job_id: job_id }),
    TargetFormatUpgraded: ({ to_format }) => change({ format: to_format, format_job_id: null }),
    TargetFormatUpgradeFailed: () => change({ format_job_id: null }),
    // Individual backups have no event: their repository's lock applies to them.
    TargetLocksExtended: ({ protected_until }) => [
      extendProtection({ target_id: id, protected_until }),
    ],
    // A measurement does not change the target itself.
    TargetUsageMeasured: ({ usage_stats }) => [
      targets.update(id, { usage_stats }),
      ...usage.record(id, at),
    ],
    TargetDeleted: () => [
      targets.remove(id),
      ...past.end(id, at),
      ...usage.end(id, at),
      removeJobsOf({ target_id: id }),
    ],
    // References are counted elsewhere and not part of the view.
    TargetPolicyRegistered: () => [],
    TargetPolicyDeregistered: () => [],
    TargetBackupRegistered: () => [],
    TargetBackupsDeregistered: () => [],
  })
}

export const target = projection<TargetTables, TargetEvent>({
  part: "share-protection.target",
  event: TargetEvent,
  create: ({ schema }) => [
    ...targets.create(schema),
    ...past.create(schema),
    ...usage.create(schema),
  ],
  project,
})

export interface TargetFilter {
  readonly template_id?: TargetTemplateId | undefined
  readonly project_id?: ProjectId | undefined
  readonly status?: TargetStatus | undefined
  readonly domain_id?: DomainId | undefined
}

const read = dated(targets, (as_of) => {
  const measured = sql`
    select usage_stats from share_protection_usage as measured
    where measured.id = past.id and ${holds(as_of)}`
  return sql`
    select ${past.columns}, (${measured}) as usage_stats
    from ${sql.table(past.name)} as past`
})

/** The target now, or as of an `Instant`; undefined if there is none. */
export const findTarget = (
  db: Kysely<TargetTables>,
  id: TargetId,
  as_of?: string,
): Effect.Effect<TargetRow | undefined> => read.find(db, id, as_of)

/** Oldest first, now or as of an `Instant`. */
export const listTargets = (
  db: Kysely<TargetTables>,
  filter: TargetFilter,
  page: Page,
  as_of?: string,
): Effect.Effect<Listed<TargetRow>> => read.list(db, { ...filter }, page, as_of)
