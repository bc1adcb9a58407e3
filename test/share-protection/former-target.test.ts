import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { address } from "#actors/commands.ts"
import { dispatch } from "#actors/share-protection/dispatch.ts"
import { deleteTarget, queueTargetJob } from "#actors/share-protection/requests.ts"
import { Target } from "#actors/share-protection/target.ts"
import { ProjectId } from "#schemas/share-protection/id.ts"
import { type CreateTarget, UpdateTarget } from "#schemas/share-protection/target.ts"
import { ask, begin, conducted, dispatch_options, ready } from "./conducted.ts"
import { availableTarget, ownJobId, pendingTarget, targetId } from "./conducted-scenes.ts"
import { worker_id } from "./job-samples.ts"
import { project_id, secretRef, target } from "./samples.ts"

const dispatching = begin(dispatch(dispatch_options))

type More = Partial<typeof CreateTarget.Type>

const deleted = (number: number) => ask(...deleteTarget(targetId(number), target, []))

/** What the order for the enrollment of target 9 names, made with these fields. */
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
    "names the password of a deleted target of the bucket, once",
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
      `names none of ${what}`,
      Effect.gen(function* () {
        yield* dispatching
        yield* availableTarget(1)
        yield* deleted(1)
        assert.deepEqual(yield* offeredFor(more), [])
      }),
    )
  }

  for (const [what, another] of [
    ["has the bucket", availableTarget],
    ["waits to be enrolled there", pendingTarget],
  ] as const) {
    conducted(
      `names none while another target ${what}`,
      Effect.gen(function* () {
        yield* dispatching
        yield* availableTarget(1)
        yield* deleted(1)
        yield* another(2)
        assert.deepEqual(yield* offeredFor(), [])
      }),
    )
  }

  conducted(
    "names none of a target that is there, or was never enrolled",
    Effect.gen(function* () {
      yield* dispatching
      yield* pendingTarget(1)
      yield* ask(address(Target, targetId(1), UpdateTarget.make({ name: "renamed" })))
      yield* deleted(1)
      assert.deepEqual(yield* offeredFor(), [])
    }),
  )
})
