import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { databaseFindings } from "#adapters/doctor/database.ts"
import { ask, describePostgres, optionsOf, Postgres } from "../../world/programs/postgres.ts"

describePostgres("a look at PostgreSQL", () => {
  layer(Postgres.layer, { excludeTestServices: true, timeout: "60 seconds" })((it) => {
    it.effect("reports version, space, missing permissions and an unreachable server", () =>
      Effect.gen(function* () {
        const { database } = yield* Postgres
        const connection = yield* database
        const look = (url: string, password = "") =>
          Effect.promise(() =>
            databaseFindings({ ...optionsOf(url), password: Redacted.make(password) }),
          )
        const [good] = yield* look(connection)
        assert.equal(good?.status, "ok")
        assert.match(good?.why ?? "", /^PostgreSQL \d+\S*.*, 100 connections$/)
        yield* ask(connection, "create role doctor login password 'secret'")
        const as_other = connection.replace("postgres@", "doctor@")
        const [poor] = yield* look(as_other, "secret")
        assert.include(poor?.why, "may not create schemas")
        const [wrong] = yield* look(as_other, "another")
        assert.equal(wrong?.status, "fail")
        assert.notInclude(wrong?.why, "another")
        const [unread] = yield* look(`${connection}?sslrootcert=/nowhere/ca.pem`)
        assert.include(unread?.why, "/nowhere/ca.pem")
        const [gone] = yield* look(`${connection}_absent`)
        assert.equal(gone?.status, "fail")
        assert.include(gone?.why, "does not exist")
      }),
    )
  })
})
