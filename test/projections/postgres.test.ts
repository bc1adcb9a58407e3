/** Read models that processes share in PostgreSQL: writers, readers, and visible rows. */
import { setTimeout } from "node:timers/promises"
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Fiber, Result, Scope } from "effect"
import { TestClock } from "effect/testing"
import pg from "pg"
import type { Recorded } from "#events/log.ts"
import { sweepPeriodically } from "#postgres"
import { project } from "#projections/read-model.ts"
import { Counted } from "../world/counter.ts"
import { ask, describePostgres, optionsOf, Postgres } from "../world/programs/postgres.ts"
import { blueprint, count, counted } from "./counters.ts"
import { database, model, opened, schema, totals, until, withLog } from "./postgres-given.ts"

/** A process that exits: its read model is closed before the next line. */
const passing = <A, E, R>(body: Effect.Effect<A, E, R>) => Effect.scoped(body)

const endSessions = (url: string) =>
  ask(
    url,
    `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`,
  )

const recordedOf = (position: number): Recorded => ({
  position,
  stream: "test.counter.x",
  hash: `h${position}`,
  commit: {
    v: 1,
    actor: "test",
    at: "2026-11-20T12:00:00.000Z",
    commands: [],
    prev: "",
    events: [Counted.make({ by: 1 })],
    snapshot: { machine: 1, value: "", context: {} },
  },
})

