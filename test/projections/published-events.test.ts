import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Stream } from "effect"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { publishedEventsMemory } from "#adapters/published/memory.ts"
import { logMemory } from "#journal"
import { publisher } from "#projections/published/publisher.ts"
import { PublishedEvents, PublishFailed, publication } from "#projections/published-events.ts"
import { CloseAt, Count, Counter, CounterEvent } from "../world/counter.ts"
import { publishingOf } from "../world/publishing.ts"

const counters = publication({
  part: "test.counter",
  event: CounterEvent,
  toDraft: (event) =>
    CounterEvent.match(event, {
      Counted: ({ by }) => ({ type: "counted", data: { by }, project_id: "p1" }),
      ClosePlanned: () => undefined,
      Closed: () => ({ type: "counter_closed", data: {} }),
    }),
})

const count = Effect.fnUntraced(function* (by: number) {
  const at = "2026-11-20T12:00:00.000Z"
  const from = { command_id: `c${by}`, actor: "alice", at, request_id: "r1", correlation_id: "k1" }
  return yield* (yield* Commands).send(from, address(Counter, "x", Count.make({ by })))
})

const published = Effect.fnUntraced(function* (n: number) {
  const events = yield* PublishedEvents
  return yield* Stream.runCollect(Stream.take(events.follow(0, {}), n))
})

/** Published events whose appends sometimes fail, before the write or after a part of it. */
const faulty = Layer.effect(
  PublishedEvents,
  Effect.map(PublishedEvents, (events) => {
    let calls = 0
    const lost = Effect.fail(new PublishFailed({ detail: "injected" }))
    return PublishedEvents.of({
      ...events,
      append: (some, after) => {
        calls++
        if (calls % 3 === 1) return lost
        if (calls % 3 === 0) return events.append(some, after)
        return Effect.andThen(events.append(some.slice(0, 1), after), lost)
      },
    })
  }),
).pipe(Layer.provide(publishedEventsMemory))

const app = Layer.mergeAll(Layer.provideMerge(host, logMemory), publishedEventsMemory)

describe("the publisher", () => {
  it.live("publishes events as CloudEvents, in the log's order", () =>
    Effect.gen(function* () {
      yield* Effect.forkChild(publisher(publishingOf([counters])))
      yield* count(1)
      yield* count(2)
      const [first, second] = yield* published(2)
      assert.deepEqual(first, {
        sequence: 1,
        event: {
          specversion: "1.0",
          id: "1.0",
          source: "/almanac/test/counter",
          type: "counted",
          subject: "x",
          time: "2026-11-20T12:00:00.000Z",
          datacontenttype: "application/json",
          position: 1,
          actor: "alice",
          requestid: "r1",
          correlationid: "k1",
          projectid: "p1",
          data: { by: 1 },
        },
      })
      assert.equal(second?.event.position, 2)
    }).pipe(Effect.provide(app)),
  )

  it.live("keeps what is internal to itself", () =>
    Effect.gen(function* () {
      const commands = yield* Commands
      yield* Effect.forkChild(publisher(publishingOf([counters])))
      const at = "2026-11-20T12:00:00.000Z"
      const plan = address(Counter, "x", CloseAt.make({ due: at }))
      yield* commands.send({ command_id: "plan", actor: "test", at }, plan)
      yield* count(7)
      const [only] = yield* published(1)
      assert.equal(only?.event.position, 2)
    }).pipe(Effect.provide(app)),
  )

  it.live("neither doubles nor drops an event when it is killed again and again", () =>
    Effect.gen(function* () {
      for (let by = 1; by <= 40; by++) {
        const running = yield* Effect.forkChild(publisher(publishingOf([counters])))
        yield* count(by)
        for (let step = 0; step < by; step++) yield* Effect.yieldNow
        yield* Fiber.interrupt(running)
      }
      yield* Effect.forkChild(publisher(publishingOf([counters])))
      const all = yield* published(40)
      assert.deepEqual(
        all.map(({ event }) => event.data.by),
        Array.from({ length: 40 }, (_, i) => i + 1),
      )
    }).pipe(Effect.provide(app)),
  )

  it.live("neither doubles nor drops an event when the bus fails halfway", () =>
    Effect.gen(function* () {
      for (let by = 1; by <= 5; by++) yield* count(by)
      yield* Effect.forkChild(publisher(publishingOf([counters])))
      const all = yield* published(5)
      assert.deepEqual(
        all.map(({ event }) => event.data.by),
        [1, 2, 3, 4, 5],
      )
    }).pipe(Effect.provide(Layer.mergeAll(Layer.provideMerge(host, logMemory), faulty))),
  )
})
