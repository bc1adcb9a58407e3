/**
 * Rollouts as operators see them.
 *
 * Source: document 2 §2 Rollout descriptor; DECISIONS, document 2, rollouts.
 */
import type { Kysely } from "kysely"
import { RolloutEvent } from "#events/share-protection/rollout.ts"
import { type Place, projection } from "#projections/projection.ts"
import { findRow, listRows, type Page } from "#projections/share-protection/listing.ts"
import { type Stored, table } from "#projections/table.ts"
import type { RolloutId } from "#schemas/share-protection/id.ts"
import { type Rollout, type RolloutRow, rollout_row } from "#schemas/share-protection/rollout.ts"

export interface RolloutTables {
  readonly share_protection_rollout: Stored<RolloutRow>
}

const rollouts = table({
  name: "share_protection_rollout",
  fields: rollout_row,
})

const project = (event: RolloutEvent, { id: rollout_id, commit: { at } }: Place) => {
  // The stream's own id.
  const id = rollout_id as RolloutId
  const touch = rollouts.update(id, { updated_at: at })
  return RolloutEvent.match(event, {
    RolloutCreated: ({ type: _, ...rollout }) => [
      rollouts.insert({
        id,
        ...rollout,
        state: "running",
        domain_index: 0,
        replaced_workers: 0,
        reason: null,
        created_at: at,
        updated_at: at,
      }),
    ],
    ReplacementStarted: () => [touch],
    ReplacementCompleted: () => [rollouts.add(id, { replaced_workers: 1 }), touch],
    RolloutDomainCompleted: () => [rollouts.add(id, { domain_index: 1 }), touch],
    RolloutSucceeded: () => [rollouts.update(id, { state: "succeeded", updated_at: at })],
    RolloutHalted: ({ reason }) => [
      rollouts.update(id, { state: "halted", reason, updated_at: at }),
    ],
  })
}

export const rollout = projection<RolloutTables, RolloutEvent>({
  part: "share-protection.rollout",
  event: RolloutEvent,
  create: ({ schema }) => rollouts.create(schema),
  project,
})

const toRollout = (stored: Stored<RolloutRow>): Rollout => {
  const { domain_index, ...row } = rollouts.toRow(stored)
  return { ...row, current_domain_id: row.domain_ids[domain_index] ?? null }
}

export const findRollout = (db: Kysely<RolloutTables>, id: RolloutId) =>
  findRow(db, { ...rollouts, toRow: toRollout }, id)

/** Oldest first. */
export const listRollouts = (db: Kysely<RolloutTables>, page: Page) =>
  listRows(db, { ...rollouts, toRow: toRollout }, { filter: {}, order: "asc" }, page)
