/** Contract of every shared file system service. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { v7 } from "uuid"
import type { NewShare, Share, Shares } from "#actors/share-protection/ports/shares.ts"
import { JobId, type ProjectId, ShareId } from "#schemas/share-protection/id.ts"
import {
  NetworkStrategyPrecondition,
  SnapshotStrategyPrecondition,
} from "#schemas/share-protection/rejection.ts"

export interface ShareOptions {
  readonly project?: "one" | "other"
  /** Whether the share supports snapshots; true by default. */
  readonly snapshots?: boolean
}

/** A shared file system service with two projects that creates shares with files in them. */
export interface SharePlace {
  readonly shares: Shares["Service"]
  readonly projects: Readonly<Record<"one" | "other", ProjectId>>
  /** Creates a share with these files, by name. */
  readonly make: (
    files: Readonly<Record<string, string>>,
    options?: ShareOptions,
  ) => Effect.Effect<Share, unknown>
  /** A tenant's token for project `one`. */
  readonly by: NewShare["by"]
  /** Removes the export locations of a share. */
  readonly unexport: (share: Share) => Effect.Effect<void, unknown>
}

type Test = (name: string, body: (place: SharePlace) => Effect.Effect<void, unknown>) => void

const job = () => JobId.make(v7())
const wish = (crash_consistent: boolean | null = null) => ({ job_id: job(), crash_consistent })
const text = (path: string, name: string) => readFileSync(join(path, name), "utf8")
const write = (path: string, name: string, what: string) => writeFileSync(join(path, name), what)

/** A share, and the path at which the test writes to it. */
const made = Effect.fnUntraced(function* (
  place: SharePlace,
  files: Readonly<Record<string, string>>,
  options?: ShareOptions,
) {
  const share = yield* place.make(files, options)
  return { share, live: yield* place.shares.pathOf(share) }
})

