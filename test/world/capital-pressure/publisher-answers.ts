/** Each publisher's response to each documented request. Source: market facts, A1.4. */
import writeXlsxFile from "write-excel-file/node"
import { dateOf, dayOf, weekdayOf } from "#schemas/capital-pressure/day.ts"

export interface Answer {
  readonly type: string
  readonly body: string | Buffer
}

const csv = (header: string, rows: ReadonlyArray<string>): Answer => ({
  type: "text/csv",
  body: `${[header, ...rows].join("\n")}\n`,
})
const json = (value: unknown): Answer => ({
  type: "application/json",
  body: JSON.stringify(value),
})

const first_day = dayOf("2024-01-01")
const last_day = dayOf("2025-06-30")

/** Dates of a cadence from January 2024 to June 2025. */
export const datesOf = (cadence: "daily" | "weekly" | "monthly" | "quarterly") => {
  const days = Array.from({ length: last_day - first_day + 1 }, (_, n) => first_day + n)
  const is_of = (day: number) => {
    const [, month = "", date = ""] = dateOf(day).split("-")
    if (cadence === "daily") return weekdayOf(day) % 6 !== 0
    if (cadence === "weekly") return weekdayOf(day) === 3
    return date === "01" && (cadence === "monthly" || Number(month) % 3 === 1)
  }
  return days.filter(is_of).map(dateOf)
}

/** The cadence and first value of each FRED series. */
const fred_series: Readonly<Record<string, readonly [Parameters<typeof datesOf>[0], number]>> = {
  BAMLH0A0HYM2: ["daily", 3],
  BAA10Y: ["daily", 2],
  WALCL: ["weekly", 7_000_000],
  WDTGAL: ["weekly", 700_000],
  RRPONTSYD: ["daily", 400],
  NFCI: ["weekly", -0.5],
  T10Y3M: ["daily", -1],
  VIXCLS: ["daily", 15],
  VXVCLS: ["daily", 18],
  DGS10: ["daily", 4],
  TOTBKCR: ["weekly", 17_000],
  M2SL: ["monthly", 20_000],
  NCBEILQ027S: ["quarterly", 60_000_000],
  GDP: ["quarterly", 28_000],
  BOGZ1FL153064486Q: ["quarterly", 40],
  NCBCEBQ027S: ["quarterly", -300_000],
  CP: ["quarterly", 3_400],
  DFII10: ["daily", 1.9],
  DRTSCILM: ["quarterly", 14],
  SP500: ["daily", 5000],
}

/** A holiday, on which daily series have an empty cell. */
export const holiday = "2024-07-04"

/** FRED's rows of a series; "" on the holiday. */
export const fredRows = (series: string): ReadonlyArray<readonly [string, string]> => {
  const [cadence, amount] = fred_series[series] ?? ["daily", 0]
  return datesOf(cadence).map((date, n) => [
    date,
    cadence === "daily" && date === holiday ? "" : String(amount + ((n * 37) % 11) / 100),
  ])
}

const fred = (url: URL): Answer | undefined => {
  const id = url.searchParams.get("id") ?? ""
  const since = url.searchParams.get("cosd") ?? ""
  if (!(id in fred_series)) return undefined
  const rows = fredRows(id).filter(([date]) => date >= since)
  return csv(
    `observation_date,${id}`,
    rows.map(([date, value]) => `${date},${value}`),
  )
}

/** The only valid key. */
export const good_key = "0123456789abcdef0123456789abcdef"

const fredJson = (url: URL): Answer | undefined => {
  const id = url.searchParams.get("series_id") ?? ""
  const since = url.searchParams.get("observation_start") ?? ""
  if (!(id in fred_series)) return undefined
  const observations = fredRows(id)
    .filter(([date]) => date >= since)
    .map(([date, value]) => ({
      realtime_start: "2026-01-01",
      realtime_end: "2026-01-01",
      date,
      value: value === "" ? "." : value,
    }))
  const { length: count } = observations
  return json({ count, offset: 0, limit: 100_000, observations })
}

const ofr = () =>
  csv(
    "Date,OFR FSI,Credit,Equity valuation,Safe assets,Funding,Volatility,United States," +
      "Other advanced economies,Emerging markets",
    datesOf("daily").map((date, n) => `${date},${-2 + n / 100},1,2,3,4,5,6,7,8`),
  )

export const cftcRows = () =>
  datesOf("weekly").map((date, n) => ({
    report_date_as_yyyy_mm_dd: `${dateOf(dayOf(date) - 1)}T00:00:00.000`,
    open_interest_all: String(2_000_000 + n),
    asset_mgr_positions_long: String(1_000_000 + n * 100),
    asset_mgr_positions_short: "300000",
    lev_money_positions_long: "1",
    lev_money_positions_short: "2",
  }))

const cftc = (url: URL) => {
  const where = url.searchParams.get("$where") ?? ""
  const [, since = ""] = />='([\d-]+)'/.exec(where) ?? []
  if (!where.startsWith("cftc_contract_market_code='13874A'")) return json([])
  return json(cftcRows().filter((row) => row.report_date_as_yyyy_mm_dd >= since))
}

