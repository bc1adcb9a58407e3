/** Contract of every adapter that sends commands to agents: in one process, or over the bus. */
import { assert } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import type { Agent, Agents } from "#actors/share-protection/ports/agents.ts"
import { WorkerId } from "#schemas/share-protection/id.ts"
import type { JobOrder } from "#schemas/share-protection/job-order.ts"
import { WorkerUnavailable } from "#schemas/share-protection/rejection.ts"
import { largestOrders, orders } from "../../world/share-protection/order-samples.ts"

type Test = (
  name: string,
  body: (
    one: Agents["Service"],
    other: Agents["Service"],
  ) => Effect.Effect<void, unknown, Scope.Scope>,
) => void

const worker_id = WorkerId.make("worker-1")
const [order] = orders

/** An agent that records its requests. */
const listener = (answers: Partial<Agent> = {}) => {
  const offered: Array<JobOrder> = []
  const cancelled: Array<readonly [string, number]> = []
  const agent: Agent = {
    offer: (order) => Effect.asVoid(Effect.sync(() => offered.push(order))),
    cancel: (job_id, fence) =>
      Effect.as(
        Effect.sync(() => cancelled.push([job_id, fence])),
        true,
      ),
    ...answers,
  }
  return { agent, offered, cancelled }
}

const isUnavailable = Effect.fnUntraced(function* <A>(effect: Effect.Effect<A, unknown>) {
  assert.instanceOf(yield* Effect.flip(effect), WorkerUnavailable)
})

/**
 * Runs the suite. `one` and `other` are two ends of the same bus, whose timeout is at most one
 * second.
 */
export const agentsContract = (test: Test) => {
  test("carries each order as it is to the worker's agent", (one, other) =>
    Effect.gen(function* () {
      const { agent, offered } = listener()
      yield* other.attach(worker_id, agent)
      for (const order of [...orders, ...largestOrders]) yield* one.offer(worker_id, order)
      assert.deepEqual(offered, [...orders, ...largestOrders])
    }))

  test("answers as the agent does", (one, other) =>
    Effect.gen(function* () {
      const detail = "All 2 slots are busy."
      const refusing = listener({
        offer: () => Effect.fail(new WorkerUnavailable({ detail })),
        cancel: () => Effect.succeed(false),
      })
      yield* other.attach(worker_id, refusing.agent)
      const refusal: unknown = yield* Effect.flip(one.offer(worker_id, order))
      assert.deepEqual(refusal, new WorkerUnavailable({ detail }))
      assert.isFalse(yield* one.cancel(worker_id, order.job_id, 7))
      const taking = listener()
      const another = WorkerId.make("worker-2")
      yield* other.attach(another, taking.agent)
      assert.isTrue(yield* one.cancel(another, order.job_id, 7))
      assert.deepEqual(taking.cancelled, [[order.job_id, 7]])
    }))

  test("asks the worker that is named, and no other", (one, other) =>
    Effect.gen(function* () {
      const [first, second] = [listener(), listener()]
      yield* other.attach(worker_id, first.agent)
      yield* other.attach(WorkerId.make("worker-2"), second.agent)
      yield* one.offer(WorkerId.make("worker-2"), order)
      assert.deepEqual([first.offered, second.offered], [[], [order]])
    }))

  test("fails where no agent listens, any more or at all", (one, other) =>
    Effect.gen(function* () {
      yield* isUnavailable(one.offer(worker_id, order))
      yield* isUnavailable(one.cancel(worker_id, order.job_id, 1))
      const { agent, offered } = listener()
      yield* Effect.scoped(other.attach(worker_id, agent))
      yield* isUnavailable(one.offer(worker_id, order))
      assert.deepEqual(offered, [])
    }))

  test("fails where the agent does not answer in time", (one, other) =>
    Effect.gen(function* () {
      const silent = listener({ offer: () => Effect.never, cancel: () => Effect.never })
      yield* other.attach(worker_id, silent.agent)
      yield* isUnavailable(one.offer(worker_id, order))
      yield* isUnavailable(one.cancel(worker_id, order.job_id, 1))
    }))

  test("carries many at once", (one, other) =>
    Effect.gen(function* () {
      const { agent, offered } = listener()
      yield* other.attach(worker_id, agent)
      const fences = Array.from({ length: 50 }, (_, fence) => fence)
      yield* Effect.forEach(fences, (fence) => one.offer(worker_id, { ...order, fence }), {
        concurrency: "unbounded",
        discard: true,
      })
      assert.sameMembers(
        offered.map(({ fence }) => fence),
        fences,
      )
    }))
}
