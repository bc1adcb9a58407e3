/** Contract of every log. */
import { createHash } from "node:crypto"
import { assert } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import { commit_bytes_max, Log, snapshot_bytes_max } from "#events/log.ts"
import {
  a,
  b,
  c,
  collect,
  commitOf,
  first,
  insist,
  next,
  type Test,
  textOf,
  write,
} from "./log-commits.ts"
import { follows, reads } from "./log-reads.ts"

export const logContract = (test: Test) => {
  writes(test)
  refusals(test)
  reads(test)
  follows(test)
}

const writes = (test: Test) => {
  test(
    "a commit is loaded as it was appended",
    Effect.gen(function* () {
      const log = yield* Log
      assert.isUndefined(yield* log.load(a))
      const append = yield* first(a)
      const [appended] = yield* log.append([append])
      const last = yield* log.load(a)
      assert.deepEqual(last?.commit, append.commit)
      assert.strictEqual(last?.stream, a)
      assert.strictEqual(last?.position, appended?.position)
      assert.strictEqual(last?.hash, appended?.hash)
      assert.isAbove(last?.position ?? 0, 0)
    }),
  )

  test(
    "positions rise over all streams",
    Effect.gen(function* () {
      const positions = yield* Effect.forEach([a, b, a, c, b], (stream, i) => write(stream, `${i}`))
      assert.deepEqual(
        positions,
        [...positions].sort((one, other) => one - other),
      )
      assert.strictEqual(new Set(positions).size, 5)
    }),
  )

  test(
    "several commits of one append are there together, answered in their order",
    Effect.gen(function* () {
      const log = yield* Log
      yield* write(b, "before")
      const appends = [yield* first(c), yield* next(b, "both"), yield* first(a)]
      const appended = yield* log.append(appends)
      for (const [i, { stream }] of appends.entries()) {
        const last = yield* log.load(stream)
        assert.strictEqual(last?.position, appended[i]?.position)
        assert.strictEqual(last?.hash, appended[i]?.hash)
      }
    }),
  )

  test(
    "the ids of the commands stay with the commit, so that a command is recognised later",
    Effect.gen(function* () {
      const log = yield* Log
      const commands = Array.from({ length: 64 }, (_, i) => `command-${i}`)
      const commit = { ...commitOf("x", log.hashOf(a)), commands, cause: "17" }
      yield* log.append([{ stream: a, expected: 0, commit }])
      const last = yield* log.load(a)
      assert.deepEqual(last?.commit.commands, commands)
      assert.strictEqual(last?.commit.cause, "17")
    }),
  )

  test(
    "the hashes of a stream's commits are a chain from the stream's name to its head",
    Effect.gen(function* () {
      const log = yield* Log
      for (const i of [1, 2, 3, 4]) yield* write(i % 2 ? a : b, `${i}`)
      yield* write(a, "5")
      let prev = createHash("sha256").update(a).digest("hex")
      for (const { commit, hash } of yield* collect(log.read(a))) {
        assert.strictEqual(commit.prev, prev)
        assert.strictEqual(hash, createHash("sha256").update(JSON.stringify(commit)).digest("hex"))
        prev = hash
      }
      assert.strictEqual((yield* log.load(a))?.hash, prev)
    }),
  )

  test(
    "text of any script comes back as it was",
    Effect.gen(function* () {
      const log = yield* Log
      const text = 'Überlauf — 漢字, עברית, 🜁 \u0000 \u2028 "\\" \uD83D'
      yield* log.append([{ stream: a, expected: 0, commit: commitOf("x", "", text) }])
      const last = yield* log.load(a)
      assert.strictEqual(last && textOf(last), text)
      assert.deepEqual((yield* collect(log.read(""))).map(textOf), [text])
    }),
  )

  test(
    "of many writers at one version one wins, and all of them in the end",
    Effect.gen(function* () {
      const log = yield* Log
      const writers = Array.from({ length: 32 }, (_, i) => `writer-${i}`)
      const rivals = writers.map((writer) => ({
        stream: a,
        expected: 0,
        commit: commitOf(writer, log.hashOf(a)),
      }))
      const results = yield* Effect.forEach(rivals, (rival) => Effect.exit(log.append([rival])), {
        concurrency: "unbounded",
      })
      assert.strictEqual(results.filter(Exit.isSuccess).length, 1)
      yield* Effect.forEach(writers, (writer) => insist(b, writer), { concurrency: "unbounded" })
      const texts = (yield* collect(log.read(b))).map(textOf)
      assert.deepEqual(new Set(texts), new Set(writers))
      assert.strictEqual(texts.length, writers.length)
    }),
  )

  test(
    "one conflict fails one caller among many",
    Effect.gen(function* () {
      const log = yield* Log
      yield* write("test.many.s7", "before")
      yield* write(b, "between")
      const appends = yield* Effect.forEach(
        Array.from({ length: 40 }, (_, i) => `test.many.s${i}`),
        (stream) => first(stream),
      )
      const results = yield* Effect.forEach(appends, (one) => Effect.exit(log.append([one])), {
        concurrency: "unbounded",
      })
      assert.deepEqual(
        results.flatMap((result, i) => (Exit.isFailure(result) ? [i] : [])),
        [7],
      )
      assert.strictEqual((yield* collect(log.read("test.many"))).length, 40)
    }),
  )
}

