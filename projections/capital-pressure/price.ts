/** Every close of every ticker, in USD. Source: decisions of document 3, metric registry (A3). */
import { sql } from "kysely"
import { PriceEvent } from "#events/capital-pressure/price.ts"
import { upsert } from "#projections/capital-pressure/upsert.ts"
import { projection } from "#projections/projection.ts"
import { dayOf } from "#schemas/capital-pressure/day.ts"
import { partsOf } from "#schemas/capital-pressure/observation.ts"

export interface PriceTables {
  readonly capital_price: {
    readonly ticker: string
    /** Days since 1970-01-01. */
    readonly day: number
    readonly close: number
    readonly adjusted: number
  }
}

const quote = upsert<PriceTables["capital_price"]>("capital_price")({
  keys: ["ticker", "day"],
  sets: ["close", "adjusted"],
})

export const price = projection<PriceTables, PriceEvent>({
  part: "capital-pressure.price",
  event: PriceEvent,
  create: ({ schema }) => [
    schema
      .createTable("capital_price")
      .addColumn("ticker", "text", (column) => column.notNull())
      .addColumn("day", "integer", (column) => column.notNull())
      .addColumn("close", "real", (column) => column.notNull())
      .addColumn("adjusted", "real", (column) => column.notNull())
      .addPrimaryKeyConstraint("capital_price_key", ["ticker", "day"])
      .modifyEnd(sql`without rowid`),
  ],
  project: ({ ts, close, adjusted }, { id }) => [
    quote({ ticker: partsOf(id).metric_id, day: dayOf(ts), close, adjusted }),
  ],
})