const cboe = (index: string) =>
  csv(
    index === "SKEW" ? "DATE,SKEW" : "DATE,OPEN,HIGH,LOW,CLOSE",
    datesOf("daily").map((date, n) => {
      const [year, month, day] = date.split("-")
      return `${month}/${day}/${year},${index === "SKEW" ? "" : "1,2,3,"}${140 + n / 10}`
    }),
  )

/** Months, newest first; debit, cash and margin credit in USD millions. */
export const margin_months = datesOf("monthly")
  .map((date, n) => [date.slice(0, 7), 700_000 + n * 1000, 160_000, 170_000 + n] as const)
  .toReversed()

export const margin_headings = [
  "Year-Month",
  "Debit Balances in Customers' Securities Margin Accounts",
  "Free Credit Balances in Customers' Cash Accounts",
  "Free Credit Balances in Customers' Securities Margin Accounts",
]

/** A workbook of cells: strings, numbers, dates, or empty. */
export const workbook = (
  rows: ReadonlyArray<ReadonlyArray<string | number | Date | null>>,
  sheet = "Customer Margin Balances",
): Promise<Buffer> => {
  const data = rows.map((row) =>
    row.map((value) => {
      if (value === null) return null
      if (typeof value === "number") return { value, type: Number }
      if (typeof value === "string") return { value, type: String }
      return { value, type: Date, format: "yyyy-mm" }
    }),
  )
  return writeXlsxFile(data, { sheet }).toBuffer()
}

/** Written once, because a workbook contains its creation time. */
let published: Promise<Buffer> | undefined

const finra = async (): Promise<Answer> => {
  published ??= workbook([margin_headings, ...margin_months])
  return {
    type: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    body: await published,
  }
}

const fiscaldata = (url: URL) => {
  const [, since = ""] = /^record_date:gte:(.+)$/.exec(url.searchParams.get("filter") ?? "") ?? []
  const data = datesOf("daily")
    .map((record_date, n) => ({
      record_date,
      debt_held_public_amt: record_date === holiday ? "null" : `${27_000_000_000_000 + n}.25`,
    }))
    .filter(({ record_date }) => record_date >= since)
  const meta = { count: data.length, "total-count": data.length, "total-pages": 1 }
  return json({ data, meta, links: { self: "", first: "", prev: null, next: null, last: "" } })
}

/** Yahoo's format, for days with their closes and adjusted closes. */
export const chart = (
  ticker: string,
  days: ReadonlyArray<readonly [time_s: number, close: number | null, adjusted: number | null]>,
  meta: object = {},
) => ({
  chart: {
    result: [
      {
        meta: { symbol: ticker, currency: "USD", gmtoffset: -18_000, ...meta },
        timestamp: days.map(([time]) => time),
        indicators: {
          quote: [{ close: days.map(([, close]) => close), volume: days.map(() => 1) }],
          adjclose: [{ adjclose: days.map(([, , adjusted]) => adjusted) }],
        },
      },
    ],
    error: null,
  },
})

/** The opening time of New York at 9:30 winter time, in seconds. */
export const opening = (date: string) => dayOf(date) * 86_400 + 14.5 * 3600

const yahoo = (ticker: string) =>
  json(
    chart(
      ticker,
      datesOf("daily").map((date, n) => {
        const close = date === holiday ? null : 100 + n
        return [opening(date), close, close && close - 1]
      }),
    ),
  )

const stooq = (url: URL): Answer => {
  if (url.searchParams.get("apikey") !== good_key) {
    return { type: "text/plain", body: "Get your apikey:\n\n1. Open https://stooq.com" }
  }
  const rows = datesOf("daily").map((date, n) => `${date},1,2,3,${100 + n},5`)
  return csv("Date,Open,High,Low,Close,Volume", rows)
}

/** The documented response to a request; undefined for any other request. */
export const documented = async (url: URL): Promise<Answer | undefined> => {
  const { pathname: path } = url
  if (path === "/graph/fredgraph.csv") return fred(url)
  if (path === "/fred/series/observations") return fredJson(url)
  if (path === "/financial-stress-index/data/fsi.csv") return ofr()
  if (path === "/resource/gpe5-46if.json") return cftc(url)
  if (path === "/sites/default/files/2021-03/margin-statistics.xlsx") return finra()
  if (path === "/q/d/l/") return stooq(url)
  if (path.endsWith("/v2/accounting/od/debt_to_penny")) return fiscaldata(url)
  const [, index] = /^\/api\/global\/us_indices\/daily_prices\/(\w+)_History.csv$/.exec(path) ?? []
  if (index !== undefined) return cboe(index)
  const [, ticker] = /^\/v8\/finance\/chart\/(\w+)$/.exec(path) ?? []
  return ticker === undefined ? undefined : yahoo(ticker)
}
