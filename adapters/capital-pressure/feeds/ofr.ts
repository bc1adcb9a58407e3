/** The Office of Financial Research's stress index. Source: market facts, A1.4 OFR. */
import { Result } from "effect"
import { rowsOf } from "#adapters/capital-pressure/feeds/csv.ts"
import {
  bytes_max_default,
  type FeedPart,
  fromResult,
  textOf,
} from "#adapters/capital-pressure/feeds/plan.ts"
import { seriesOf } from "#adapters/capital-pressure/feeds/series.ts"

/** The total index; the other columns are its components and regions. */
export const ofrPart: FeedPart = {
  request: {
    publisher: "ofr",
    path: "/financial-stress-index/data/fsi.csv",
    bytes_max: bytes_max_default,
  },
  read: (bytes, today) => {
    const rows = Result.flatMap(textOf(bytes), (text) => rowsOf(text, /^date$/i, /^ofr fsi$/i))
    return fromResult(Result.flatMap(rows, (all) => seriesOf(all, today)))
  },
}
