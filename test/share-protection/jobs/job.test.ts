import { assert, describe, it } from "@effect/vitest"
import { Job, type JobContext, machine } from "#actors/share-protection/job.ts"
import {
  JobAssigned,
  JobCancelled,
  JobCompleted,
  type JobEvent,
  JobFailed,
  JobQueued,
  JobRecast,
  JobRetried,
  JobUnassigned,
} from "#events/share-protection/job.ts"
import { BackupId, WorkerId } from "#schemas/share-protection/id.ts"
import {
  AdvanceJob,
  AssignJob,
  CancelJob,
  CompleteJob,
  FailJob,
  forgotten_max,
  JobState,
  type JobStep,
  job_steps,
  QueueJob,
  RecastJob,
  RejectJob,
  RetryJob,
  StartJob,
  UnassignJob,
} from "#schemas/share-protection/job.ts"
import { given } from "../../world/given.ts"
import { histories } from "../../world/histories.ts"
import {
  about,
  advanced,
  assigned,
  failed,
  failure,
  hold,
  other_hold,
  queued,
  rejected,
  started,
  until,
} from "../../world/share-protection/job-samples.ts"
import {
  jobId,
  longest,
  longest_project_id as project_id,
} from "../../world/share-protection/samples.ts"
import { assertStorable, everyState } from "../../world/state-table.ts"

const cancelled = JobCancelled.make({})
const completed = JobCompleted.make(hold)
const retried = (attempt: number, automatic = false) => JobRetried.make({ attempt, automatic })
const recast = (count: number) => JobRecast.make({ count })
const refused = JobFailed.make({ ...failure, worker_id: null, fence: null })

const states = {
  absent: [],
  queued: [queued],
  assigned: [queued, assigned],
  provisioning_network: until("provisioning_network"),
  provisioning_source: until("provisioning_source"),
  connecting_repository: until("connecting_repository"),
  transferring: until("transferring"),
  finalizing: until("finalizing"),
  releasing: until("releasing"),
  available: [...until("releasing"), completed],
  error: [...until("transferring"), failed],
  rejected: [queued, rejected],
  "cancelled while it ran": [...until("transferring"), cancelled],
  "cancelled before it was taken": [queued, assigned, cancelled],
  "cancelled before it was given": [queued, cancelled],
} satisfies Record<string, ReadonlyArray<JobEvent>>

const conflict = "svc.conflict" as const
const illegal = "svc.invalid_state_transition" as const
const absent = { absent: "svc.not_found" } as const

/** The same outcome in each of the six steps. */
const running = <const Outcome>(outcome: Outcome) => ({
  provisioning_network: outcome,
  provisioning_source: outcome,
  connecting_repository: outcome,
  transferring: outcome,
  finalizing: outcome,
  releasing: outcome,
})

/** The outcome of advancing to a step, by the job's current step. */
const stepping = (to: JobStep) =>
  Object.fromEntries(
    job_steps.map((step, i) => {
      if (step === to) return [step, []]
      return [step, job_steps[i + 1] === to ? [advanced(to)] : illegal]
    }),
  )

const failures = (event: JobEvent) => ({ ...absent, ...running([event]) })

