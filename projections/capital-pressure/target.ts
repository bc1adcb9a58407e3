/** The operator's price targets for the watchlist. Source: document 3 §2 A WatchlistOut. */
import { WatchlistEvent } from "#events/capital-pressure/watchlist.ts"
import { upsert } from "#projections/capital-pressure/upsert.ts"
import { projection } from "#projections/projection.ts"
import { statement } from "#projections/statement.ts"

export interface TargetTables {
  readonly capital_target: {
    readonly ticker: string
    /** USD. */
    readonly target: number
    readonly fwd_pe: number | null
    /** YYYY-MM-DD */
    readonly set_on: string | null
    /** 1 if it was generated. */
    readonly demo: number
  }
}

const clear = statement<TargetTables>()<object>((db) => db.deleteFrom("capital_target"))

const put = upsert<TargetTables["capital_target"]>("capital_target")({
  keys: ["ticker"],
  sets: ["target", "fwd_pe", "set_on", "demo"],
})

export const target = projection<TargetTables, WatchlistEvent>({
  part: "capital-pressure.watchlist",
  event: WatchlistEvent,
  create: ({ schema }) => [
    schema
      .createTable("capital_target")
      .addColumn("ticker", "text", (column) => column.primaryKey())
      .addColumn("target", "real", (column) => column.notNull())
      .addColumn("fwd_pe", "real")
      .addColumn("set_on", "text")
      .addColumn("demo", "integer", (column) => column.notNull()),
  ],
  project: ({ targets, demo }) => [
    clear({}),
    ...targets.map((target) => put({ ...target, demo: demo ? 1 : 0 })),
  ],
})
