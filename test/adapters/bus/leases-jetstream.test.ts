import { assert } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { Leases } from "#actors/leases.ts"
import { leasesJetStream } from "#adapters/leases/jetstream.ts"
import { connectBus, NatsConnection, NatsServer } from "#bus"
import { leasesContract, type Place } from "../../contract/leases.ts"
import { describeNats } from "../../world/programs/nats.ts"
import { proxy } from "../../world/proxy.ts"

/** The shortest TTL that the bus supports. */
const ttl_ms = 1_000

let buckets = 0

/** A separate bucket on the shared server; each holder has its own connection. */
const place = (server: NatsServer["Service"]): Place => {
  const bucket = `leases-${++buckets}`
  return {
    ttl_ms,
    holder: Effect.fnUntraced(function* (holder) {
      const between = yield* proxy(server.servers[0] ?? "")
      const bus = yield* connectBus({ servers: [between.url], login: server.core })
      const through = leasesJetStream({ bucket, holder, ttl_ms }).pipe(
        Layer.provide(Layer.succeed(NatsConnection, bus)),
      )
      return {
        leases: yield* Effect.provide(Leases, yield* Layer.build(through)),
        cutOff: between.refuse,
        comeBack: between.accept,
      }
    }),
  }
}

describeNats("leases on JetStream", (it) => {
  leasesContract((name, body) =>
    it.effect(name, () =>
      Effect.flatMap(NatsServer, (server) => Effect.scoped(body(place(server)))).pipe(
        // The tests lose connections on purpose.
        Effect.provide(Logger.layer([])),
      ),
    ),
  )

  it.effect("a lease that is given back is marked as the key-value clients do", () =>
    Effect.gen(function* () {
      const server = yield* NatsServer
      const { jsm } = yield* NatsConnection
      const one = place(server)
      const { leases } = yield* one.holder("one")
      yield* leases.hold("work", Effect.succeed(1), () => Effect.void)
      const left = yield* Effect.promise(() =>
        jsm.streams.getMessage(`KV_leases-${buckets}`, {
          last_by_subj: `$KV.leases-${buckets}.work`,
        }),
      )
      assert.strictEqual(left?.header.get("KV-Operation"), "DEL")
    }).pipe(Effect.scoped),
  )
})
