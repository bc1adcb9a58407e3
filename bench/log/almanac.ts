/** Almanac in the command suite: Commands.send, the wait for the position, the row. No HTTP. */
import { randomUUID } from "node:crypto"
import { join } from "node:path"
import { Effect, Layer, ManagedRuntime, References, Schema, Scope } from "effect"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { ownServerLayer } from "#adapters/bus/own-server.ts"
import { DataFolder } from "#adapters/data-folder/lock.ts"
import { NatsConnection } from "#bus"
import { logJetStream } from "#journal"
import { readModel } from "#projections/read-model.ts"
import { sqlite } from "#sqlite"
import type { Contestant } from "../harness/contestant.ts"
import { type Command, eventOf, inTurn, mustShow, type Worker as Row } from "./work.ts"
import { blueprint, Worker } from "./worker.ts"

const app = (folder: string) =>
  host.pipe(
    Layer.provideMerge(logJetStream({ stream: "ALMANAC_LOG" })),
    Layer.provide(NatsConnection.layer),
    Layer.provide(ownServerLayer()),
    Layer.provide(DataFolder.layer(folder)),
    Layer.merge(sqlite(join(folder, "read-models"))),
    // As in a server without a trace collector.
    Layer.merge(Layer.succeed(References.TracerEnabled, false)),
  )

const decode = Schema.decodeUnknownSync(Worker.command)

export const almanac: Contestant = {
  name: "almanac",
  start: async ({ folder }) => {
    const runtime = ManagedRuntime.make(app(folder))
    const model = await runtime.runPromise(Scope.provide(readModel(blueprint), runtime.scope))

    // Compiled once, because the other contestants prepare their statements once.
    const read = model.db
      .selectFrom("worker")
      .select(["worker_id", "version", "running_jobs"])
      .where("worker_id", "=", "")
      .compile()

    const send = Effect.fnUntraced(function* (job: Command) {
      const commands = yield* Commands
      const now = new Date()
      const command = decode({ ...eventOf(job, now), type: job.type })
      const origin = { command_id: randomUUID(), actor: "bench", at: now.toISOString() }
      yield* model.waitFor(yield* commands.send(origin, address(Worker, job.worker_id, command)))
      const query = { ...read, parameters: [job.worker_id] }
      const { rows } = yield* Effect.promise(() => model.db.executeQuery<Row>(query))
      return rows[0]
    })
    const run = inTurn(async (job) => mustShow(await runtime.runPromise(send(job)), job))
    return { run, stop: () => runtime.dispose() }
  },
}