describe("a job", () => {
  everyState(Job, states, {
    QueueJob: [{ command: QueueJob.make(about), in: { absent: [queued] }, otherwise: conflict }],
    AssignJob: [
      {
        command: AssignJob.make(hold),
        in: { ...absent, queued: [assigned] },
        otherwise: conflict,
      },
      {
        with: "to another",
        command: AssignJob.make(other_hold),
        in: { ...absent, queued: [JobAssigned.make(other_hold)] },
        otherwise: conflict,
      },
    ],
    UnassignJob: [
      {
        command: UnassignJob.make(hold),
        in: {
          ...absent,
          assigned: [JobUnassigned.make(hold)],
          "cancelled before it was taken": [],
        },
        otherwise: conflict,
      },
      {
        with: "from another worker",
        command: UnassignJob.make({ ...hold, worker_id: other_hold.worker_id }),
        in: absent,
        otherwise: conflict,
      },
      {
        with: "by another fence",
        command: UnassignJob.make({ ...hold, fence: 2 }),
        in: absent,
        otherwise: conflict,
      },
    ],
    StartJob: [
      {
        command: StartJob.make(hold),
        // Another run of the same order started the job and may continue.
        in: { ...absent, assigned: [started], ...running(illegal) },
        otherwise: conflict,
      },
      {
        with: "by another worker",
        command: StartJob.make({ ...hold, worker_id: other_hold.worker_id }),
        in: absent,
        otherwise: conflict,
      },
      {
        with: "by an earlier fence",
        command: StartJob.make({ ...hold, fence: 0 }),
        in: absent,
        otherwise: conflict,
      },
    ],
    AdvanceJob: [
      ...job_steps.map((to) => ({
        with: `to ${to}`,
        command: AdvanceJob.make({ ...hold, to }),
        in: { ...absent, assigned: illegal, ...stepping(to) },
        otherwise: conflict,
      })),
      {
        with: "by another worker, to the next step",
        command: AdvanceJob.make({ ...other_hold, fence: 1, to: "finalizing" }),
        in: absent,
        otherwise: conflict,
      },
      {
        with: "by an earlier fence, to the present step",
        command: AdvanceJob.make({ ...hold, fence: 0, to: "transferring" }),
        in: absent,
        otherwise: conflict,
      },
    ],
    CompleteJob: [
      {
        command: CompleteJob.make(hold),
        in: { ...absent, assigned: illegal, ...running(illegal), releasing: [completed] },
        otherwise: conflict,
      },
      {
        with: "by another worker",
        command: CompleteJob.make({ ...other_hold, fence: 1 }),
        in: absent,
        otherwise: conflict,
      },
      {
        with: "by another fence",
        command: CompleteJob.make({ ...hold, fence: 2 }),
        in: absent,
        otherwise: conflict,
      },
    ],
    FailJob: [
      {
        command: FailJob.make({ ...hold, ...failure }),
        in: failures(failed),
        otherwise: conflict,
      },
      {
        with: "by another worker",
        command: FailJob.make({ ...other_hold, fence: 1, ...failure }),
        in: absent,
        otherwise: conflict,
      },
      {
        with: "by another fence",
        command: FailJob.make({ ...hold, fence: 2, ...failure }),
        in: absent,
        otherwise: conflict,
      },
    ],
    RejectJob: [
      {
        command: RejectJob.make(failure),
        in: { ...absent, queued: [refused] },
        otherwise: conflict,
      },
    ],
    CancelJob: [
      {
        command: CancelJob.make({}),
        in: {
          ...failures(cancelled),
          queued: [cancelled],
          assigned: [cancelled],
        },
        otherwise: conflict,
      },
    ],
    RetryJob: [
      {
        command: RetryJob.make({ automatic: false }),
        in: {
          ...absent,
          error: [retried(2)],
          rejected: [retried(2)],
          "cancelled while it ran": [retried(2)],
          "cancelled before it was taken": [retried(2)],
          "cancelled before it was given": [retried(2)],
        },
        otherwise: conflict,
      },
      {
        with: "by itself",
        command: RetryJob.make({ automatic: true }),
        in: { ...absent, error: [retried(2, true)], rejected: [retried(2, true)] },
        otherwise: conflict,
      },
    ],
    RecastJob: [
      {
        command: RecastJob.make({}),
        in: { ...absent, queued: [recast(1)], assigned: [recast(1)] },
        otherwise: [],
      },
    ],
  })

  it("reaches exactly the documented states", () => {
    const events = [
      queued,
      assigned,
      started,
      JobUnassigned.make(hold),
      completed,
      failed,
      refused,
      cancelled,
      retried(2),
      recast(1),
      ...job_steps.map(advanced),
    ]
    const met = new Set([...histories(machine, events, 9)].map(({ state }) => state.value))
    assert.deepEqual(met, new Set(JobState.literals))
  })
})

const job = given(Job)
const by_itself = RetryJob.make({ automatic: true })
const known = (...events: ReadonlyArray<JobEvent>): JobContext =>
  events.reduce(Job.evolve, Job.initialState).context

/** One more attempt that a worker accepted and failed. */
const again = (attempt: number, automatic: boolean) =>
  [retried(attempt, automatic), assigned, started, failed] as const

