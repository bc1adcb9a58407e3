/** Contract of reading and following every log. */
import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch, Stream } from "effect"
import { Log } from "#events/log.ts"
import {
  a,
  b,
  c,
  collect,
  commitOf,
  d,
  first,
  next,
  type Test,
  textOf,
  write,
} from "./log-commits.ts"

export const reads = (test: Test) => {
  const fill = Effect.forEach([a, b, c, d, a, c], (stream, i) => write(stream, `${i}`))

  test(
    "a part is read: all, a service, a kind, a stream; after a position, oldest first",
    Effect.gen(function* () {
      const log = yield* Log
      const positions = yield* fill
      const texts = (part: string, position?: number) =>
        Effect.map(collect(log.read(part, position)), (all) => all.map(textOf).join(" "))
      assert.strictEqual(yield* texts(""), "0 1 2 3 4 5")
      assert.strictEqual(yield* texts("test"), "0 1 2 4 5")
      assert.strictEqual(yield* texts("test.one"), "0 1 4")
      assert.strictEqual(yield* texts(c), "2 5")
      assert.strictEqual(yield* texts("", positions[3]), "4 5")
      assert.strictEqual(yield* texts("test.one", positions[0]), "1 4")
      assert.strictEqual(yield* texts("", positions[5]), "")
      assert.strictEqual(yield* texts("nobody"), "")
      assert.strictEqual(yield* texts("tes"), "")
    }),
  )

  test(
    "an empty log has nothing to read",
    Effect.gen(function* () {
      const log = yield* Log
      assert.deepEqual(yield* collect(log.read("")), [])
      assert.deepEqual(yield* collect(log.lasts("")), [])
      assert.strictEqual(yield* log.head(""), 0)
    }),
  )

  test(
    "the last commit of each stream comes once, oldest first",
    Effect.gen(function* () {
      const log = yield* Log
      yield* fill
      const texts = (part: string) =>
        Effect.map(collect(log.lasts(part)), (all) => all.map(textOf).join(" "))
      assert.strictEqual(yield* texts(""), "1 3 4 5")
      assert.strictEqual(yield* texts("test"), "1 4 5")
      assert.strictEqual(yield* texts("test.one"), "1 4")
      assert.strictEqual(yield* texts(a), "4")
    }),
  )

  test(
    "the head of a part is its last commit",
    Effect.gen(function* () {
      const log = yield* Log
      const positions = yield* fill
      assert.strictEqual(yield* log.head(""), positions[5])
      assert.strictEqual(yield* log.head("test.one"), positions[4])
      assert.strictEqual(yield* log.head("other"), positions[3])
      assert.strictEqual(yield* log.head(b), positions[1])
      assert.strictEqual(yield* log.head("nobody"), 0)
    }),
  )

  test(
    "thousands of commits come in order, in pages of at most 500",
    Effect.gen(function* () {
      const log = yield* Log
      const streams = Array.from({ length: 2_500 }, (_, i) => `test.many.s${i}`)
      yield* Effect.forEach(
        streams,
        (stream) => Effect.flatMap(first(stream), (append) => log.append([append])),
        { concurrency: 250, discard: true },
      )
      const pages: Array<number> = []
      const positions: Array<number> = []
      yield* Stream.runForEachArray(log.read("test"), (page) =>
        Effect.sync(() => {
          pages.push(page.length)
          positions.push(...page.map(({ position }) => position))
        }),
      )
      assert.deepEqual(
        positions,
        positions.map((_, i) => (positions[0] ?? 0) + i),
      )
      assert.strictEqual(positions.length, 2_500)
      assert.isAtMost(Math.max(...pages), 500)
      assert.isBelow(pages.length, 100)
      assert.strictEqual((yield* collect(log.lasts("test"))).length, 2_500)
      const some = yield* collect(Stream.take(log.read("test", positions[9] ?? 0), 3))
      assert.deepEqual(
        some.map(({ position }) => position),
        positions.slice(10, 13),
      )
    }),
  )

  test(
    "reads the last commit of each stream, also where they are large",
    Effect.gen(function* () {
      const log = yield* Log
      // More than a reader requests from a server at once (8 MiB).
      const text = "x".repeat(400_000)
      const streams = Array.from({ length: 30 }, (_, n) => `test.large.s${n}`)
      for (const stream of streams) {
        const commit = commitOf("large", log.hashOf(stream), text)
        yield* log.append([
          {
            stream,
            expected: 0,
            commit: { ...commit, snapshot: { ...commit.snapshot, context: {} } },
          },
        ])
      }
      const lasts = yield* collect(log.lasts("test.large"))
      assert.deepEqual(
        lasts.map(({ stream }) => stream),
        streams,
      )
    }),
  )
}

export const follows = (test: Test) => {
  test(
    "a follower receives the existing commits, and then each new one",
    Effect.gen(function* () {
      const log = yield* Log
      yield* write(a, "old")
      const position = yield* write(a, "there")
      yield* write(d, "elsewhere")
      const caughtUp = yield* Latch.make()
      const follower = yield* Effect.forkChild(
        log.follow("test", position - 1).pipe(
          Stream.tap(() => caughtUp.open),
          Stream.take(4),
          collect,
        ),
      )
      yield* caughtUp.await
      yield* write(b, "live")
      yield* write(d, "elsewhere again")
      yield* log.append([yield* next(a, "both"), yield* first(c, "both")])
      assert.deepEqual((yield* Fiber.join(follower)).map(textOf), ["there", "live", "both", "both"])
    }),
  )

  test(
    "followers see each of many concurrent commits once and in order",
    Effect.gen(function* () {
      const log = yield* Log
      const writers = Array.from({ length: 8 }, (_, i) => `test.many.w${i}`)
      const each = 40
      const followers = yield* Effect.forEach([1, 2, 3], () =>
        Effect.forkChild(collect(Stream.take(log.follow("", 0), writers.length * each))),
      )
      yield* Effect.forEach(
        writers,
        (stream) =>
          Effect.forEach(Array.from({ length: each }), (_, i) => write(stream, `${i}`), {
            discard: true,
          }),
        { concurrency: "unbounded", discard: true },
      )
      const all = yield* collect(log.read(""))
      assert.strictEqual(all.length, writers.length * each)
      for (const follower of followers) {
        const seen = yield* Fiber.join(follower)
        assert.deepEqual(
          seen.map(({ position, hash }) => ({ position, hash })),
          all.map(({ position, hash }) => ({ position, hash })),
        )
      }
    }),
  )

  test(
    "who follows and is interrupted leaves, also while nothing happens",
    Effect.gen(function* () {
      const log = yield* Log
      const follower = yield* Effect.forkChild(Stream.runDrain(log.follow("", 0)))
      yield* write(a, "seen")
      yield* Fiber.interrupt(follower)
      yield* write(a, "not seen")
      assert.isTrue(Exit.isFailure(yield* Fiber.await(follower)))
    }),
  )
}
