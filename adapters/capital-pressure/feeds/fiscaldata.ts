/** The Treasury's FiscalData: debt to the penny. Source: market facts, A1.4 FiscalData. */
import { Result, Schema } from "effect"
import {
  bytes_max_default,
  type FeedPart,
  fromResult,
  jsonOf,
} from "#adapters/capital-pressure/feeds/plan.ts"
import { seriesOf } from "#adapters/capital-pressure/feeds/series.ts"
import { dateOf } from "#schemas/capital-pressure/day.ts"

/** Earlier, debt held by the public was not published daily. */
const first_date = "2005-01-01"
/** 38 years of business days, the largest page that the API returns. */
const rows_max = 10_000

const Debt = Schema.Struct({
  data: Schema.Array(
    Schema.Struct({ record_date: Schema.String, debt_held_public_amt: Schema.String }),
  ),
  meta: Schema.Struct({ "total-count": Schema.Int }),
})

/** Treasury debt held by the public, in USD, by day. */
export const debtPart = (since: number | undefined): FeedPart => {
  const requested = since === undefined ? first_date : dateOf(since)
  const start = requested < first_date ? first_date : requested
  const query = new URLSearchParams({
    fields: "record_date,debt_held_public_amt",
    filter: `record_date:gte:${start}`,
    sort: "record_date",
    "page[size]": String(rows_max),
  })
  return {
    request: {
      publisher: "fiscaldata",
      path: `/services/api/fiscal_service/v2/accounting/od/debt_to_penny?${query}`,
      bytes_max: bytes_max_default,
    },
    read: (bytes, today) => {
      const series = Result.flatMap(jsonOf(Debt, bytes), ({ data, meta }) => {
        const total = meta["total-count"]
        if (data.length !== total) return Result.fail(`returned ${data.length} of ${total} rows`)
        const rows = data.map((row) => ({ date: row.record_date, value: row.debt_held_public_amt }))
        return seriesOf(rows, today)
      })
      return fromResult(series)
    },
  }
}
