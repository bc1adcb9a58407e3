/** Connections to a PostgreSQL server: its URL, sessions, and interruptions. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted } from "effect"
import { sql } from "kysely"
import { locks, postgres, session } from "#postgres"
import { openDatabase, readModel } from "#projections/read-model.ts"
import { databases } from "#server/read-models.ts"
import { guideText } from "../docs/guide.ts"
import { temporaryFolder } from "../world/programs/nats.ts"
import { ask, describePostgres, optionsOf, Postgres } from "../world/programs/postgres.ts"
import { given } from "../world/settings-given.ts"
import { blueprint, count, counted } from "./counters.ts"
import { database, model, opened, schema, totals, until, withLog } from "./postgres-given.ts"

describePostgres("a PostgreSQL server", () => {
  layer(Postgres.layer, { excludeTestServices: true, timeout: "60 seconds" })((it) => {
    it.effect("connects with a password that no message contains", () =>
      Effect.gen(function* () {
        const url = yield* database
        const secret = "s p/a@c&e%41"
        const guide = /^```sql\n([\s\S]*?)^```$/m.exec(guideText("guide-scale-out.md"))?.[1] ?? ""
        for (const line of guide.trim().split("\n")) yield* ask(url, line.replace("...", secret))
        const connection = url.replace(/postgres@(.*)\/.*$/, "almanac@$1/almanac")
        const as = (password: string) =>
          Effect.flatMap(
            Layer.build(postgres({ ...optionsOf(connection), password: Redacted.make(password) })),
            (around) => Effect.provideContext(openDatabase(blueprint), around),
          )
        const open = yield* as(secret)
        assert.equal(yield* totals(open.db), 0)
        const { detail } = yield* Effect.flip(as("hunter2"))
        assert.include(detail, "password authentication failed")
        assert.notInclude(detail, "hunter2")
      }).pipe(Effect.scoped),
    )

    it.effect("is reached by what else its URL says, and has no table but in its schema", () =>
      Effect.gen(function* () {
        const url = yield* database
        const [, socket = "", name = ""] = /@(.*)\/(.*)$/.exec(url) ?? []
        const options = encodeURIComponent("-c statement_timeout=9s")
        const connection = `postgresql://postgres@/${name}?host=${socket}&options=${options}`
        const password = Redacted.make("not needed")
        const around = yield* Layer.build(postgres({ ...optionsOf(connection), password }))
        const open = yield* Effect.provideContext(openDatabase(blueprint), around)
        yield* open.apply([counted({ id: "a", by: 1 })], { position: 1, hash: "h" })
        assert.equal(yield* totals(open.db), 1)
        const strays = ask(url, "select tablename from pg_tables where schemaname = 'public'")
        assert.deepEqual(yield* strays, [])
      }).pipe(Effect.scoped),
    )

    it.effect("reads the files named in its URL again on each retry", () =>
      Effect.gen(function* () {
        const path = join(yield* temporaryFolder, "ca.pem")
        const options = optionsOf(`${yield* database}?sslrootcert=${path}`)
        const begun = () => Promise.resolve()
        const { run } = yield* session(options, schema, { onConnected: begun })
        const why = Effect.map(Effect.flip(run(() => Promise.resolve())), ({ detail }) => detail)
        assert.match(yield* why, /ENOENT/)
        writeFileSync(path, "")
        // This server does not offer TLS on its socket.
        assert.match(yield* why, /SSL/)
      }).pipe(Effect.scoped),
    )

    it.effect("keeps a session where what fails late was asked of the one before", () =>
      Effect.gen(function* () {
        const begun = () => Promise.resolve()
        const options = optionsOf(yield* database)
        const { run, isCurrent } = yield* session(options, schema, { onConnected: begun })
        const late = Promise.withResolvers<void>()
        const waits = yield* Effect.forkChild(Effect.exit(run(() => late.promise)))
        yield* Effect.flip(run((client) => client.query("select 1 / 0")))
        const second = yield* run((client) => Promise.resolve(client))
        late.reject(new Error("late"))
        yield* Fiber.join(waits)
        assert.isTrue(isCurrent(second))
      }).pipe(Effect.scoped),
    )

    it.effect("is written by the configured process, with any roles", () =>
      withLog(
        Effect.gen(function* () {
          yield* count("x", 1)
          const { connection, password } = optionsOf(yield* database)
          const data = { dir: yield* temporaryFolder }
          const of = { ...given({ data, database: { connection, password } }), roles: [] }
          const around = yield* Layer.build(databases(of, true))
          const { db } = yield* Effect.provideContext(readModel(blueprint), around)
          assert.equal(yield* totals(db), 1)
        }),
      ),
    )

    it.effect("answers keyed queries while long ones run", () =>
      Effect.gen(function* () {
        const open = yield* opened(yield* database)
        for (let n = 0; n < 8; n++) {
          const one = Effect.tryPromise(() => sql`select pg_sleep(20)`.execute(open.reader))
          yield* Effect.forkChild(Effect.ignore(one), { startImmediately: true })
        }
        assert.equal(yield* totals(open.db), 0)
      }).pipe(Effect.scoped),
    )

    it.effect("ends at the server what takes longer than it may, and says what to do", () =>
      Effect.gen(function* () {
        const url = yield* database
        const options = { ...optionsOf(url), statement_timeout_seconds: 1 }
        const around = yield* Layer.build(postgres(options))
        const open = yield* Effect.provideContext(openDatabase(blueprint), around)
        const sleep = (db: typeof open.db) =>
          Effect.tryPromise({
            try: () => sql`select pg_sleep(60)`.execute(db),
            catch: (failed) => failed,
          }).pipe(Effect.flip)
        const both = [sleep(open.db), sleep(open.reader)]
        for (const cause of yield* Effect.all(both, { concurrency: 2 })) {
          assert.propertyVal(cause, "_tag", "DatabaseUnusable")
          assert.include(String(cause), "database.statement_timeout_seconds: request less")
        }
        const sleeping = `select 1 from pg_stat_activity
          where datname = current_database() and wait_event = 'PgSleep'`
        assert.deepEqual(yield* ask(url, sleeping), [])
        // Writes have a timeout of their own.
        yield* open.apply([counted({ id: "a", by: 1 })], { position: 1, hash: "h" })
        assert.equal(yield* totals(open.db), 1)
      }).pipe(Effect.scoped),
    )

    it.effect(
      "times out waiting for tables that another process creates, and names the table",
      () =>
        Effect.gen(function* () {
          const url = yield* database
          const holder = yield* session(optionsOf(url), schema, {
            onConnected: () => Promise.resolve(),
          })
          yield* holder.run((client) =>
            client.query("select pg_advisory_lock($1, hashtext($2))", [locks.built, `+${schema}`]),
          )
          const read = yield* holder.run((client) => client.query("show lock_timeout"))
          assert.deepEqual(read.rows, [{ lock_timeout: "20s" }])
          const around = yield* Layer.build(
            postgres({ ...optionsOf(url), lock_timeout_seconds: 1 }),
          )
          const opening = Effect.provideContext(openDatabase(blueprint), around)
          const { detail } = yield* Effect.flip(opening)
          assert.match(detail, /lock.*database\.lock_timeout_seconds: see pg_locks/)
          yield* Effect.sync(holder.drop)
          assert.equal(yield* totals((yield* opening).db), 0)
        }).pipe(Effect.scoped),
    )

    it.effect("leaves no session of a comparison that cannot begin", () =>
      Effect.gen(function* () {
        const url = yield* database
        const open = yield* opened(url)
        const beside = yield* open.shadow
        const sessions = Effect.map(
          ask(url, "select 1 from pg_stat_activity where datname = current_database()"),
          (rows) => rows.length,
        )
        const before = yield* sessions
        yield* ask(url, `alter table ${schema}.checkpoint rename to other`)
        yield* Effect.flip(Effect.scoped(open.compare(beside, 1)))
        const is_over = Effect.map(sessions, (now) => now === before)
        yield* until("the session's end", is_over)
      }).pipe(Effect.scoped),
    )

    it.effect("says that it cannot be reached where its server is silent", () =>
      withLog(
        Effect.gen(function* () {
          const url = yield* database
          const shared = yield* model(url)
          const others = `select pid from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid()`
          const pids = (yield* ask(url, others)).map(({ pid }) => Number(pid))
          const signal = (name: "SIGSTOP" | "SIGCONT") =>
            Effect.sync(() => {
              for (const pid of pids) process.kill(pid, name)
            })
          const is_away = Effect.sync(() => !shared.isReachable())
          yield* signal("SIGSTOP")
          yield* until("trouble", is_away).pipe(Effect.ensuring(signal("SIGCONT")))
          yield* until("reached", Effect.sync(shared.isReachable))
        }),
      ),
    )

    it.effect("reports that its server is offline, and resumes afterwards", () =>
      withLog(
        Effect.gen(function* () {
          const { kill, start } = yield* Postgres
          const url = yield* database
          const shared = yield* model(url)
          yield* shared.waitFor(yield* count("x", 1))
          yield* kill
          const failed = yield* Effect.tryPromise({
            try: () => shared.db.selectFrom("counter").selectAll().execute(),
            catch: (cause) => cause,
          }).pipe(Effect.flip)
          assert.propertyVal(failed, "_tag", "DatabaseUnusable")
          yield* until(
            "trouble",
            Effect.sync(() => !shared.isReachable()),
          )
          const position = yield* count("x", 1)
          assert.equal((yield* Effect.flip(shared.waitFor(position)))._tag, "Behind")
          // A process that starts now waits for the server.
          const late = yield* Effect.forkChild(opened(url), { startImmediately: true })
          yield* Effect.sleep(50)
          yield* start
          yield* Fiber.join(late)
          yield* shared.catchUp.pipe(Effect.retry({ times: 10 }))
          assert.equal(yield* totals(shared.db), 2)
          yield* until("reached", Effect.sync(shared.isReachable))
        }),
      ),
    )
  })
})
