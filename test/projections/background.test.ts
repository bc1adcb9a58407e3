/** A read model that yields its thread to others. Source: decision 0126. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Scope } from "effect"
import { sql } from "kysely"
import { Log } from "#events/log.ts"
import { listAudit } from "#gateway/system/audit.ts"
import { logMemory } from "#journal"
import { commitProjection, projection } from "#projections/projection.ts"
import { type Blueprint, Rest, readModel } from "#projections/read-model.ts"
import { statement } from "#projections/statement.ts"
import { SystemModel } from "#projections/system/blueprint.ts"
import { sqlite } from "#sqlite"
import { Counted, CounterEvent } from "../world/counter.ts"

interface Tables {
  readonly counted: { readonly place: string; readonly by: number }
  readonly total: { readonly id: string; readonly by: number; readonly commits: number }
}

const write = statement<Tables>()
const insert = write<Tables["counted"]>((db, { place, by }) =>
  db.insertInto("counted").values({ place, by }),
)
const add = write<Pick<Tables["total"], "id" | "by">>((db, { id, by }) =>
  db
    .insertInto("total")
    .values({ id, by, commits: 1 })
    .onConflict((same) =>
      same.column("id").doUpdateSet({ by: sql`total.by + excluded.by`, commits: sql`commits + 1` }),
    ),
)

const byOf = (event: CounterEvent) => (event.type === "Counted" ? event.by : 0)

const each = projection<Tables, CounterEvent>({
  part: "test.counter",
  event: CounterEvent,
  create: ({ schema }) => [
    schema.createTable("counted").addColumn("place", "text").addColumn("by", "integer"),
  ],
  project: (event, { position, index }) => [
    insert({ place: `${position}.${index}`, by: byOf(event) }),
  ],
})

const together = commitProjection<Tables, CounterEvent>({
  part: "test.counter",
  event: CounterEvent,
  create: ({ schema }) => [
    schema
      .createTable("total")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("by", "integer")
      .addColumn("commits", "integer"),
  ],
  project: (events, { id }) => [add({ id, by: events.reduce((sum, one) => sum + byOf(one), 0) })],
})

const blueprint = (is_background: boolean): Blueprint<Tables> => ({
  ...{ service: "test", version: 1, part: "test", projections: [each, together], is_background },
})

const commitOf = (events: number) => ({
  ...({ v: 1, actor: "test", at: "2026-11-22T12:00:00.000Z", commands: [], prev: "" } as const),
  events: Array.from({ length: events }, (_, by) => Counted.make({ by })),
  snapshot: { machine: 1, value: "open", context: {} },
})

/** A commit of `events` events of one counter. */
const append = Effect.fnUntraced(function* (id: string, events: number) {
  const log = yield* Log
  const stream = `test.counter.${id}`
  const last = yield* log.load(stream)
  const expected = last?.position ?? 0
  const [written] = yield* log.append([{ stream, expected, commit: commitOf(events) }])
  return written?.position ?? 0
})

/** Many counters at once, each with a commit of `events` events; returns the positions. */
const appendAll = Effect.fnUntraced(function* (name: string, commits: number, events: number) {
  const log = yield* Log
  const written = yield* log.append(
    Array.from({ length: commits }, (_, n) => ({
      ...{ stream: `test.counter.${name}${n}`, expected: 0, commit: commitOf(events) },
    })),
  )
  return written.map(({ position }) => position)
})

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "almanac-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true })),
)

const opened = (path: string, is_background: boolean) =>
  Effect.provide(readModel(blueprint(is_background)), sqlite(path), { local: true })

/** A rest of `rest_ms` after each piece of work; records the pieces. */
const resting = (rest_ms: number, gather_ms = 0) => {
  const taken: Array<number> = []
  const after = (took_ms: number) => {
    taken.push(took_ms)
    return rest_ms
  }
  return { taken, layer: Layer.succeed(Rest, { after, gather_ms }) }
}

/** Waits for the first piece of work. */
const begun = Effect.fnUntraced(function* ({ taken }: ReturnType<typeof resting>) {
  for (let looks = 0; taken.length === 0; looks += 1) {
    if (looks > 10_000) assert.fail("it never began")
    yield* Effect.sleep(1)
  }
})

const live = <A, E>(body: Effect.Effect<A, E, Log | Scope.Scope>) =>
  body.pipe(Effect.scoped, Effect.provide(Layer.fresh(logMemory)))

