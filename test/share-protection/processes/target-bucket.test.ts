import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { address } from "#actors/commands.ts"
import { dispatch } from "#actors/share-protection/dispatch/dispatch.ts"
import {
  cancelJob,
  failJob,
  type JobFailure,
  settleJob,
} from "#actors/share-protection/jobs/transitions.ts"
import { deleteTarget, queueTargetJob } from "#actors/share-protection/requests.ts"
import { Target } from "#actors/share-protection/target.ts"
import { ProjectId } from "#schemas/share-protection/id.ts"
import type { JobOrder } from "#schemas/share-protection/job-order.ts"
import { type CreateTarget, UpdateTarget } from "#schemas/share-protection/target.ts"
import {
  ask,
  begin,
  conducted,
  dispatch_options,
  ready,
} from "../../world/share-protection/conducted.ts"
import {
  availableTarget,
  finish,
  ownJobId,
  pendingTarget,
  start,
  targetId,
} from "../../world/share-protection/conducted-scenes.ts"
import { factsOf } from "../../world/share-protection/deployment.ts"
import { worker_id } from "../../world/share-protection/job-samples.ts"
import { project_id, secretRef, target } from "../../world/share-protection/samples.ts"

const dispatching = begin(dispatch(dispatch_options))

type More = Partial<typeof CreateTarget.Type>

const deleted = (number: number) => ask(...deleteTarget(targetId(number), target, []))

/** The enrollment order of target 9 with these fields. */
const offeredFor = Effect.fnUntraced(function* (more: More = {}) {
  const { offered } = yield* ready(worker_id)
  yield* pendingTarget(9, { ...more, job_id: ownJobId(9) })
  const of = more.project_id === undefined ? project_id : more.project_id
  yield* ask(queueTargetJob(ownJobId(9), "target_enroll", targetId(9), of))
  const [order] = offered
  assert(order?.job_type === "target_enroll")
  return order.former_password_refs
})

const ref = secretRef(3)

describe("the order for an enrollment", () => {
  conducted(
    "has the password of a deleted target of the bucket, once",
    Effect.gen(function* () {
      yield* dispatching
      for (const number of [1, 2]) {
        yield* availableTarget(number)
        yield* deleted(number)
      }
      assert.deepEqual(yield* offeredFor(), [ref])
    }),
  )

  const others: ReadonlyArray<readonly [string, More]> = [
    ["another bucket", { bucket: "another" }],
    ["another endpoint", { endpoint: "https://other.example.org" }],
    ["another project", { project_id: ProjectId.make("f".repeat(32)) }],
  ]
  for (const [what, more] of others) {
    conducted(
      `has no password of ${what}`,
      Effect.gen(function* () {
        yield* dispatching
        yield* availableTarget(1)
        yield* deleted(1)
        assert.deepEqual(yield* offeredFor(more), [])
      }),
    )
  }

  conducted(
    "has no password of an existing target, or of one that was never enrolled",
    Effect.gen(function* () {
      yield* dispatching
      yield* pendingTarget(1)
      yield* ask(address(Target, targetId(1), UpdateTarget.make({ name: "renamed" })))
      yield* deleted(1)
      assert.deepEqual(yield* offeredFor(), [])
    }),
  )
})

const another_project = { project_id: ProjectId.make("f".repeat(32)) }

/** Registers the target with that number, as a request does. */
const registered = Effect.fnUntraced(function* (number: number, more: More = {}) {
  const fields = { ...target, ...more, job_id: ownJobId(number) }
  yield* pendingTarget(number, fields)
  yield* ask(queueTargetJob(ownJobId(number), "target_enroll", targetId(number), fields.project_id))
})

const moved: JobFailure = {
  code: "svc.engine_error",
  detail: "It was moved.",
  category: "operator_action_required",
  wrote_nothing: true,
}

/** The targets that the worker enrolled, and whether another target owned the bucket. */
const toldOf = (offered: ReadonlyArray<JobOrder>) =>
  offered.map((order) => [order.target_id, order.job_type === "target_enroll" && order.is_taken])

describe("a bucket that is registered twice", () => {
  const seconds: ReadonlyArray<readonly [string, More]> = [
    ["by the same project", {}],
    ["by another project", another_project],
    ["under another spelling of its endpoint", { endpoint: "http://S3.example.org:80/" }],
  ]
  for (const [what, more] of seconds) {
    conducted(
      `${what} is enrolled once, and the second one fails with that reason`,
      Effect.gen(function* () {
        yield* dispatching
        yield* registered(1)
        yield* registered(2, more)
        const { offered } = yield* ready(worker_id)
        assert.deepEqual(toldOf(offered), [[targetId(1), false]])
        yield* finish(ownJobId(1))
        assert.deepEqual(toldOf(offered.slice(1)), [[targetId(2), true]])
      }),
    )
  }

  conducted(
    "is the second one's where the first enrollment has failed, with what it had before",
    Effect.gen(function* () {
      yield* dispatching
      yield* availableTarget(3)
      yield* deleted(3)
      yield* registered(1)
      yield* registered(2)
      const { offered } = yield* ready(worker_id)
      yield* ask(...cancelJob(yield* factsOf(ownJobId(1))))
      assert.equal(offered.length, 2)
      assert.deepInclude(offered[1], {
        target_id: targetId(2),
        is_taken: false,
        former_password_refs: [ref],
      })
    }),
  )

  conducted(
    "waits for a cancelled enrollment that still runs, also after a restart",
    Effect.gen(function* () {
      const before = yield* dispatching
      yield* registered(1)
      yield* registered(2)
      const listener = yield* ready(worker_id)
      listener.has_it = true
      const job = yield* factsOf(ownJobId(1))
      yield* start(ownJobId(1), "connecting_repository")
      const { hold } = yield* factsOf(ownJobId(1))
      assert(hold !== null)
      yield* ask(...cancelJob(job))
      yield* Fiber.interrupt(before)
      yield* dispatching
      assert.equal(listener.offered.length, 1)
      yield* ask(...settleJob(job, hold))
      assert.deepEqual(toldOf(listener.offered.slice(1)), [[targetId(2), false]])
    }),
  )

  conducted(
    "waits for an enrollment that started before its target was moved",
    Effect.gen(function* () {
      yield* dispatching
      yield* registered(1)
      const { offered } = yield* ready(worker_id)
      yield* start(ownJobId(1))
      const { hold } = yield* factsOf(ownJobId(1))
      assert(hold !== null)
      yield* ask(address(Target, targetId(1), UpdateTarget.make({ bucket: "another" })))
      yield* registered(2)
      yield* registered(3, { bucket: "another" })
      assert.equal(offered.length, 1)
      yield* ask(...failJob(yield* factsOf(ownJobId(1)), hold, moved))
      assert.deepEqual(toldOf(offered.slice(1)), [
        [targetId(2), false],
        [targetId(3), false],
      ])
    }),
  )

  conducted(
    "does not block another bucket",
    Effect.gen(function* () {
      yield* dispatching
      yield* registered(1)
      yield* registered(2, { bucket: "another" })
      const { offered } = yield* ready(worker_id)
      assert.equal(offered.length, 2)
    }),
  )
})
