import { assert, describe, it } from "@effect/vitest"
import { Worker } from "#actors/share-protection/worker.ts"
import {
  WorkerBootFailed,
  WorkerBootStarted,
  WorkerDied,
  WorkerDrainStarted,
  type WorkerEvent,
  WorkerJobAssigned,
  WorkerJobReleased,
  WorkerRegistered,
  WorkerRetired,
  WorkerRetirementStarted,
  WorkerUndrained,
} from "#events/share-protection/worker.ts"
import { DomainId, ProjectId } from "#schemas/share-protection/id.ts"
import {
  AssignWorkerJob,
  BootWorker,
  ConfirmRetirement,
  capacity_slots_max,
  DrainWorker,
  FailWorkerBoot,
  MarkWorkerDead,
  RegisterWorker,
  ReleaseWorkerJob,
  RetireWorker,
  UndrainWorker,
} from "#schemas/share-protection/worker.ts"
import { given } from "../world/given.ts"
import {
  jobId,
  longest_domain_id,
  longest_project_id,
  longestName,
} from "../world/share-protection/samples.ts"
import { assertStorable, everyState } from "../world/state-table.ts"

const place = { project_id: ProjectId.make("workers"), domain_id: DomainId.make("default") }
const boot = { ...place, image: "image-2" }
const words = {
  ...place,
  hostname: "host-1",
  image_version: "image-2",
  engine_version: "0.18.0",
  capacity_slots: 2,
}
const reason = "Nothing was heard of it."
const slot = { job_id: jobId(1), fence: 7 }
const other = { job_id: jobId(2), fence: 3 }

const booting = WorkerBootStarted.make(boot)
const ready = WorkerRegistered.make(words)
const takes = WorkerJobAssigned.make(slot)
const ends = WorkerJobReleased.make(slot)
const draining = WorkerDrainStarted.make({})
const undrained = WorkerUndrained.make({})
const retiring = WorkerRetirementStarted.make({})
const retired = WorkerRetired.make({})
const dead = WorkerDied.make({ reason })

const states = {
  absent: [],
  booting: [booting],
  ready: [ready],
  "ready after a boot": [booting, ready],
  "ready with a job": [ready, takes],
  "ready without a slot": [ready, WorkerJobAssigned.make(other), takes],
  draining: [ready, draining],
  "draining with a job": [ready, takes, draining],
  retiring: [ready, draining, retiring],
  "retiring with a job": [ready, takes, draining, retiring],
  retired: [ready, draining, retiring, retired],
  "dead since its boot": [booting, WorkerBootFailed.make({ reason })],
  dead: [ready, dead],
  "dead with a job": [ready, takes, dead],
} satisfies Record<string, ReadonlyArray<WorkerEvent>>

const conflict = "svc.conflict"
const absent = { absent: "svc.not_found" } as const
const full = "svc.worker_unavailable"

/** The states in which the worker runs the one job. */
const holding = <const Outcome>(outcome: Outcome) => ({
  "ready with a job": outcome,
  "ready without a slot": outcome,
  "draining with a job": outcome,
  "retiring with a job": outcome,
  "dead with a job": outcome,
})

