import { createServer, type Server } from "node:net"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { connectBus } from "#bus"

it.live("a connection is given up at once where a server takes connections and says nothing", () =>
  Effect.gen(function* () {
    let taken = 0
    const first = yield* Deferred.make<void>()
    const mute = yield* Effect.acquireRelease(
      Effect.callback<Server>((resume) => {
        const server = createServer((socket) => {
          socket.on("error", () => socket.destroy())
          taken += 1
          Deferred.doneUnsafe(first, Effect.void)
        })
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      (server) => Effect.sync(() => server.close()),
    )
    const address = mute.address()
    const port = typeof address === "object" ? address?.port : 0
    const servers = [`nats://127.0.0.1:${port}`]
    const connecting = yield* Effect.forkChild(Effect.scoped(connectBus({ servers, login: {} })))
    yield* Deferred.await(first)
    yield* Fiber.interrupt(connecting)
    assert.equal(taken, 1)
  }).pipe(Effect.scoped),
)
