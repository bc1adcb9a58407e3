/** Workers as operators see them. Source: document 2 §2 Worker; DECISIONS, document 2, worker. */
import { type Schema, Struct } from "effect"
import type { Kysely } from "kysely"
import { WorkerEvent } from "#events/share-protection/worker.ts"
import { type Place, projection } from "#projections/projection.ts"
import { findRow, listRows, type Page } from "#projections/share-protection/listing.ts"
import { type Stored, table } from "#projections/table.ts"
import { nullsOf } from "#schemas/fields.ts"
import type { WorkerId } from "#schemas/share-protection/id.ts"
import { Worker, type WorkerState } from "#schemas/share-protection/worker.ts"

/** A worker without its heartbeat, which is a live value. */
const fields = Struct.omit(Worker.fields, ["heartbeat_at"])
export type WorkerRow = Schema.Struct<typeof fields>["Type"]

export interface WorkerTables {
  readonly share_protection_worker: Stored<WorkerRow>
}

const workers = table({
  name: "share_protection_worker",
  fields,
  indexes: [["image_version", "state"], ["image_version"], ["state"]],
})

const project = (event: WorkerEvent, { id: worker_id, commit: { at } }: Place) => {
  // The stream's own id.
  const id = worker_id as WorkerId
  const enter = (state: WorkerState) => [workers.update(id, { state, updated_at: at })]
  // Initial values of a worker without a row.
  const fresh = { ...nullsOf(fields), running_jobs: 0, created_at: at, updated_at: at }
  return WorkerEvent.match(event, {
    WorkerBootStarted: ({ project_id, domain_id }) => [
      workers.insert({ id, ...fresh, project_id, domain_id, state: "booting" }),
    ],
    WorkerRegistered: ({ type: _, ...fields }) => [
      workers.ensure({ id, ...fresh, ...fields, state: "ready" }),
      workers.update(id, { ...fields, state: "ready", updated_at: at }),
    ],
    // Assigning and freeing slots does not change the worker's other fields.
    WorkerJobAssigned: () => [workers.add(id, { running_jobs: 1 })],
    WorkerJobReleased: () => [workers.add(id, { running_jobs: -1 })],
    WorkerDrainStarted: () => enter("draining"),
    WorkerUndrained: () => enter("ready"),
    WorkerRetirementStarted: () => enter("retiring"),
    WorkerRetired: () => enter("retired"),
    WorkerBootFailed: () => enter("dead"),
    WorkerDied: () => enter("dead"),
  })
}

export const worker = projection<WorkerTables, WorkerEvent>({
  part: "share-protection.worker",
  event: WorkerEvent,
  create: ({ schema }) => workers.create(schema),
  project,
})

export const findWorker = (db: Kysely<WorkerTables>, id: WorkerId) => findRow(db, workers, id)

export interface WorkerFilter {
  readonly image_version?: string | undefined
  readonly state?: WorkerState | undefined
}

/** Oldest first. */
export const listWorkers = (db: Kysely<WorkerTables>, filter: WorkerFilter, page: Page) =>
  listRows(db, workers, { filter: { ...filter }, order: "asc" }, page)