describe("a worker", () => {
  everyState(Worker, states, {
    BootWorker: [
      { command: BootWorker.make(boot), in: { absent: [booting] }, otherwise: conflict },
    ],
    FailWorkerBoot: [
      {
        command: FailWorkerBoot.make({ reason }),
        in: { ...absent, booting: [WorkerBootFailed.make({ reason })] },
        otherwise: conflict,
      },
    ],
    RegisterWorker: [
      {
        command: RegisterWorker.make(words),
        in: {
          absent: [ready],
          booting: [ready],
          retired: conflict,
          "dead since its boot": conflict,
          dead: conflict,
          "dead with a job": conflict,
        },
        otherwise: [],
      },
      {
        with: "with other words",
        command: RegisterWorker.make({ ...words, engine_version: "0.19.0" }),
        in: {
          absent: [WorkerRegistered.make({ ...words, engine_version: "0.19.0" })],
          booting: [WorkerRegistered.make({ ...words, engine_version: "0.19.0" })],
        },
        otherwise: conflict,
      },
    ],
    AssignWorkerJob: [
      {
        command: AssignWorkerJob.make(slot),
        in: { ...absent, ready: [takes], "ready after a boot": [takes] },
        otherwise: conflict,
      },
      {
        with: "of another job",
        command: AssignWorkerJob.make({ job_id: jobId(3), fence: 1 }),
        in: {
          ...absent,
          ready: [WorkerJobAssigned.make({ job_id: jobId(3), fence: 1 })],
          "ready after a boot": [WorkerJobAssigned.make({ job_id: jobId(3), fence: 1 })],
          "ready with a job": [WorkerJobAssigned.make({ job_id: jobId(3), fence: 1 })],
          "ready without a slot": full,
        },
        otherwise: conflict,
      },
      {
        with: "that it has, by a later fence",
        command: AssignWorkerJob.make({ ...slot, fence: 8 }),
        in: {
          ...absent,
          ready: [WorkerJobAssigned.make({ ...slot, fence: 8 })],
          "ready after a boot": [WorkerJobAssigned.make({ ...slot, fence: 8 })],
        },
        otherwise: conflict,
      },
    ],
    ReleaseWorkerJob: [
      {
        command: ReleaseWorkerJob.make(slot),
        in: { ...absent, ...holding([ends]) },
        otherwise: [],
      },
      {
        with: "by an earlier fence",
        command: ReleaseWorkerJob.make({ ...slot, fence: 6 }),
        in: absent,
        otherwise: [],
      },
      {
        with: "by a later fence",
        command: ReleaseWorkerJob.make({ ...slot, fence: 8 }),
        in: absent,
        otherwise: [],
      },
    ],
    DrainWorker: [
      {
        command: DrainWorker.make({}),
        in: {
          ...absent,
          ready: [draining],
          "ready after a boot": [draining],
          "ready with a job": [draining],
          "ready without a slot": [draining],
        },
        otherwise: conflict,
      },
    ],
    UndrainWorker: [
      {
        command: UndrainWorker.make({}),
        in: { ...absent, draining: [undrained], "draining with a job": [undrained] },
        otherwise: conflict,
      },
    ],
    RetireWorker: [
      {
        command: RetireWorker.make({}),
        in: { ...absent, draining: [retiring], "draining with a job": [retiring] },
        otherwise: conflict,
      },
    ],
    ConfirmRetirement: [
      {
        command: ConfirmRetirement.make({}),
        in: { ...absent, retiring: [retired] },
        otherwise: conflict,
      },
    ],
    MarkWorkerDead: [
      {
        command: MarkWorkerDead.make({ reason }),
        in: {
          ...absent,
          retired: [],
          dead: [],
          "dead with a job": [],
          "dead since its boot": [],
        },
        otherwise: [dead],
      },
    ],
  })

  const worker = given(Worker)
  const known = (...events: ReadonlyArray<WorkerEvent>) =>
    events.reduce(Worker.evolve, Worker.initialState).context

  it("frees the slot of a job that ends", () => {
    worker(...states["ready without a slot"], ends)
      .when(AssignWorkerJob.make(slot))
      .thenEvents(takes)
    assert.deepEqual(known(...states["ready without a slot"], ends).running_jobs, [other])
  })
  it("accepts jobs again after its drain was cancelled, and keeps its running jobs", () => {
    assert.deepEqual(known(...states["draining with a job"], undrained).running_jobs, [slot])
    worker(...states["draining with a job"], undrained)
      .when(AssignWorkerJob.make(other))
      .thenEvents(WorkerJobAssigned.make(other))
  })
  it("can retire when its last job has ended", () =>
    worker(...states["retiring with a job"], ends)
      .when(ConfirmRetirement.make({}))
      .thenEvents(retired))
  it("has its image and the registration of its agent", () =>
    assert.deepEqual(known(...states["ready after a boot"]), {
      ...words,
      image: "image-2",
      running_jobs: [],
      reason: null,
    }))
  it("that the service did not boot has no image", () =>
    assert.isNull(known(...states.ready).image))
  it("has the reason of its death", () => {
    assert.equal(known(...states.dead).reason, reason)
    assert.equal(known(...states["dead since its boot"]).reason, reason)
  })

  it("fits in a snapshot with every slot taken and every field at its longest", () => {
    const name = longestName()
    const where = { project_id: longest_project_id, domain_id: longest_domain_id }
    const saved = assertStorable(Worker, [
      WorkerBootStarted.make({ ...where, image: name }),
      WorkerRegistered.make({
        ...where,
        hostname: name,
        image_version: name,
        engine_version: name,
        capacity_slots: capacity_slots_max,
      }),
      ...Array.from({ length: capacity_slots_max }, (_, i) =>
        WorkerJobAssigned.make({ job_id: jobId(i), fence: 2 ** 53 - 1 }),
      ),
    ])
    assert.lengthOf((saved.context as { running_jobs: Array<unknown> }).running_jobs, 128)
  })
})
