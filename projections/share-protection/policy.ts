/**
 * Policies as tenants see them, now and at any earlier time.
 *
 * Source: document 2 §2 Policy; DECISIONS, document 2, policy.
 */
import { Effect, type Schema, Struct } from "effect"
import { type Kysely, sql } from "kysely"
import { PolicyEvent } from "#events/share-protection/policy.ts"
import { type Place, projection } from "#projections/projection.ts"
import { detachBackups } from "#projections/share-protection/backup.ts"
import { dated, history, type Version } from "#projections/share-protection/history.ts"
import type { Listed, Page } from "#projections/share-protection/listing.ts"
import { statement } from "#projections/statement.ts"
import { type Stored, table } from "#projections/table.ts"
import { nullsOf } from "#schemas/fields.ts"
import type {
  BackupId,
  PolicyId,
  ProjectId,
  ShareId,
  TargetId,
} from "#schemas/share-protection/id.ts"
import { policy_row } from "#schemas/share-protection/policy.ts"

export type PolicyRow = Schema.Struct<typeof policy_row>["Type"]

export interface PolicyTables {
  readonly share_protection_policy: Stored<PolicyRow>
  readonly share_protection_policy_history: Version<
    Stored<Omit<PolicyRow, "last_tick" | "in_flight_backup_id">>
  >
}

const policies = table({
  name: "share_protection_policy",
  fields: policy_row,
  by: "share_id",
  indexes: [["share_id"], ["target_id"], ["project_id"]],
})

const past = history({
  name: "share_protection_policy_history",
  of: policies,
  by: "share_id",
  keeps: Struct.keys(policy_row).filter(
    (column) => column !== "last_tick" && column !== "in_flight_backup_id",
  ),
  indexes: [["id"], ["target_id", "id"], ["project_id", "id"]],
})

/** A policy belongs to the domain that owns its target or its template. */
const setDomain = statement<{
  share_protection_policy: Pick<PolicyRow, "share_id" | "domain_id">
}>()<Pick<PolicyRow, "share_id" | "target_id" | "target_template_id">>(
  (db, { share_id, target_id, target_template_id }) =>
    db
      .updateTable("share_protection_policy")
      .where("share_id", "=", share_id)
      .set({
        domain_id: sql`coalesce(
          (select domain_id from share_protection_target where id = ${target_id}),
          (select domain_id from share_protection_target_template
            where id = ${target_template_id})
        )`,
      }),
)

const finish = statement<PolicyTables>()<{
  readonly backup_id: BackupId
  readonly share_id: ShareId
}>((db, { backup_id, share_id }) =>
  db
    .updateTable("share_protection_policy")
    .where("share_id", "=", share_id)
    .where("in_flight_backup_id", "=", backup_id)
    .set({ in_flight_backup_id: null }),
)

const project = (event: PolicyEvent, { id, commit: { at } }: Place) => {
  // The stream's own id.
  const share_id = id as ShareId
  return PolicyEvent.match(event, {
    PolicyDefined: ({ type: _, ...policy }) => [
      policies.insert({
        share_id,
        ...nullsOf(policy_row),
        ...policy,
        created_at: at,
        updated_at: at,
      }),
      setDomain({ share_id, ...policy }),
      ...past.record(share_id, at),
    ],
    PolicyUpdated: ({ type: _, policy_id: _id, ...changes }) => [
      policies.update(share_id, { ...changes, updated_at: at }),
      ...past.record(share_id, at),
    ],
    PolicyDeleted: ({ policy_id }) => [
      policies.remove(share_id),
      ...past.end(share_id, at),
      detachBackups({ policy_id }),
    ],
    ShareBackupStarted: ({ backup_id, policy_id, tick }) =>
      policy_id === null
        ? []
        : [
            policies.update(share_id, {
              in_flight_backup_id: backup_id,
              ...(tick === null ? {} : { last_tick: tick }),
            }),
          ],
    ShareBackupFinished: ({ backup_id }) => [finish({ share_id, backup_id })],
    TickSkipped: ({ tick }) => [policies.update(share_id, { last_tick: tick })],
  })
}

export const policy = projection<PolicyTables, PolicyEvent>({
  part: "share-protection.policy",
  event: PolicyEvent,
  create: ({ schema }) => [...policies.create(schema), ...past.create(schema)],
  project,
})

interface PolicyFilter {
  readonly project_id?: ProjectId | undefined
  readonly share_id?: ShareId | undefined
  readonly target_id?: TargetId | undefined
}

const read = dated(
  policies,
  () => sql`
    select ${past.columns}, null as last_tick, null as in_flight_backup_id
    from ${sql.table(past.name)}`,
)

/** The policy now, or as of an `Instant`; undefined if there is none. */
export const findPolicy = (
  db: Kysely<PolicyTables>,
  id: PolicyId,
  as_of?: string,
): Effect.Effect<PolicyRow | undefined> => read.find(db, id, as_of)

/** Oldest first, now or as of an `Instant`. */
export const listPolicies = (
  db: Kysely<PolicyTables>,
  filter: PolicyFilter,
  page: Page,
  as_of?: string,
): Effect.Effect<Listed<PolicyRow>> => read.list(db, { ...filter }, page, as_of)

/** The distinct schedules of enabled policies: few, however many policies there are. */
export const listSchedules = (db: Kysely<PolicyTables>) =>
  Effect.promise(() =>
    db
      .selectFrom("share_protection_policy")
      .select(["schedule", "timezone"])
      .distinct()
      .where("enabled", "=", 1)
      .execute(),
  )