export const sharesContract = (test: Test) => {
  test("a share is found in its own project only", ({ shares, projects, make }) =>
    Effect.gen(function* () {
      const share = yield* make({ "a.txt": "12345" })
      const found = yield* shares.find(projects.one, share.id)
      assert.deepEqual(
        [found?.id, found?.project_id, found?.status],
        [share.id, projects.one, "available"],
      )
      assert.isAtLeast(found?.size_bytes ?? 0, 5)
      assert.isUndefined(yield* shares.find(projects.other, share.id))
      assert.isUndefined(yield* shares.find(projects.one, ShareId.make(v7())))
    }))

  test("every share of every project is listed", ({ shares, projects, make }) =>
    Effect.gen(function* () {
      const mine = yield* make({})
      const theirs = yield* make({}, { project: "other" })
      const all = yield* Stream.runCollect(shares.list)
      const listed = (share: Share) => all.filter(({ id }) => id === share.id)
      assert.deepEqual(
        listed(mine).map(({ project_id }) => project_id),
        [projects.one],
      )
      assert.deepEqual(
        listed(theirs).map(({ project_id }) => project_id),
        [projects.other],
      )
    }))

  test("a snapshot keeps its contents after later writes", (place) =>
    Effect.gen(function* () {
      const { share, live } = yield* made(place, { "a.txt": "before", "b.txt": "kept" })
      for (const crash_consistent of [null, true]) {
        write(live, "a.txt", "before")
        const source = yield* place.shares.prepare(share, wish(crash_consistent))
        write(live, "a.txt", "after")
        assert.isTrue(source.crash_consistent)
        assert.deepEqual(
          [text(source.path, "a.txt"), text(source.path, "b.txt")],
          ["before", "kept"],
        )
        yield* place.shares.release(source)
      }
    }))

  test("a job sees the same source however often it asks, and another job its own", (place) =>
    Effect.gen(function* () {
      const { share, live } = yield* made(place, { "a.txt": "1" })
      const order = wish()
      const first = yield* place.shares.prepare(share, order)
      write(live, "a.txt", "2")
      assert.deepEqual(yield* place.shares.prepare(share, order), first)
      assert.strictEqual(text(first.path, "a.txt"), "1")
      const other = yield* place.shares.prepare(share, wish())
      assert.strictEqual(text(other.path, "a.txt"), "2")
      yield* place.shares.release(first)
      assert.strictEqual(text(other.path, "a.txt"), "2")
      yield* place.shares.release(other)
    }))

  test("a released source is gone, and created again when the job requests it", (place) =>
    Effect.gen(function* () {
      const { share, live } = yield* made(place, { "a.txt": "1" })
      const order = wish()
      const source = yield* place.shares.prepare(share, order)
      yield* place.shares.release(source)
      yield* place.shares.release({ token: source.token })
      assert.isFalse(existsSync(join(source.path, "a.txt")))
      assert.strictEqual(text(live, "a.txt"), "1")
      write(live, "a.txt", "2")
      const again = yield* place.shares.prepare(share, order)
      assert.strictEqual(text(again.path, "a.txt"), "2")
      yield* place.shares.release(again)
    }))

  test("a source is released by the job's id alone, by any caller that has it", (place) =>
    Effect.gen(function* () {
      const { share } = yield* made(place, { "a.txt": "1" })
      const order = wish()
      const source = yield* place.shares.prepare(share, order)
      assert.strictEqual(source.token, order.job_id)
      yield* place.shares.release({ token: order.job_id })
      assert.isFalse(existsSync(join(source.path, "a.txt")))
      yield* place.shares.release({ token: job() })
    }))

  test("who wants no snapshot reads the live share, which a release leaves alone", (place) =>
    Effect.gen(function* () {
      const { share, live } = yield* made(place, { "a.txt": "1" })
      const source = yield* place.shares.prepare(share, wish(false))
      assert.isFalse(source.crash_consistent)
      write(live, "a.txt", "2")
      assert.strictEqual(text(source.path, "a.txt"), "2")
      yield* place.shares.release(source)
      assert.strictEqual(text(live, "a.txt"), "2")
    }))

  test("a share without snapshots is read live, or not at all", (place) =>
    Effect.gen(function* () {
      const { share } = yield* made(place, { "a.txt": "1" }, { snapshots: false })
      assert.isFalse(share.snapshot_support && share.mount_snapshot_support)
      const source = yield* place.shares.prepare(share, wish())
      assert.deepEqual([source.crash_consistent, text(source.path, "a.txt")], [false, "1"])
      yield* place.shares.release(source)
      const refused = yield* Effect.flip(place.shares.prepare(share, wish(true)))
      assert.instanceOf(refused, SnapshotStrategyPrecondition)
    }))

  test("a share that is exported nowhere is refused", (place) =>
    Effect.gen(function* () {
      const { share } = yield* made(place, {})
      yield* place.unexport(share)
      const refused = yield* Effect.flip(place.shares.prepare(share, wish()))
      assert.instanceOf(refused, NetworkStrategyPrecondition)
      assert.instanceOf(yield* Effect.flip(place.shares.pathOf(share)), NetworkStrategyPrecondition)
    }))

  test("a new share is no whole one until it is finished", (place) =>
    Effect.gen(function* () {
      const { shares, projects } = place
      const like = yield* place.make({ "a.txt": "1" })
      const order = { job_id: job(), like, name: "restored", by: place.by }
      const { share, path } = yield* shares.create(projects.one, order)
      write(path, "b.txt", "2")
      const unfinished = yield* shares.find(projects.one, share.id)
      assert.notStrictEqual(unfinished?.name, "restored")
      assert.isTrue(unfinished === undefined || unfinished.name.includes("unfinished"))
      yield* shares.finish(share, order)
      yield* shares.finish(share, order)
      const finished = yield* shares.find(projects.one, share.id)
      assert.isDefined(finished)
      assert.notInclude(finished?.name, "unfinished")
      const again = yield* shares.create(projects.one, order)
      assert.strictEqual(again.share.id, share.id)
      assert.strictEqual(text(again.path, "b.txt"), "2")
    }))

  test("a new share is empty, can be written, and is one for its job", (place) =>
    Effect.gen(function* () {
      const { shares, projects } = place
      const like = yield* place.make({ "a.txt": "1" })
      const order = { job_id: job(), like, name: "restored", by: place.by }
      const { share, path } = yield* shares.create(projects.one, order)
      assert.deepEqual([share.project_id, readdirSync(path)], [projects.one, []])
      write(path, "b.txt", "2")
      const again = yield* shares.create(projects.one, order)
      assert.deepEqual([again.share.id, again.path], [share.id, path])
      yield* shares.finish(share, order)
      assert.strictEqual(text(yield* shares.pathOf(share), "b.txt"), "2")
      assert.strictEqual((yield* shares.find(projects.one, share.id))?.id, share.id)
      const other = yield* shares.create(projects.one, { ...order, job_id: job() })
      assert.notStrictEqual(other.share.id, share.id)
    }))
}
