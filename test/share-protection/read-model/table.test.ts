import { Schema } from "effect"
import { assert, describe, it } from "vitest"
import { table } from "#projections/table.ts"

const things = table({
  name: "thing",
  fields: {
    id: Schema.String,
    owner: Schema.NullOr(Schema.Literals(["me", "you"])),
    count: Schema.Int,
    done: Schema.Boolean,
    parts: Schema.NullOr(Schema.Array(Schema.String)),
  },
  by: "owner",
})

const row = { id: "a", owner: null, count: 1, done: true, parts: ["x"] } as const

describe("a table", () => {
  it("writes a row in SQLite's types, and reads it back unchanged", () => {
    const { sql, parameters } = things.insert(row)
    assert.equal(
      sql,
      'insert into "thing" ("id", "owner", "count", "done", "parts") values (?, ?, ?, ?, ?)',
    )
    assert.deepEqual(parameters, ["a", null, 1, 1, '["x"]'])
    const stored = { id: "a", owner: null, count: 1, done: 1, parts: '["x"]' }
    assert.deepEqual(things.toRow(stored), row)
    const other = { ...stored, done: 0, parts: null }
    assert.deepEqual(things.toRow(other), { ...row, done: false, parts: null })
  })

  it("changes the given columns of the named row", () => {
    assert.deepEqual(things.update("me", { done: false, parts: null }), {
      sql: 'update "thing" set "done" = ?, "parts" = ? where "owner" = ?',
      parameters: [0, null, "me"],
    })
    assert.deepEqual(things.add("me", { count: -1 }), {
      sql: 'update "thing" set "count" = "count" + ? where "owner" = ?',
      parameters: [-1, "me"],
    })
    assert.deepEqual(things.remove("me"), {
      sql: 'delete from "thing" where "owner" = ?',
      parameters: ["me"],
    })
  })

  it("ignores fields without a column, which events may have", () => {
    const more = { ...row, colour: "blue" }
    assert.deepEqual(things.insert(more), things.insert(row))
    const changed = { count: 2, colour: "blue" }
    assert.deepEqual(things.update("me", changed), things.update("me", { count: 2 }))
  })
})
