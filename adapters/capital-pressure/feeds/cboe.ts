/** Cboe's indices at the close of each day. Source: market facts, A1.4 Cboe. */
import { Result } from "effect"
import { rowsOf } from "#adapters/capital-pressure/feeds/csv.ts"
import {
  bytes_max_default,
  type FeedPart,
  lifted,
  textOf,
} from "#adapters/capital-pressure/feeds/plan.ts"
import { seriesOf } from "#adapters/capital-pressure/feeds/series.ts"

/** The whole history of an index, "SKEW": of the column that has its name, or of the close. */
export const cboePart = (index: string): FeedPart => ({
  request: {
    publisher: "cboe",
    path: `/api/global/us_indices/daily_prices/${index}_History.csv`,
    bytes_max: bytes_max_default,
  },
  read: (bytes, today) => {
    const value = new RegExp(`^(${index}|close)$`, "i")
    const rows = Result.flatMap(textOf(bytes), (text) => rowsOf(text, /^date$/i, value))
    const dated = Result.map(rows, (all) =>
      all.map(({ date, value }) => ({ date: isoOf(date), value })),
    )
    return lifted(Result.flatMap(dated, (all) => seriesOf(all, today)))
  },
})

/** YYYY-MM-DD of MM/DD/YYYY; anything else stays what it is. */
const isoOf = (date: string) => date.replace(/^(\d{2})\/(\d{2})\/(\d{4})$/, "$3-$1-$2")
