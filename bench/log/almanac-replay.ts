/** Almanac in the replay suite: the projector reads the log into a new read model. */
import { mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer, ManagedRuntime } from "effect"
import { connectBus, NatsConnection } from "#bus"
import { logJetStream } from "#journal"
import { readModel } from "#projections/read-model.ts"
import { sqlite } from "#sqlite"
import type { Contestant } from "../harness/contestant.ts"
import { mustHold, stream } from "./commit.ts"
import { blueprint } from "./worker.ts"

export const almanacReplay: Contestant = {
  name: "almanac",
  start: async ({ folder, nats }) => {
    if (!nats) throw new Error("no JetStream server")
    const path = join(folder, "read-models")
    const bus = Layer.effect(NatsConnection, connectBus({ servers: [nats], login: {} }))
    const app = Layer.merge(logJetStream({ stream }), sqlite(path)).pipe(Layer.provide(bus))
    const runtime = ManagedRuntime.make(app)

    const replay = Effect.gen(function* () {
      const { db } = yield* readModel(blueprint)
      const totals = yield* Effect.promise(() =>
        db
          .selectFrom("worker")
          .select(({ fn }) => [
            fn.countAll<number>().as("rows"),
            fn.sum<number>("running_jobs").as("running_jobs"),
            fn.sum<number>("position").as("positions"),
          ])
          .executeTakeFirstOrThrow(),
      )
      mustHold(totals)
    })
    const run = async () => {
      await runtime.runPromise(Effect.scoped(replay))
      rmSync(path, { recursive: true })
      mkdirSync(path)
    }
    return { run, stop: () => runtime.dispose() }
  },
}