const refusals = (test: Test) => {
  const refused = (stream: string, wrong: (position: number) => number) =>
    Effect.gen(function* () {
      const log = yield* Log
      const position = yield* write(stream, "there")
      const append = { ...(yield* next(stream, "late")), expected: wrong(position) }
      const error = yield* Effect.flip(log.append([append]))
      assert.strictEqual(error._tag, "VersionConflict")
      assert.strictEqual((yield* log.load(stream))?.position, position)
    })

  test(
    "a version that is behind is refused",
    refused(a, () => 0),
  )
  test(
    "a version that is ahead is refused",
    refused(a, (position) => position + 1),
  )
  test(
    "a version of a stream that was never written is refused",
    Effect.gen(function* () {
      const log = yield* Log
      yield* write(b, "other")
      const error = yield* Effect.flip(log.append([{ ...(yield* first(a)), expected: 1 }]))
      assert.strictEqual(error._tag, "VersionConflict")
    }),
  )

  test(
    "one stale version among several commits, and none of them is stored",
    Effect.gen(function* () {
      const log = yield* Log
      yield* write(b, "before")
      const head = yield* log.head("")
      const appends = [yield* first(a), { ...(yield* next(b, "stale")), expected: 0 }]
      for (const order of [appends, appends.toReversed()]) {
        const error = yield* Effect.flip(log.append(order))
        assert.strictEqual(error._tag, "VersionConflict")
        assert.isUndefined(yield* log.load(a))
        assert.strictEqual(yield* log.head(""), head)
      }
    }),
  )

  const dies = (
    name: string,
    spoil: (append: Parameters<typeof over>[0]) => ReturnType<typeof over>,
  ) =>
    test(
      name,
      Effect.gen(function* () {
        const log = yield* Log
        const exit = yield* Effect.exit(log.append(spoil(yield* first(a))))
        assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause), String(exit))
        assert.strictEqual(yield* log.head(""), 0)
      }),
    )
  const over = (append: Effect.Success<ReturnType<typeof first>>) => [append]

  dies("a commit above its limit is a defect, and nothing is sent", (append) => {
    const events = [{ type: "Written", text: "x".repeat(commit_bytes_max) }]
    return [{ ...append, commit: { ...append.commit, events } }]
  })
  dies("a snapshot above its limit is a defect, and nothing is sent", (append) => {
    const context = "x".repeat(snapshot_bytes_max)
    const snapshot = { ...append.commit.snapshot, context }
    return [{ ...append, commit: { ...append.commit, snapshot } }]
  })
  dies("two commits of one append to one stream are a defect", (append) => [append, append])
  dies("an append of nothing is a defect", () => [])
  dies("a name that would be read as a wildcard is a defect", (append) => [
    { ...append, stream: "test.one.*" },
  ])
  dies("a hundred and one commits in one append are a defect", (append) =>
    Array.from({ length: 101 }, (_, i) => ({ ...append, stream: `test.one.s${i}` })),
  )

  test(
    "a commit and a snapshot just below their limits are stored",
    Effect.gen(function* () {
      const log = yield* Log
      const commit = commitOf("x", log.hashOf(a))
      const room = (max: number, empty: unknown) => max - JSON.stringify(empty).length
      const bare = { ...commit.snapshot, context: "" }
      const snapshot = { ...bare, context: "s".repeat(room(snapshot_bytes_max, bare)) }
      const empty = { ...commit, snapshot, events: [{ type: "Written", text: "" }] }
      const text = "t".repeat(room(commit_bytes_max, empty))
      const full = { ...empty, events: [{ type: "Written", text }] }
      yield* log.append([{ stream: a, expected: 0, commit: full }])
      assert.deepEqual((yield* log.load(a))?.commit, full)
    }),
  )
}
