/** The unit of work of work.ts as an Almanac aggregate and its read model. */
import { Schema } from "effect"
import { sql } from "kysely"
import { assign, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { projection } from "#projections/projection.ts"
import type { Blueprint } from "#projections/read-model.ts"
import { statement } from "#projections/statement.ts"
import { message } from "#schemas/message.ts"

const fields = {
  worker_id: Schema.String,
  job_id: Schema.String,
  project_id: Schema.String,
  request_id: Schema.String,
  image_version: Schema.String,
  engine_version: Schema.String,
  occurred_at: Schema.String,
}

export const AssignJob = message("AssignJob", fields)
export const ReleaseJob = message("ReleaseJob", fields)
const WorkerCommand = Schema.Union([AssignJob, ReleaseJob])
export type WorkerCommand = typeof WorkerCommand.Type

const WorkerJobAssigned = message("WorkerJobAssigned", fields)
const WorkerJobReleased = message("WorkerJobReleased", fields)
export const WorkerEvent = Schema.Union([WorkerJobAssigned, WorkerJobReleased]).pipe(
  Schema.toTaggedUnion("type"),
)
export type WorkerEvent = typeof WorkerEvent.Type

class Refused extends Schema.Error<Refused>("bench.refused")({ code: Schema.tag("refused") }) {}

interface Context {
  readonly running_jobs: number
  readonly job_id: string
}

const machine = setup({
  types: { context: {} as Context, events: {} as WorkerEvent },
  guards: {
    is_idle: ({ context }) => context.running_jobs === 0,
    is_busy: ({ context }) => context.running_jobs === 1,
  },
}).createMachine({
  id: "bench.worker",
  context: { running_jobs: 0, job_id: "" },
  initial: "ready",
  states: {
    ready: {
      on: {
        WorkerJobAssigned: {
          guard: "is_idle",
          actions: assign(({ event }) => ({ running_jobs: 1, job_id: event.job_id })),
        },
        WorkerJobReleased: {
          guard: "is_busy",
          actions: assign(() => ({ running_jobs: 0 })),
        },
      },
    },
  },
})

export const Worker = decider({
  machine,
  version: 1,
  command: WorkerCommand,
  event: WorkerEvent,
  rejection: Refused,
  propose: {
    AssignJob: ({ type: _, ...job }) => [WorkerJobAssigned.make(job)],
    ReleaseJob: ({ type: _, ...job }) => [WorkerJobReleased.make(job)],
  },
  reject: () => new Refused({}),
})

export interface Tables {
  readonly worker: {
    readonly worker_id: string
    readonly position: number
    readonly version: number
    readonly running_jobs: number
    readonly job_id: string
    readonly updated_at: string
  }
}

const create = statement<Tables>()

const changed = create<Omit<Tables["worker"], "version">>((db, row) =>
  db
    .insertInto("worker")
    .values({
      worker_id: row.worker_id,
      position: row.position,
      version: 1,
      running_jobs: row.running_jobs,
      job_id: row.job_id,
      updated_at: row.updated_at,
    })
    .onConflict((conflict) =>
      conflict.column("worker_id").doUpdateSet({
        position: sql`excluded.position`,
        version: sql`worker.version + 1`,
        running_jobs: sql`worker.running_jobs + excluded.running_jobs`,
        job_id: sql`excluded.job_id`,
        updated_at: sql`excluded.updated_at`,
      }),
    ),
)

const workers = projection<Tables, WorkerEvent>({
  part: "bench.worker",
  event: WorkerEvent,
  create: ({ schema }) => [
    schema
      .createTable("worker")
      .addColumn("worker_id", "text", (column) => column.primaryKey())
      .addColumn("position", "integer", (column) => column.notNull())
      .addColumn("version", "integer", (column) => column.notNull())
      .addColumn("running_jobs", "integer", (column) => column.notNull())
      .addColumn("job_id", "text", (column) => column.notNull())
      .addColumn("updated_at", "text", (column) => column.notNull()),
  ],
  project: (event, { position, id }) => {
    const { job_id, occurred_at: updated_at } = event
    const running_jobs = event.type === "WorkerJobAssigned" ? 1 : -1
    return [changed({ worker_id: id, position, running_jobs, job_id, updated_at })]
  },
})

export const blueprint: Blueprint<Tables> = {
  service: "bench",
  version: 1,
  part: "bench",
  projections: [workers],
}