describe("a read model in the background", () => {
  it.live("shows the same as a foreground model, for large and small commits", () =>
    live(
      Effect.gen(function* () {
        const rests = resting(1)
        const model = yield* Effect.provide(opened(yield* folder, true), rests.layer)
        const beside = yield* opened(yield* folder, false)
        for (const events of [1, 2, 170, 49, 50, 51, 1]) {
          yield* append(`c${events}`, events)
          yield* append("all", events)
        }
        const last = yield* append("all", 101)
        yield* Effect.all([model.waitFor(last), beside.waitFor(last)])
        assert.deepEqual(yield* model.dump, yield* beside.dump)
        assert.equal(Object.values((yield* model.dump).counted ?? []).length, 749)
      }),
    ),
  )

  it.live("pauses within a commit, and reports its position only at the end", () =>
    live(
      Effect.gen(function* () {
        const rests = resting(1)
        const model = yield* Effect.provide(opened(yield* folder, true), rests.layer)
        const position = yield* append("x", 170)
        let turns = 0
        while ((yield* model.position) < position) {
          // Read on another thread: it sees all of a commit or nothing.
          const rows = yield* Effect.promise(() =>
            model.reader.selectFrom("counted").select("place").execute(),
          )
          assert.include([0, 170], rows.length)
          if (++turns > 10_000) assert.fail("it never came to its end")
        }
        assert.isAtLeast(rests.taken.length, 4, "170 events are four pieces")
      }),
    ),
  )

  it.live("rests no longer once somebody waits", () =>
    live(
      Effect.gen(function* () {
        const rests = resting(3_600_000, 3_600_000)
        const model = yield* Effect.provide(opened(yield* folder, true), rests.layer)
        const position = yield* append("x", 170)
        yield* begun(rests)
        // Waiters time out after two seconds.
        yield* model.waitFor(position)
        yield* model.waitFor(yield* append("x", 1))
        yield* model.waitFor(yield* append("x", 60))
      }),
    ),
  )

  it.live("resumes waiters at their position, then pauses again", () =>
    live(
      Effect.gen(function* () {
        const rests = resting(3_600_000)
        const model = yield* Effect.provide(opened(yield* folder, true), rests.layer)
        const [first = 0] = yield* appendAll("x", 2, 60)
        yield* begun(rests)
        yield* model.waitFor(first)
        assert.equal(yield* model.position, first)
      }),
    ),
  )

  it.live("gathers small batches, and projects large ones immediately", () =>
    live(
      Effect.gen(function* () {
        const rests = resting(0, 3_600_000)
        const model = yield* Effect.provide(opened(yield* folder, true), rests.layer)
        for (let batch = 0; batch < 3; batch += 1) {
          const last = (yield* appendAll(`b${batch}-`, 50, 1)).at(-1) ?? assert.fail("no commit")
          for (let looks = 0; (yield* model.position) < last; looks += 1) {
            if (looks > 5000) assert.fail("it waits for more")
            yield* Effect.sleep(1)
          }
        }
        assert.isAtLeast(rests.taken.length, 2, "others have the thread in between")
        const little = yield* append("x", 1)
        yield* model.waitFor(little)
        yield* append("x", 1)
        yield* Effect.sleep(20)
        assert.equal(yield* model.position, little)
      }),
    ),
  )

  it.live("leaves nothing of a commit in which it was stopped", () =>
    live(
      Effect.gen(function* () {
        const path = yield* folder
        const rests = resting(3_600_000)
        const scope = yield* Scope.make()
        yield* opened(path, true).pipe(Effect.provide(rests.layer), Scope.provide(scope))
        yield* append("x", 170)
        yield* begun(rests)
        yield* Scope.close(scope, Exit.void)
        const again = yield* opened(path, false)
        assert.equal(((yield* again.dump).counted ?? []).length, 170)
        assert.deepEqual((yield* again.dump).total, [
          JSON.stringify({ id: "x", by: (169 * 170) / 2, commits: 1 }),
        ])
      }),
    ),
  )
})

describe("an audit that a process does not keep", () => {
  it.live("is rejected, and blocks no other part", () =>
    live(
      Effect.gen(function* () {
        const around = yield* Layer.build(
          SystemModel.layer([], false).pipe(Layer.provide(sqlite(yield* folder))),
        )
        const refused = yield* listAudit({ query: {} }).pipe(
          Effect.provideContext(around),
          Effect.flip,
        )
        assert.equal(refused.code, "svc.backend_unavailable")
        assert.include(refused.detail, "audit.index")
        const waits = Effect.gen(function* () {
          const model = yield* SystemModel
          yield* model.waitFor(99)
          yield* model.catchUp
          return yield* model.position
        })
        assert.equal(yield* Effect.provideContext(waits, around), 0)
      }),
    ),
  )
})
