import { assert } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Agents } from "#actors/share-protection/ports/agents.ts"
import { agentsNats } from "#adapters/share-protection/agents-nats.ts"
import { agentSubject } from "#adapters/share-protection/worker-users.ts"
import { connectBus, NatsServer } from "#bus"
import { WorkerId } from "#schemas/share-protection/id.ts"
import { job_order_bytes_max } from "#schemas/share-protection/job-order.ts"
import { agentsContract } from "../../../contract/share-protection/agents.ts"
import { describeNats } from "../../../world/programs/nats.ts"
import { orders } from "../../../world/share-protection/order-samples.ts"

const [order] = orders
const worker_id = WorkerId.make("worker-1")
const patience_s = 0.3

const connected = Effect.gen(function* () {
  const { servers, core } = yield* NatsServer
  return (yield* connectBus({ servers, login: core })).connection
})

/** One end of the bus: a process with its own connection. */
const end = Effect.fnUntraced(function* (command_timeout_seconds = patience_s) {
  const layer = agentsNats(yield* connected, { command_timeout_seconds })
  return Context.get(yield* Layer.build(layer), Agents)
})

const willing = { offer: () => Effect.void, cancel: () => Effect.succeed(true) }

describeNats("agents over NATS", (it) => {
  agentsContract((name, body) =>
    it.effect(name, () =>
      Effect.gen(function* () {
        yield* body(yield* end(), yield* end())
      }).pipe(Effect.scoped),
    ),
  )

  it.effect("fails at once if no agent listens", () =>
    Effect.gen(function* () {
      const patient = yield* end(3600)
      const failure = yield* Effect.flip(patient.offer(worker_id, order))
      assert.include(failure.detail, "is not connected to the bus")
    }).pipe(Effect.timeout("5 seconds")),
  )

  it.effect("refuses what is no order, and what is too long for one", () =>
    Effect.gen(function* () {
      const offered: Array<unknown> = []
      const offer = (request: unknown) => Effect.sync(() => void offered.push(request))
      yield* (yield* end()).attach(worker_id, { ...willing, offer })
      const connection = yield* connected
      const long = JSON.stringify({ ...order, filler: "x".repeat(job_order_bytes_max + 1024) })
      for (const text of ["", "{}", "null", JSON.stringify({ ...order, fence: -1 }), long]) {
        for (const what of ["offer", "cancel"]) {
          const answer = yield* Effect.promise(() =>
            connection.request(agentSubject(worker_id, what), text, { timeout: 5000 }),
          )
          assert.isFalse(answer.json<{ taken: boolean }>().taken)
        }
      }
      assert.deepEqual(offered, [])
    }),
  )

  it.effect("is refused by an agent that answers nonsense", () =>
    Effect.gen(function* () {
      const connection = yield* connected
      connection.subscribe(agentSubject(worker_id, "*"), {
        callback: (_, message) => void message.respond("yes"),
      })
      yield* Effect.promise(() => connection.flush())
      const failure = yield* Effect.flip((yield* end()).offer(worker_id, order))
      assert.include(failure.detail, "invalid reply")
    }).pipe(Effect.scoped),
  )

  it.effect("answers though the agent meets something unexpected", () =>
    Effect.gen(function* () {
      const broken = { offer: () => Effect.die("broken"), cancel: () => Effect.die("broken") }
      yield* (yield* end()).attach(worker_id, broken)
      const failure = yield* Effect.flip((yield* end(60)).offer(worker_id, order))
      assert.include(failure.detail, "see its log")
    }).pipe(Effect.scoped, Effect.timeout("5 seconds")),
  )
})
