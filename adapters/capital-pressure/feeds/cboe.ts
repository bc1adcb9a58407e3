/** Cboe's daily index closes. Source: market facts, A1.4 Cboe. */
import { Result } from "effect"
import { rowsOf } from "#adapters/capital-pressure/feeds/csv.ts"
import {
  bytes_max_default,
  type FeedPart,
  fromResult,
  textOf,
} from "#adapters/capital-pressure/feeds/plan.ts"
import { seriesOf } from "#adapters/capital-pressure/feeds/series.ts"

/** The history of an index such as "SKEW", from the column with its name or the close. */
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
    return fromResult(Result.flatMap(dated, (all) => seriesOf(all, today)))
  },
})

/** Converts MM/DD/YYYY to YYYY-MM-DD; other text is unchanged. */
const isoOf = (date: string) => date.replace(/^(\d{2})\/(\d{2})\/(\d{4})$/, "$3-$1-$2")
