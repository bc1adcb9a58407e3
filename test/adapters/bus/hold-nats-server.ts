/**
 * Run by a test: locks a folder, runs its server, stores a message, and prints the server's process
 * id.
 */
import { Effect, Layer, Logger } from "effect"
import { ownServerLayer } from "#adapters/bus/own-server.ts"
import { DataFolder } from "#adapters/data-folder/lock.ts"
import { NatsConnection, NatsServer } from "#bus"

const [, , data_dir = ""] = process.argv

const hold = Effect.gen(function* () {
  const { js, jsm } = yield* NatsConnection
  yield* Effect.promise(() => jsm.streams.add({ name: "KEPT", subjects: ["kept.>"] }))
  yield* Effect.promise(() => js.publish("kept.x", "1"))
  const server = yield* NatsServer
  process.stdout.write(`${yield* server.pid}\n`)
  yield* Effect.never
})

const layer = NatsConnection.layer.pipe(
  Layer.provideMerge(ownServerLayer()),
  Layer.provide(DataFolder.layer(data_dir)),
  // Standard output is reserved for the one line that the test waits for.
  Layer.provideMerge(Logger.layer([])),
)

await Effect.runPromise(Effect.provide(hold, layer))
