/**
 * The CFTC's Traders in Financial Futures, futures only.
 *
 * Its certificate is not verified by default, so responses could be forged: each row must be
 * plausible. Source: market facts, A1.4 CFTC.
 */
import { Result, Schema } from "effect"
import {
  bytes_max_default,
  type FeedPart,
  fromResult,
  jsonOf,
  quoted,
} from "#adapters/capital-pressure/feeds/plan.ts"
import { ordered, parseDay } from "#adapters/capital-pressure/feeds/series.ts"
import type { Series } from "#projections/capital-pressure/store.ts"
import { dateOf } from "#schemas/capital-pressure/day.ts"

/** 96 years of weeks. */
const rows_max = 5000
/** The largest plausible weekly change, in points of open interest; one larger is allowed. */
const jump_points_max = 25

const count = /^\d{1,12}$/
const Count = Schema.String.check(Schema.isPattern(count))

const Report = Schema.Struct({
  report_date_as_yyyy_mm_dd: Schema.String,
  open_interest_all: Count,
  asset_mgr_positions_long: Count,
  asset_mgr_positions_short: Count,
})
const Reports = Schema.Array(Report)

const columns = [
  "report_date_as_yyyy_mm_dd",
  "open_interest_all",
  "asset_mgr_positions_long",
  "asset_mgr_positions_short",
  "lev_money_positions_long",
  "lev_money_positions_short",
].join(",")

/** Asset managers' net position in percent of open interest, weekly on Tuesday. */
export const cftcPart = (code: string, since: number | undefined): FeedPart => {
  const date_filter =
    since === undefined ? "" : ` and report_date_as_yyyy_mm_dd>='${dateOf(since)}'`
  const query = new URLSearchParams({
    $select: columns,
    // By code, because the contract's name has changed.
    $where: `cftc_contract_market_code='${code}'${date_filter}`,
    $order: "report_date_as_yyyy_mm_dd",
    $limit: String(rows_max),
  })
  return {
    request: {
      publisher: "cftc",
      path: `/resource/gpe5-46if.json?${query}`,
      bytes_max: bytes_max_default,
    },
    read: (bytes, today) =>
      fromResult(Result.flatMap(jsonOf(Reports, bytes), (reports) => netPositions(reports, today))),
  }
}

const netPositions = (
  reports: ReadonlyArray<typeof Report.Type>,
  today: number,
): Result.Result<Series, string> => {
  if (reports.length >= rows_max) return Result.fail(`returned ${rows_max} or more rows`)
  const by_day = new Map<number, number>()
  for (const report of reports) {
    const [date = "", time] = report.report_date_as_yyyy_mm_dd.split("T")
    const day = parseDay(date)
    if (day === undefined || (time !== undefined && !/^00:00:00(\.000)?$/.test(time))) {
      return Result.fail(
        `has the date "${quoted(report.report_date_as_yyyy_mm_dd)}", which is not a date`,
      )
    }
    if (day > today) return Result.fail(`has the date ${date}, which is in the future`)
    const open = Number(report.open_interest_all)
    const long = Number(report.asset_mgr_positions_long)
    const short = Number(report.asset_mgr_positions_short)
    if (open === 0 || long > open || short > open) {
      return Result.fail(`has positions for ${date} that exceed the open interest`)
    }
    if (by_day.has(day)) return Result.fail(`has ${date} twice`)
    by_day.set(day, ((long - short) / open) * 100)
  }
  return checkJumps(ordered(by_day))
}

const checkJumps = (series: Series): Result.Result<Series, string> => {
  const { values } = series
  const is_jump = (value: number, n: number) =>
    n > 0 && Math.abs(value - (values[n - 1] ?? value)) > jump_points_max
  const jumps = values.reduce((found, value, n) => found + (is_jump(value, n) ? 1 : 0), 0)
  return jumps > 1
    ? Result.fail(`has ${jumps} weeks that change by more than ${jump_points_max} points`)
    : Result.succeed(series)
}
