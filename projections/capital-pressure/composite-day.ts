/** The composite of each day with one. Source: document 3 §2 A CompositeHistoryPoint. */
import { CompositeEvent } from "#events/capital-pressure/composite.ts"
import { upsert } from "#projections/capital-pressure/upsert.ts"
import { projection } from "#projections/projection.ts"
import { statement } from "#projections/statement.ts"
import { dayOf } from "#schemas/capital-pressure/day.ts"

export interface CompositeTables {
  readonly capital_composite: {
    /** Days since 1970-01-01. */
    readonly day: number
    readonly z: number
    /** Null if the tier had no data that day. */
    readonly tier_1: number | null
    readonly tier_2: number | null
    readonly tier_3: number | null
    readonly tier_4: number | null
  }
}

const put = upsert<CompositeTables["capital_composite"]>("capital_composite")({
  keys: ["day"],
  sets: ["z", "tier_1", "tier_2", "tier_3", "tier_4"],
})

const remove = statement<CompositeTables>()<{ readonly day: number }>((db, { day }) =>
  db.deleteFrom("capital_composite").where("day", "=", day),
)

export const compositeDay = projection<CompositeTables, CompositeEvent>({
  part: "capital-pressure.composite",
  event: CompositeEvent,
  create: ({ schema }) => [
    schema
      .createTable("capital_composite")
      .addColumn("day", "integer", (column) => column.primaryKey())
      .addColumn("z", "real", (column) => column.notNull())
      .addColumn("tier_1", "real")
      .addColumn("tier_2", "real")
      .addColumn("tier_3", "real")
      .addColumn("tier_4", "real"),
  ],
  project: (event) =>
    event.type === "CompositeWithdrawn"
      ? event.days.map((ts) => remove({ day: dayOf(ts) }))
      : event.days.map(({ ts, z, tiers: [tier_1, tier_2, tier_3, tier_4] }) =>
          put({ day: dayOf(ts), z, tier_1, tier_2, tier_3, tier_4 }),
        ),
})