describe("a retry", () => {
  it("happens automatically up to the maximum of the policy", () => {
    job(...states.error, ...again(2, true))
      .when(by_itself)
      .thenEvents(retried(3, true))
    job(...states.error, ...again(2, true), ...again(3, true))
      .when(by_itself)
      .thenRejected(conflict)
  })
  it("by an operator does not count as automatic", () =>
    job(...states.error, ...again(2, false), ...again(3, true))
      .when(by_itself)
      .thenEvents(retried(4, true)))
  it("by an operator is possible after the automatic ones are used up", () =>
    job(...states.error, ...again(2, true), ...again(3, true))
      .when(RetryJob.make({ automatic: false }))
      .thenEvents(retried(4)))
  it("is not automatic if the policy allows none", () =>
    job(JobQueued.make({ ...about, max_retries: 0 }), assigned, started, failed)
      .when(by_itself)
      .thenRejected(conflict))
  it("is not automatic if the attempt may have written", () =>
    job(queued, assigned, started, JobFailed.make({ ...failed, wrote_nothing: false }))
      .when(by_itself)
      .thenRejected(conflict))
  it("of a cancelled job clears the cancellation: its next failure is retried automatically", () =>
    job(...states["cancelled before it was given"], ...again(2, false))
      .when(by_itself)
      .thenEvents(retried(3, true)))
  it("is not automatic if any earlier attempt may have written", () => {
    const may_have = JobFailed.make({ ...failed, wrote_nothing: false })
    for (const first of [[queued, assigned, started, may_have], states["cancelled while it ran"]]) {
      job(...first, ...again(2, false))
        .when(by_itself)
        .thenRejected(conflict)
    }
  })
  it("keeps of the previous attempt only whether it may have written", () =>
    assert.deepEqual(known(...states["cancelled while it ran"], retried(2)), {
      ...known(queued),
      attempt: 2,
      may_have_written: true,
    }))
  it("rejects late reports of the previous attempt's worker", () => {
    const second = [...states.error, retried(2), JobAssigned.make(other_hold)] as const
    job(...second)
      .when(StartJob.make(hold))
      .thenRejected(conflict)
    job(...second)
      .when(UnassignJob.make(hold))
      .thenRejected(conflict)
    job(...second)
      .when(UnassignJob.make(other_hold))
      .thenEvents(JobUnassigned.make(other_hold))
  })
})

describe("the context of a job", () => {
  it("has its last worker and its error after its end", () =>
    assert.deepEqual(known(...states.error), {
      ...known(queued),
      ...hold,
      started: true,
      error: failure,
    }))
  it("has the tenant's error category after a cancellation, which may have written", () =>
    assert.deepEqual(known(...states["cancelled before it was given"]), {
      ...known(queued),
      cancelled: true,
      error: {
        code: "svc.conflict",
        detail: "cancelled",
        category: "tenant_action_required",
        wrote_nothing: false,
      },
    }))
  it("counts recasts", () => assert.equal(known(queued, recast(1), assigned, recast(2)).recasts, 2))
  it("does not keep a worker that did not accept the job", () =>
    assert.deepEqual(known(queued, assigned, JobUnassigned.make(hold)), known(queued)))

  it("fits in a snapshot with every field at its longest", () => {
    const forget = Array.from({ length: forgotten_max }, (_, i) => ({
      backup_id: BackupId.make(jobId(i)),
      engine_snapshot_id: "f".repeat(64),
    }))
    const longest_hold = { worker_id: WorkerId.make("w".repeat(64)), fence: 2 ** 53 - 1 }
    const max_retries = 2 ** 53 - 1
    const error = {
      ...failure,
      code: "svc.network_strategy_precondition",
      detail: longest(1024),
      wrote_nothing: false,
    } as const
    const job_type = "repo_format_upgrade" as const
    assertStorable(Job, [
      JobQueued.make({ ...about, job_type, project_id, forget, max_retries }),
      JobAssigned.make(longest_hold),
      { ...started, ...longest_hold },
      JobFailed.make({ ...error, ...longest_hold }),
    ])
  })
})
