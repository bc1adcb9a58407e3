/** Limits on open event streams per caller. Source: decision 0179. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Scope, Stream } from "effect"
import { EventStreams, streamBudget } from "#gateway/budget.ts"
import { subscribe } from "#gateway/system/events.ts"
import { eventsMemory } from "../../world/publishing.ts"
import {
  asAdmin,
  bodyOf,
  error,
  read,
  serveEvents,
  until,
} from "../../world/system/events-served.ts"

const one_stream = { max_event_streams: 1, max_event_streams_per_caller: 1 }

describe("the budget of streams", () => {
  /** 14 for all callers except admins, and half of those per project. */
  const limits = { max_event_streams: 16, max_event_streams_per_caller: 3 }
  const openAll = (url: string, token: string, count: number) =>
    Effect.promise(() => Promise.all(Array.from({ length: count }, () => read(url, token))))
  const refused = (url: string, token: string) =>
    Effect.map(
      Effect.promise(() => read(url, token)),
      (reader) => ({ ...error(reader), retry: reader.headers["retry-after"] }),
    )

  it.live("a waiting client that is notified again already has its stream", () =>
    Effect.gen(function* () {
      const streams = streamBudget(one_stream)
      const waits = { query: {}, headers: { "last-event-id": "99" } }
      const waiting = yield* Effect.forkChild(
        Effect.provideService(subscribe(waits), EventStreams, streams),
      )
      yield* Effect.promise(() => until(() => streams.held() === 1))
      const second = Effect.provideService(
        subscribe({ query: {}, headers: {} }),
        EventStreams,
        streams,
      )
      assert.isTrue(Exit.isFailure(yield* Effect.exit(second)))
      yield* Fiber.interrupt(waiting)
      assert.equal(streams.held(), 0)
    }).pipe(Effect.provide(Layer.fresh(eventsMemory)), asAdmin),
  )

  it.live("one caller's are 429 beyond its limit, and another caller still gets one", () =>
    Effect.gen(function* () {
      const { url } = yield* serveEvents
      const readers = yield* openAll(url, "one", 3)
      const { status, code, retry } = yield* refused(url, "one")
      assert.deepEqual(
        { status, code, retry },
        { status: 429, code: "svc.quota_exceeded", retry: "10" },
      )
      const others = yield* openAll(url, "reader", 1)
      assert.deepEqual(
        others.map((other) => other.status),
        [200],
      )
      for (const reader of [...readers, ...others]) reader.leave()
    }).pipe(
      Effect.scoped,
      Effect.provideService(EventStreams, streamBudget(limits)),
      Effect.provide(Layer.fresh(eventsMemory)),
    ),
  )

  it.live("all together are 503 beyond the limit, and some are reserved for admins", () =>
    Effect.gen(function* () {
      const { url } = yield* serveEvents
      const streams = yield* EventStreams
      const taken = streams.hold({ names: [], is_admin: false }, 15)
      yield* taken
      const { status, code, retry } = yield* refused(url, "reader")
      assert.deepEqual(
        { status, code, retry },
        { status: 503, code: "svc.backend_unavailable", retry: "10" },
      )
      const [admin] = yield* openAll(url, "admin", 1)
      assert.equal(admin?.status, 200)
      admin?.leave()
    }).pipe(
      Effect.scoped,
      Effect.provideService(EventStreams, streamBudget(limits)),
      Effect.provide(Layer.fresh(eventsMemory)),
    ),
  )

  it.live("a stream that ends leaves its place to another", () =>
    Effect.gen(function* () {
      const streams = streamBudget(one_stream)
      const headers = { query: {}, headers: {} }
      const scope = yield* Scope.make()
      const limited = Context.make(EventStreams, streams)
      const subscribed = Effect.provideContext(subscribe(headers), limited)
      const last = yield* Effect.provideContext(bodyOf(headers), limited)
      const pull = yield* Scope.provide(Stream.toPull(last), scope)
      yield* pull
      assert.equal(streams.held(), 1)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(subscribed)))
      yield* Scope.close(scope, yield* Effect.exit(Effect.void))
      assert.equal(streams.held(), 0)
      yield* subscribed
    }).pipe(Effect.provide(Layer.fresh(eventsMemory)), asAdmin),
  )
})