describePostgres("a read model in PostgreSQL", () => {
  layer(Postgres.layer, { excludeTestServices: true, timeout: "60 seconds" })((it) => {
    it.effect("shows one process's writes in all processes immediately", () =>
      withLog(
        Effect.gen(function* () {
          yield* count("x", 2)
          const url = yield* database
          const writer = yield* model(url)
          const reader = yield* model(url, false)
          assert.equal(yield* totals(reader.db), 2)
          for (let n = 1; n <= 20; n++) {
            const position = yield* count("x", 1)
            yield* reader.waitFor(position)
            assert.equal(yield* totals(reader.db), 2 + n)
            yield* writer.waitFor(position)
          }
        }),
      ),
    )

    it.effect("runs queries on a read-only connection", () =>
      withLog(
        Effect.gen(function* () {
          const { reader } = yield* model(yield* database)
          const write = Effect.tryPromise(() => reader.deleteFrom("counter").execute())
          const failed = yield* Effect.flip(write)
          assert.match(String(failed.cause), /read-only/)
        }),
      ),
    )

    it.effect("goes on where it was, and another goes on where one ends", () =>
      withLog(
        Effect.gen(function* () {
          const url = yield* database
          yield* count("x", 1)
          assert.equal(yield* passing(Effect.flatMap(model(url), (m) => m.position)), 1)
          yield* count("x", 1)
          const first = yield* Scope.make()
          yield* Scope.provide(model(url), first)
          const second = yield* model(url)
          for (let n = 0; n < 30; n++) {
            yield* count(`c${n % 3}`, 1)
            if (n === 15) yield* Scope.close(first, Exit.void)
          }
          yield* second.catchUp.pipe(Effect.retry({ times: 5 }))
          assert.equal(yield* totals(second.db), 32)
        }),
      ),
    )

    it.effect("writes each commit once, even with competing writers", () =>
      withLog(
        Effect.gen(function* () {
          const url = yield* database
          // Neither has acquired the lock.
          const [one, other] = [yield* opened(url), yield* opened(url)]
          let refused = 0
          for (let position = 1; position <= 20; position++) {
            const both = yield* Effect.all(
              [one, other].map((each) =>
                Effect.result(project(each, blueprint, [recordedOf(position)])),
              ),
              { concurrency: 2 },
            )
            refused += both.filter(Result.isFailure).length
            // A rejected writer opens a new session, which reads the current position.
            yield* Effect.all([one.dump, other.dump])
          }
          assert.equal(yield* totals(one.db), 20)
          assert.isAbove(refused, 0)
        }),
      ),
    )

    it.effect("writes each commit once, however often its sessions are ended", () =>
      withLog(
        Effect.gen(function* () {
          const url = yield* database
          const shared = yield* model(url)
          const background = { ...blueprint, service: "slow", is_background: true }
          const slow = yield* model(url, true, background)
          for (let n = 1; n <= 40; n++) {
            yield* count(`c${n % 5}`, n)
            if (n % 8 === 0) yield* endSessions(url)
          }
          for (const each of [shared, slow]) {
            yield* each.catchUp.pipe(Effect.retry({ times: 5 }))
            assert.equal(yield* totals(each.db), (40 * 41) / 2)
          }
        }),
      ),
    )

    it.effect("leaves nothing of a commit that was cut off at any of its statements", () =>
      Effect.gen(function* () {
        const open = yield* opened(yield* database)
        const last_words = { sql: "select pg_terminate_backend(pg_backend_pid())", parameters: [] }
        const by = (n: number) => counted({ id: `c${n}`, by: 1 })
        for (let at = 0; at <= 4; at++) {
          const checkpoint = { position: at + 1, hash: `h${at + 1}` }
          const writes = [0, 1, 2, 3].map(by)
          const cut = writes.toSpliced(at, 0, last_words)
          yield* Effect.flip(open.apply(cut, checkpoint))
          const slices = [cut.slice(0, 2), cut.slice(2)]
          yield* Effect.flip(open.applySlowly(slices, checkpoint, Effect.yieldNow))
          yield* Effect.exit(open.applySlowly([[by(9)]], checkpoint, Effect.interrupt))
          assert.equal(yield* totals(open.db), 4 * at)
          yield* at % 2 === 0
            ? open.apply(writes, checkpoint)
            : open.applySlowly([writes.slice(0, 2), writes.slice(2)], checkpoint, Effect.yieldNow)
          assert.deepEqual(open.checkpoint(), checkpoint)
        }
        assert.equal(yield* totals(open.db), 20)
      }).pipe(Effect.scoped),
    )

    it.effect("rolls back a commit whose session ended between two slices", () =>
      Effect.gen(function* () {
        const url = yield* database
        const open = yield* opened(url)
        const slices = [1, 2, 3].map((n) => [counted({ id: `c${n}`, by: 1 })])
        const commit = { position: 1, hash: "h" }
        // The dump in between opens a new session, so the write would continue in another one.
        const pause = Effect.andThen(endSessions(url), Effect.exit(open.dump))
        yield* Effect.exit(open.applySlowly(slices, commit, Effect.asVoid(pause)))
        assert.equal(yield* totals(open.db), 0)
        yield* open.applySlowly(slices, commit, Effect.void)
        assert.equal(yield* totals(open.db), 3)
        assert.deepEqual(open.checkpoint(), commit)
      }).pipe(Effect.scoped),
    )

    it.effect("shows a text with a NUL, which PostgreSQL has not, with a sign in its place", () =>
      Effect.gen(function* () {
        const open = yield* opened(yield* database)
        yield* open.apply([counted({ id: "a\0?'b", by: 1 })], { position: 1, hash: "h" })
        const rows = yield* Effect.promise(() =>
          open.db.selectFrom("counter").select("id").execute(),
        )
        assert.deepEqual(rows, [{ id: "a\ufffd?'b" }])
      }).pipe(Effect.scoped),
    )

    it.effect("finds rows by a text with a NUL", () =>
      Effect.gen(function* () {
        const open = yield* opened(yield* database)
        yield* open.apply([counted({ id: "a\0b", by: 1 })], { position: 1, hash: "h" })
        const found = open.db.selectFrom("counter").select("total").where("id", "=", "a\0b")
        assert.deepEqual(yield* Effect.promise(() => found.execute()), [{ total: 1 }])
      }).pipe(Effect.scoped),
    )

    it.effect("equals its rebuild, which any process may do while another writes", () =>
      withLog(
        Effect.gen(function* () {
          const url = yield* database
          const writer = yield* model(url)
          const reader = yield* model(url, false)
          const counting = Effect.forEach(
            Array.from({ length: 150 }, (_, i) => i),
            (i) =>
              Effect.andThen(count(`c${i % 7}`, 1), i % 10 === 0 ? Effect.sleep(2) : Effect.void),
            { discard: true },
          )
          const again = Effect.repeat(reader.rebuild, { times: 4 })
          yield* Effect.all([counting, again], { concurrency: 2 })
          const last = yield* count("c1", 1)
          yield* Effect.all([writer.waitFor(last), reader.waitFor(last)])
          const before = yield* writer.dump
          yield* writer.rebuild
          assert.deepEqual(yield* writer.dump, before)
          assert.equal(yield* totals(reader.reader), 151)
          const found = yield* reader.difference
          assert.deepEqual([found.position, found.count], [last, 0])
        }),
      ),
    )

    it.effect("does not write to a database replaced by a rebuild while it waits", () =>
      Effect.gen(function* () {
        const url = yield* database
        const [open, other] = [yield* opened(url), yield* opened(url)]
        const commit = recordedOf(1)
        const beside = yield* other.shadow
        yield* project(beside, blueprint, [commit])
        const waiting = (count: number) =>
          until(
            "a lock",
            Effect.map(
              ask(url, "select 1 from pg_stat_activity where wait_event_type = 'Lock'"),
              (rows) => rows.length === count,
            ),
          )
        // A session that locks the row makes both wait for it, one after the other.
        const holder = yield* Effect.acquireRelease(
          Effect.promise(async () => {
            const client = new pg.Client({ connectionString: url })
            await client.connect()
            await client.query(`begin; select position from ${schema}.checkpoint for update`)
            return client
          }),
          (client) => Effect.promise(() => client.end()),
        )
        const replaced = yield* Effect.forkChild(other.replace(beside))
        yield* waiting(1)
        const written = yield* Effect.forkChild(Effect.flip(project(open, blueprint, [commit])))
        yield* waiting(2)
        yield* Effect.promise(() => holder.query("rollback"))
        yield* Fiber.join(replaced)
        yield* Fiber.join(written)
        assert.equal(yield* totals(open.db), 1)
      }).pipe(Effect.scoped),
    )

    it.effect("reports rows that differ from their rebuild, by key and column", () =>
      withLog(
        Effect.gen(function* () {
          const url = yield* database
          const { difference, catchUp } = yield* model(url)
          for (const id of ["B", "a", "c", "Z", "0", "z-Z"]) yield* count(id, 1)
          yield* catchUp
          yield* ask(url, `update ${schema}.counter set total = 9 where id = 'a'`)
          yield* ask(url, `delete from ${schema}.counter where id = 'Z'`)
          yield* ask(url, `insert into ${schema}.counter values ('b', 2, 'open')`)
          const { count: counted, rows, tables } = yield* difference
          assert.deepEqual([counted, tables], [3, 2])
          assert.deepEqual(rows, [
            { table: "counter", key: { id: "Z" }, kind: "missing", columns: [] },
            {
              table: "counter",
              key: { id: "a" },
              kind: "changed",
              columns: [{ column: "total", kept: 9, rebuilt: 1 }],
            },
            { table: "counter", key: { id: "b" }, kind: "extra", columns: [] },
          ])
        }),
      ),
    )

    it.effect("keeps an older version's tables while a process has them, and for a day", () =>
      withLog(
        Effect.gen(function* () {
          const url = yield* database
          const schemas = Effect.map(
            ask(
              url,
              "select nspname from pg_namespace where nspname like 'almanac\\_%' order by 1",
            ),
            (rows) => rows.map(({ nspname }) => nspname),
          )
          const tables = ask(url, `select '${schema}.counter'::regclass::oid as is_it`)
          const newer = { ...blueprint, version: 2 }
          yield* count("x", 1)
          yield* passing(
            Effect.gen(function* () {
              const older = yield* model(url)
              const before = yield* tables
              const next = yield* model(url, true, newer)
              const position = yield* count("x", 1)
              yield* Effect.all([older.waitFor(position), next.waitFor(position)])
              assert.deepEqual([yield* totals(older.db), yield* totals(next.db)], [2, 2])
              assert.deepEqual(yield* schemas, [schema, "almanac_test_v2"])
              assert.deepEqual(yield* tables, before)
            }),
          )
          const again = passing(model(url, true, newer))
          const unused = (days: number) =>
            ask(
              url,
              `update almanac.used set at = now() - interval '${days} days'
                where schema = '${schema}'`,
            )
          // Between two of its sessions an older release holds no lock, but it is still in use.
          yield* again
          yield* unused(0.9)
          yield* again
          assert.deepEqual(yield* schemas, [schema, "almanac_test_v2"])
          // A release that does not record its use is unknown: its day starts now.
          yield* ask(url, "delete from almanac.used")
          yield* again
          assert.deepEqual(yield* schemas, [schema, "almanac_test_v2"])
          yield* unused(1.1)
          // A running process counts as use, regardless of the recorded time.
          yield* passing(Effect.andThen(model(url), again))
          yield* again
          assert.deepEqual(yield* schemas, [schema, "almanac_test_v2"])
          yield* unused(1.1)
          yield* ask(url, `create schema ${schema}_building`)
          yield* again
          assert.deepEqual(yield* schemas, ["almanac_test_v2"])
          const left = yield* ask(url, "select schema from almanac.used")
          assert.deepEqual(left, [{ schema: "almanac_test_v2" }])
        }),
      ),
    )

    it.effect("reports its tables as used while it holds them", () =>
      Effect.gen(function* () {
        const url = yield* database
        yield* sweepPeriodically(optionsOf(url), blueprint)
        const lately = ask(url, "select at > now() - interval '1 hour' as is_it from almanac.used")
        for (let times = 0; times < 2; times++) {
          yield* ask(url, "update almanac.used set at = now() - interval '1 day'")
          for (let looks = 1; (yield* lately)[0]?.is_it !== true; looks++) {
            assert.isBelow(looks, 200)
            yield* TestClock.adjust("10 minutes")
            yield* Effect.promise(() => setTimeout(10))
          }
        }
      }).pipe(Effect.scoped, Effect.provide(TestClock.layer())),
    )

    it.effect("is rebuilt for another log, and after its tables were removed", () =>
      Effect.gen(function* () {
        const url = yield* database
        const read = (...by: ReadonlyArray<number>) =>
          withLog(
            Effect.gen(function* () {
              for (const each of by) yield* count("x", each)
              const { db } = yield* model(url)
              return yield* totals(db)
            }),
          )
        assert.equal(yield* read(1), 1)
        assert.equal(yield* read(1, 2, 3, 4), 10)
        // After a restore of an older copy, the visible position is ahead of its contents.
        assert.equal(yield* read(9, 8), 17)
        yield* withLog(
          Effect.gen(function* () {
            yield* count("x", 3)
            const { db, catchUp } = yield* model(url)
            yield* ask(url, `drop schema ${schema} cascade`)
            yield* count("x", 4)
            yield* catchUp.pipe(Effect.retry({ times: 5 }))
            assert.equal(yield* totals(db), 7)
          }),
        )
      }),
    )
  })
})
