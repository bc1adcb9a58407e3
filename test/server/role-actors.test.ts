import { Effect, Exit, Layer, Scope } from "effect"
import { host } from "#actors/host.ts"
import { connectBus, NatsConnection, NatsServer } from "#bus"
import { logMemory } from "#journal"
import { actors } from "#server/roles/actors.ts"
import { settingsWith } from "../world/http.ts"
import { describeNats } from "../world/programs/nats.ts"
import { proxy } from "../world/proxy.ts"

/** Each subject may take 5 s to close: sequentially they took 16 s, and 42 s in total. */
const stop_ms_max = 12_000

describeNats("a process that executes commands", (it) => {
  it.effect(
    "ends soon, even if the bus is paused",
    () =>
      Effect.gen(function* () {
        const { core, servers } = yield* NatsServer
        const { url, swallow } = yield* proxy(servers[0] ?? "")
        const bus = yield* connectBus({ servers: [url], login: core })
        const own = yield* Scope.make()
        yield* actors(settingsWith()).pipe(
          Effect.provideService(NatsConnection, bus),
          Scope.provide(own),
        )
        swallow()
        yield* Effect.timeout(Scope.close(own, Exit.void), stop_ms_max)
      }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(host, logMemory))),
    60_000,
  )
})
