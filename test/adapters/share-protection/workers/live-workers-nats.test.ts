import { assert } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import {
  liveWorkersNats,
  publishedLiveWorkers,
} from "#adapters/share-protection/live-workers-nats.ts"
import { heartbeatSubject } from "#adapters/share-protection/worker-users.ts"
import { NatsConnection } from "#bus"
import { JobId, WorkerId } from "#schemas/share-protection/id.ts"
import { capacity_slots_max } from "#schemas/share-protection/worker.ts"
import { promises } from "../../../contract/share-protection/live-workers.ts"
import { describeNats } from "../../../world/programs/nats.ts"
import { uuid } from "../../../world/share-protection/samples.ts"

/** Polls the condition every 5 ms, for at most 5 s. */
const until = (holds: () => boolean) =>
  Effect.suspend(() => (holds() ? Effect.void : Effect.fail("not yet"))).pipe(
    Effect.delay(5),
    Effect.retry({ times: 1000 }),
    Effect.orDie,
  )

const hears = Layer.unwrap(
  Effect.map(NatsConnection, ({ connection }) => liveWorkersNats(connection)),
)
const tells = Layer.unwrap(
  Effect.map(NatsConnection, ({ connection }) => publishedLiveWorkers(connection)),
)

/** The listener or the publisher of one process. */
const one = (layer: typeof hears) =>
  Effect.map(Layer.build(Layer.fresh(layer)), (context) => Context.get(context, LiveWorkers))

const job = (n: number) => ({
  job_id: JobId.make(uuid(n)),
  progress: 100,
  bytes_done: Number.MAX_SAFE_INTEGER,
  bytes_total: Number.MAX_SAFE_INTEGER,
})

for (const [how, layer] of Object.entries({ hears, tells })) {
  describeNats(`LiveWorkers over NATS, one that ${how}`, (it) => {
    for (const [sentence, promise] of Object.entries(promises)) {
      it.effect(sentence, () => Effect.provide(promise, layer, { local: true }))
    }
  })
}

describeNats("LiveWorkers over NATS", (it) => {
  it.effect("carries the longest heartbeat from a worker to every process", () =>
    Effect.gen(function* () {
      const worker_id = WorkerId.make("w".repeat(64))
      const [server, other, worker] = [yield* one(hears), yield* one(hears), yield* one(tells)]
      const jobs = Array.from({ length: capacity_slots_max }, (_, n) => job(n))
      yield* worker.publish({ worker_id, jobs })
      for (const ears of [server, other]) {
        yield* until(() => ears.find(worker_id) !== undefined)
        assert.deepEqual(ears.find(worker_id)?.jobs, jobs)
      }
    }),
  )

  it.effect("passes over what is no heartbeat, and what is said for another worker", () =>
    Effect.gen(function* () {
      const [ears, mouth] = [yield* one(hears), yield* one(tells)]
      const { connection } = yield* NatsConnection
      const worker_id = WorkerId.make("worker-1")
      const subject = heartbeatSubject(worker_id)
      const bad = [
        "",
        "{}",
        "null",
        '{"worker_id":"a.b","jobs":[]}',
        JSON.stringify({ worker_id, jobs: [{ ...job(1), progress: 101 }] }),
        JSON.stringify({ worker_id: "worker-2", jobs: [] }),
        JSON.stringify({ worker_id, jobs: [], filler: "x".repeat(100_000) }),
      ]
      for (const text of bad) connection.publish(subject, text)
      const last = WorkerId.make("worker-3")
      yield* mouth.publish({ worker_id: last, jobs: [] })
      yield* until(() => ears.find(last) !== undefined)
      assert.isUndefined(ears.find(worker_id))
      assert.isUndefined(ears.find("worker-2"))
    }),
  )
})
