/** Contract of every PublishedEvents adapter. */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, type Layer, Result, Stream } from "effect"
import { type Published, PublishedEvents, sequenceBefore } from "#projections/published-events.ts"

const published = (n: number, service = "blob-storage", type = "node_joined"): Published => ({
  service,
  aggregate: "cluster",
  event: {
    specversion: "1.0",
    id: `${n}.0`,
    source: `/almanac/${service}/cluster`,
    type,
    subject: "main",
    time: "2026-11-20T12:00:00.000Z",
    datacontenttype: "application/json",
    position: n,
    actor: "test – ünïcode",
    data: { n },
  },
})

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => from + i)

/** Runs the suite; `make` returns a layer without events. */
export const publishedEventsContract = <E>(make: () => Layer.Layer<PublishedEvents, E>) => {
  const test = (name: string, body: Effect.Effect<void, unknown, PublishedEvents>) =>
    it.live(name, () => Effect.provide(body, make()))

  test(
    "has no last event at first, and then the last one",
    Effect.gen(function* () {
      const events = yield* PublishedEvents
      assert.equal(yield* events.last, undefined)
      assert.equal(
        yield* events.append(
          numbers(1, 3).map((n) => published(n)),
          0,
        ),
        3,
      )
      assert.deepEqual(yield* events.last, { sequence: 3, event: published(3).event })
    }),
  )

  test(
    "answers each event at its place, and none beyond them",
    Effect.gen(function* () {
      const events = yield* PublishedEvents
      yield* events.append([published(1), published(2)], 0)
      const [one, two] = [yield* events.at(1), yield* events.at(2)]
      assert.deepInclude(one, { sequence: 1, event: published(1).event })
      assert.deepInclude(two, { sequence: 2, event: published(2).event })
      assert.isAtMost(one?.published_ms ?? Infinity, two?.published_ms ?? 0)
      for (const nowhere of [0, 3, 1000]) assert.isUndefined(yield* events.at(nowhere))
    }),
  )

  test(
    "finds the oldest event after a place that is wanted",
    Effect.gen(function* () {
      const events = yield* PublishedEvents
      const some = [published(1), published(2, "plant-disease", "image_predicted"), published(3)]
      yield* events.append(some, 0)
      const next = (after: number, types: ReadonlyArray<string> = []) =>
        Effect.map(events.next(after, { types }), (found) => found?.sequence)
      assert.equal(yield* next(0), 1)
      assert.equal(yield* next(1), 2)
      assert.equal(yield* next(0, ["image_predicted"]), 2)
      assert.equal(yield* next(1, ["node_joined", "node_left"]), 3)
      assert.isUndefined(yield* next(2, ["image_predicted"]))
      assert.isUndefined(yield* next(3))
      assert.isAbove((yield* events.next(0, {}))?.published_ms ?? 0, 0)
    }),
  )

  test(
    "finds the last event that was published before a time",
    Effect.gen(function* () {
      const events = yield* PublishedEvents
      assert.equal(yield* sequenceBefore(Date.now()), 0)
      const times: Array<number> = []
      for (const n of numbers(1, 5)) {
        yield* events.append([published(n)], n - 1)
        times.push((yield* events.at(n))?.published_ms ?? 0)
        yield* Effect.sleep(3)
      }
      for (const [n, ms] of times.entries()) {
        assert.equal(yield* sequenceBefore(ms), n)
        assert.equal(yield* sequenceBefore(ms + 1), n + 1)
      }
    }),
  )

  test(
    "adds only after the event that the publisher saw last",
    Effect.gen(function* () {
      const events = yield* PublishedEvents
      yield* events.append([published(1)], 0)
      for (const stale of [0, 2]) {
        const refused = yield* Effect.flip(events.append([published(9), published(10)], stale))
        assert.equal(refused._tag, "PublishFailed")
      }
      assert.equal((yield* events.last)?.sequence, 1)
    }),
  )

  test(
    "of several publishers that go on from the same event one is heard, and wholly",
    Effect.gen(function* () {
      const events = yield* PublishedEvents
      const stretch = (n: number) => numbers(n, n + 4).map((at) => published(at))
      const reported = yield* Effect.forEach(
        [100, 200, 300],
        (n) => Effect.result(events.append(stretch(n), 0)),
        { concurrency: "unbounded" },
      )
      assert.lengthOf(reported.filter(Result.isSuccess), 1)
      assert.equal((yield* events.last)?.sequence, 5)
      const kept = yield* Effect.forEach(numbers(1, 5), events.at)
      const [first = 0, ...others] = kept.map((one) => one?.event.position ?? 0)
      assert.deepEqual(others, numbers(first + 1, first + 4))
      assert.equal(yield* events.append(stretch(400), 5), 10)
    }),
  )

  test(
    "delivers what was there and what comes, in order, each once",
    Effect.gen(function* () {
      const events = yield* PublishedEvents
      yield* events.append(
        numbers(1, 600).map((n) => published(n)),
        0,
      )
      const following = yield* events
        .follow(100, {})
        .pipe(Stream.take(900), Stream.runCollect, Effect.forkChild({ startImmediately: true }))
      yield* events.append(
        numbers(601, 1000).map((n) => published(n)),
        600,
      )
      const all = yield* Fiber.join(following)
      assert.deepEqual(
        all.map(({ sequence, event }) => [sequence, event.position]),
        numbers(101, 1000).map((n) => [n, n]),
      )
    }),
  )

  test(
    "delivers nothing up to a sequence beyond the end, and what comes after it",
    Effect.gen(function* () {
      const events = yield* PublishedEvents
      yield* events.append([published(1)], 0)
      const following = yield* events
        .follow(3, {})
        .pipe(Stream.take(1), Stream.runCollect, Effect.forkChild({ startImmediately: true }))
      for (const n of numbers(2, 5)) yield* events.append([published(n)], n - 1)
      const [first] = yield* Fiber.join(following)
      assert.equal(first?.sequence, 4)
    }),
  )

  test(
    "filters by service and by type, and keeps the sequence of all",
    Effect.gen(function* () {
      const events = yield* PublishedEvents
      yield* events.append(
        [
          published(1),
          published(2, "share-protection", "job_queued"),
          published(3, "share-protection", "job_finished"),
          published(4),
        ],
        0,
      )
      const taken = (wanted: Parameters<typeof events.follow>[1], n: number) =>
        Effect.map(Stream.runCollect(Stream.take(events.follow(0, wanted), n)), (all) =>
          all.map(({ sequence }) => sequence),
        )
      assert.deepEqual(yield* taken({ services: ["blob-storage"] }, 2), [1, 4])
      assert.deepEqual(yield* taken({ types: ["job_finished"] }, 1), [3])
      assert.deepEqual(
        yield* taken({ services: ["share-protection"], types: ["job_queued"] }, 1),
        [2],
      )
    }),
  )
}
