import { assert } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { type Compute, Images } from "#actors/share-protection/ports/compute.ts"
import { imagesNats, serveImages } from "#adapters/share-protection/images-nats.ts"
import { connectBus, NatsServer } from "#bus"
import { BackendUnavailable } from "#schemas/share-protection/rejection.ts"
import { describeNats } from "../../../world/programs/nats.ts"

const subject = "conductor.share-protection.image"

const connected = Effect.gen(function* () {
  const { servers, core } = yield* NatsServer
  return (yield* connectBus({ servers, login: core })).connection
})

/** A process that boots no machines. */
const asker = Effect.gen(function* () {
  return Context.get(yield* Layer.build(imagesNats(yield* connected)), Images)
})

const known = { name: "image ü", properties: { svc_worker_image: true, engine_version: "0.18.0" } }

/** A conductor that runs until the scope closes; it has one image. */
const conductor = Effect.fnUntraced(function* (
  image: Compute["Service"]["image"] = (name) =>
    Effect.succeed(name === known.name ? known : undefined),
) {
  const connection = yield* connected
  yield* serveImages(connection, { image })
  yield* Effect.promise(() => connection.flush())
})

describeNats("images of the conductor", (it) => {
  it.effect("are found by name, and an unknown one is distinguished from an outage", () =>
    Effect.gen(function* () {
      yield* conductor((name) =>
        name === "down"
          ? Effect.fail(new BackendUnavailable({ detail: "Glance is down." }))
          : Effect.succeed(name === known.name ? known : undefined),
      )
      const { image } = yield* asker
      assert.deepEqual(yield* image(known.name), known)
      assert.isUndefined(yield* image("another"))
      const failure = yield* Effect.flip(image("down"))
      assert.strictEqual(failure.detail, "Glance is down.")
    }).pipe(Effect.scoped),
  )

  it.effect("wait briefly for a newly elected conductor, but not indefinitely", () =>
    Effect.gen(function* () {
      const { image } = yield* asker
      const ended = yield* Scope.make()
      yield* Scope.provide(conductor(), ended)
      assert.deepEqual(yield* image(known.name), known)
      yield* Scope.close(ended, Exit.void)
      const nobody = yield* Effect.flip(image(known.name))
      assert.strictEqual(nobody.code, "svc.backend_unavailable")
      const fiber = yield* Effect.forkChild(image(known.name))
      yield* Effect.sleep("150 millis")
      yield* conductor()
      assert.deepEqual(yield* Fiber.join(fiber), known)
    }).pipe(Effect.scoped, Effect.timeout("30 seconds")),
  )

  it.effect("are not sent for a malformed request, nor read from a malformed reply", () =>
    Effect.gen(function* () {
      const connection = yield* connected
      let requests = 0
      const ended = yield* Scope.make()
      const count = () => Effect.sync(() => void requests++)
      yield* Scope.provide(conductor(count), ended)
      for (const text of ["", "{}", JSON.stringify({ name: "x".repeat(2048) })]) {
        yield* Effect.promise(() =>
          connection.request(subject, text, { timeout: 50 }).then(
            () => assert.fail("it was answered"),
            () => undefined,
          ),
        )
      }
      assert.strictEqual(requests, 0)
      yield* Scope.close(ended, Exit.void)
      connection.subscribe(subject, { callback: (_, message) => void message.respond("yes") })
      yield* Effect.promise(() => connection.flush())
      const failure = yield* Effect.flip((yield* asker).image(known.name))
      assert.include(failure.detail, "is not an image")
      yield* Effect.promise(() => connection.close())
    }).pipe(Effect.scoped),
  )
})
