/** A read model of counters, for tests of read models. */
import { Effect } from "effect"
import { sql } from "kysely"
import { address, Commands } from "#actors/commands.ts"
import { projection } from "#projections/projection.ts"
import type { Blueprint } from "#projections/read-model.ts"
import { statement } from "#projections/statement.ts"
import { Count, Counter, CounterEvent } from "../world/counter.ts"

export interface Tables {
  readonly counter: { readonly id: string; readonly total: number; readonly state: string }
}

const create = statement<Tables>()
export const counted = create<{ id: string; by: number }>((db, { id, by }) =>
  db
    .insertInto("counter")
    .values({ id, total: by, state: "open" })
    .onConflict((conflict) =>
      conflict.column("id").doUpdateSet({ total: sql`counter.total + excluded.total` }),
    ),
)
export const closed = create<{ id: string }>((db, { id }) =>
  db.updateTable("counter").set({ state: "closed" }).where("id", "=", id),
)

const counters = projection<Tables, CounterEvent>({
  part: "test.counter",
  event: CounterEvent,
  create: ({ schema }) => [
    schema
      .createTable("counter")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("total", "integer", (column) => column.notNull())
      .addColumn("state", "text", (column) => column.notNull()),
  ],
  project: (event, { id }) =>
    CounterEvent.match(event, {
      Counted: ({ by }) => [counted({ id, by })],
      ClosePlanned: () => [],
      Closed: () => [closed({ id })],
    }),
})

export const blueprint: Blueprint<Tables> = {
  service: "test",
  version: 1,
  part: "test",
  projections: [counters],
}

export const count = Effect.fnUntraced(function* (id: string, by: number) {
  const commands = yield* Commands
  const command_id = crypto.randomUUID()
  const at = "2026-11-20T12:00:00.000Z"
  const command = address(Counter, id, Count.make({ by }))
  return yield* commands.send({ command_id, actor: "test", at }, command)
})
