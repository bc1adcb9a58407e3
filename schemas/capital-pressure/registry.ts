/**
 * The registry: 24 metrics in four tiers; 20 have a feed, and 4 are stubs.
 *
 * Source: decisions of document 3, metric registry (tables A1.1 to A1.3).
 */
import type { Metric } from "#schemas/capital-pressure/metric.ts"

const window_days = { 1: 365, 3: 1096 } as const
const comparison_days = { yoy: 365, level: 0 } as const

interface Row
  extends Omit<
    Metric,
    | "cadence_label"
    | "indicator_window"
    | "indicator_lag"
    | "zscore_years"
    | "include_in_composite"
    | "rules"
    | "reasons"
    | "stub"
  > {
  /** For cadences that have a weekday. */
  readonly weekday?: string
  readonly zscore_years?: 1 | 3
  readonly is_gauge?: boolean
  readonly rules?: Metric["rules"]
  /** Reasons for a bull, neutral and bear vote. */
  readonly reasons: readonly [bull: string, neutral: string, bear: string]
  readonly stub?: string
}

const metric = ({ weekday, is_gauge = false, zscore_years = 3, reasons, ...row }: Row): Metric => ({
  ...{ rules: [], stub: null },
  ...row,
  cadence_label: weekday === undefined ? row.cadence : `${row.cadence} (${weekday})`,
  indicator_window: window_days[zscore_years],
  indicator_lag: comparison_days[row.indicator_kind],
  zscore_years,
  include_in_composite: !is_gauge,
  reasons: { bull: reasons[0], neutral: reasons[1], bear: reasons[2] },
})

/** In display order. */
export const metrics: ReadonlyArray<Metric> = [
  metric({
    ...{ metric_id: "hy_spread", name: "High yield spread", tier: 1 },
    ...{ source: "ICE BofA via FRED", source_kind: "fred", source_series: "BAMLH0A0HYM2" },
    ...{ unit: "%", format: "spread", cadence: "daily", publication_lag: 1 },
    ...{ direction_kind: "higher_bearish", indicator_kind: "level", zscore_years: 1 },
    description:
      "Yield spread of high-yield corporate bonds over Treasuries. The publisher offers three " +
      "years; this server keeps older values.",
    rules: [{ when: "at_or_above", level: 6, vote: "bear", text: ">= 6.0 bear" }],
    reasons: [
      "Junk borrowers pay less than their one-year norm; credit is easy",
      "Spread sits inside its usual one-year band",
      "Spread is wide for the year; lenders ask to be paid for risk",
    ],
  }),
  metric({
    ...{ metric_id: "baa_spread", name: "Baa minus 10-year", tier: 1 },
    ...{ source: "Moody's via FRED", source_kind: "fred", source_series: "BAA10Y" },
    ...{ unit: "%", format: "spread", cadence: "daily", publication_lag: 1 },
    ...{ direction_kind: "higher_bearish", indicator_kind: "level" },
    description: "Yield spread of Baa corporate bonds over the 10-year Treasury.",
    rules: [{ when: "at_or_above", level: 3, vote: "bear", text: ">= 3.0 bear" }],
    reasons: [
      "Investment grade premium is thin",
      "Premium near its three-year mean",
      "Premium is rising against Treasuries",
    ],
  }),
  metric({
    ...{ metric_id: "net_liquidity", name: "Net central bank liquidity", tier: 1 },
    ...{
      source: "Federal Reserve H.4.1 via FRED",
      source_kind: "fred_derived",
      source_series: "WALCL-WDTGAL-RRPONTSYD*1000",
    },
    ...{ unit: "% yoy", format: "growth", cadence: "weekly", weekday: "Wed", publication_lag: 1 },
    ...{ direction_kind: "higher_bullish", indicator_kind: "yoy" },
    description:
      "Federal Reserve assets less the Treasury's account and reverse repos: the central bank " +
      "liquidity available to markets.",
    reasons: [
      "Central bank cash is growing faster than usual",
      "Cash growth is ordinary",
      "Cash is being drained faster than usual",
    ],
  }),
  metric({
    ...{ metric_id: "nfci", name: "National financial conditions", tier: 1 },
    ...{ source: "Chicago Fed via FRED", source_kind: "fred", source_series: "NFCI" },
    ...{ unit: "index", format: "index", cadence: "weekly", weekday: "Fri", publication_lag: 5 },
    ...{ direction_kind: "higher_bearish", indicator_kind: "level" },
    description:
      "Index of 105 weekly measures of money, debt and equity markets. 0 is the mean since " +
      "1971. The whole history is revised each week.",
    rules: [{ when: "above", level: 0, vote: "bear", text: "> 0 bear" }],
    reasons: [
      "Conditions looser than the long-run mean and its own trend",
      "Conditions near trend",
      "Conditions tighter than average",
    ],
  }),
  metric({
    ...{ metric_id: "yield_curve", name: "10-year minus 3-month", tier: 1 },
    ...{ source: "Federal Reserve via FRED", source_kind: "fred", source_series: "T10Y3M" },
    ...{ unit: "pp", format: "points", cadence: "daily", publication_lag: 1 },
    ...{ direction_kind: "higher_bullish", indicator_kind: "level" },
    description:
      "Yield of the 10-year Treasury less that of the 3-month bill. Below zero, the curve is " +
      "inverted.",
    rules: [{ when: "below", level: 0, vote: "bear", text: "< 0 bear" }],
    reasons: [
      "Curve is steep for this cycle",
      "Slope is near its mean",
      "Curve is flat or inverted",
    ],
  }),
  metric({
    ...{ metric_id: "ofr_fsi", name: "Financial stress gauge", tier: 1 },
    ...{ source: "Office of Financial Research", source_kind: "ofr", source_series: "OFR FSI" },
    ...{ unit: "index", format: "index", cadence: "daily", publication_lag: 3 },
    ...{ direction_kind: "higher_bearish", indicator_kind: "level", is_gauge: true },
    description:
      "Index of 33 measures of financial stress. 0 is normal. It is a composite itself, so it " +
      "is a gauge and does not vote.",
    rules: [{ when: "above", level: 0, vote: "bear", text: "> 0 bear" }],
    reasons: ["Stress below normal", "Stress close to normal", "Stress above normal"],
  }),
  metric({
    ...{ metric_id: "vix_term", name: "VIX term slope (VIX / VIX3M)", tier: 2 },
    ...{ source: "Cboe via FRED", source_kind: "fred_derived", source_series: "VIXCLS/VXVCLS" },
    ...{ unit: "ratio", format: "ratio", cadence: "daily", publication_lag: 1 },
    ...{ direction_kind: "higher_bearish", indicator_kind: "level" },
    description:
      "Ratio of one-month to three-month implied volatility. Above 1, near-term fear is higher.",
    rules: [{ when: "above", level: 1, vote: "bear", text: "> 1.0 bear" }],
    reasons: [
      "Near-dated fear is cheap against three months",
      "Slope is ordinary",
      "Fear is front-loaded",
    ],
  }),
  metric({
    ...{ metric_id: "rates_vol", name: "Treasury rate volatility (21-day, annual bp)", tier: 2 },
    ...{ source: "Federal Reserve via FRED", source_kind: "fred_derived", source_series: "DGS10" },
    ...{ unit: "bp", format: "basis_points", cadence: "daily", publication_lag: 1 },
    ...{ direction_kind: "higher_bearish", indicator_kind: "level" },
    description:
      "Annualized standard deviation of the last 21 daily changes of the 10-year Treasury yield.",
    reasons: ["Rates are calm", "Rate swings are ordinary", "Rate swings are large"],
  }),
  metric({
    ...{ metric_id: "cot_am_spx", name: "Asset manager net, S&P futures", tier: 2 },
    ...{
      source: "CFTC Traders in Financial Futures",
      source_kind: "cftc",
      source_series: "13874A",
    },
    ...{
      unit: "% of OI",
      format: "percent",
      cadence: "weekly",
      weekday: "Tue",
      publication_lag: 4,
    },
    ...{ direction_kind: "higher_bullish", indicator_kind: "level" },
    description:
      "Net long position of asset managers in S&P 500 futures, as a share of open interest. " +
      "Published on Fridays, as of Tuesday.",
    reasons: [
      "Institutions are adding futures exposure",
      "Positioning near its mean",
      "Institutions are cutting exposure",
    ],
  }),
  metric({
    ...{ metric_id: "skew", name: "Tail hedging demand (SKEW)", tier: 2 },
    ...{ source: "Cboe", source_kind: "cboe", source_series: "SKEW" },
    ...{ unit: "index", format: "index", cadence: "daily", publication_lag: 1 },
    ...{ direction_kind: "higher_bearish", indicator_kind: "level", is_gauge: true },
    description:
      "Relative price of crash protection in S&P 500 options. It measures fragility, so it is " +
      "a gauge and does not vote.",
    reasons: ["Tail hedges are cheap", "Tail pricing ordinary", "Tail hedges are bid"],
  }),
  metric({
    ...{ metric_id: "put_call", name: "Equity put/call volume", tier: 2 },
    ...{ source: "Cboe", source_kind: "none", source_series: null },
    ...{ unit: "ratio", format: "ratio", cadence: "daily", publication_lag: 1 },
    ...{ direction_kind: "higher_bearish", indicator_kind: "level" },
    description: "Ratio of traded put options to traded call options on single stocks.",
    reasons: ["Traders buy few puts", "Puts and calls are in balance", "Traders crowd into puts"],
    stub: "Cboe publishes no free history.",
  }),
  metric({
    ...{ metric_id: "uvol_dvol", name: "NYSE up/down volume", tier: 2 },
    ...{ source: "NYSE", source_kind: "none", source_series: null },
    ...{ unit: "ratio", format: "ratio", cadence: "daily", publication_lag: 1 },
    ...{ direction_kind: "higher_bullish", indicator_kind: "level" },
    description: "Ratio of the volume of rising stocks to that of falling stocks on the NYSE.",
    reasons: [
      "Volume is concentrated in rising stocks",
      "Volume is spread evenly",
      "Volume is concentrated in falling stocks",
    ],
    stub: "The exchange sells it only under a licence.",
  }),
  metric({
    ...{ metric_id: "margin_debt", name: "Margin debt growth", tier: 3 },
    ...{ source: "FINRA margin statistics", source_kind: "finra", source_series: "debit balances" },
    ...{ unit: "% yoy", format: "growth", cadence: "monthly", publication_lag: 25 },
    ...{ direction_kind: "higher_bullish", indicator_kind: "yoy" },
    description: "Year-over-year growth of margin debt.",
    reasons: ["Borrowing to invest is expanding", "Growth ordinary", "Borrowing is shrinking"],
  }),
  metric({
    ...{ metric_id: "margin_cushion", name: "Free credit / debit balances", tier: 3 },
    ...{
      source: "FINRA margin statistics",
      source_kind: "finra",
      source_series: "(cash+margin credit)/debit",
    },
    ...{ unit: "%", format: "percent", cadence: "monthly", publication_lag: 25 },
    ...{ direction_kind: "higher_bullish", indicator_kind: "level", is_gauge: true },
    description:
      "Ratio of free cash in brokerage accounts to margin debt. It measures leverage, so it is " +
      "a gauge and does not vote.",
    reasons: [
      "Cash cushion is comfortable",
      "Cushion ordinary",
      "Investors are heavily leveraged: little cash behind the debt",
    ],
  }),
  metric({
    ...{ metric_id: "bank_credit", name: "Bank credit growth", tier: 3 },
    ...{ source: "Federal Reserve H.8 via FRED", source_kind: "fred", source_series: "TOTBKCR" },
    ...{ unit: "% yoy", format: "growth", cadence: "weekly", weekday: "Wed", publication_lag: 9 },
    ...{ direction_kind: "higher_bullish", indicator_kind: "yoy" },
    description: "Year-over-year growth of the credit of all commercial banks.",
    rules: [{ when: "below", level: 0, vote: "bear", text: "< 0 bear" }],
    reasons: ["Banks are lending faster", "Lending growth ordinary", "Lending growth is fading"],
  }),
  metric({
    ...{ metric_id: "m2_growth", name: "M2 growth", tier: 3 },
    ...{ source: "Federal Reserve H.6 via FRED", source_kind: "fred", source_series: "M2SL" },
    ...{ unit: "% yoy", format: "growth", cadence: "monthly", publication_lag: 56 },
    ...{ direction_kind: "higher_bullish", indicator_kind: "yoy" },
    description: "Year-over-year growth of the money stock M2.",
    rules: [{ when: "below", level: 0, vote: "bear", text: "< 0 bear" }],
    reasons: ["Money stock accelerates", "Growth ordinary", "Money stock slows or shrinks"],
  }),
  metric({
    ...{ metric_id: "treasury_supply", name: "Public debt absorption", tier: 3 },
    ...{
      source: "Treasury FiscalData",
      source_kind: "fiscaldata",
      source_series: "debt_held_public_amt",
    },
    ...{ unit: "% yoy", format: "growth", cadence: "daily", publication_lag: 1 },
    ...{ direction_kind: "higher_bearish", indicator_kind: "yoy" },
    description: "Year-over-year growth of Treasury debt held by the public.",
    reasons: [
      "Treasury borrows less from the market",
      "Supply ordinary",
      "Treasury supply crowds other borrowers",
    ],
  }),
  metric({
    ...{ metric_id: "fund_flows", name: "Equity fund and ETF net flows", tier: 3 },
    ...{ source: "ICI", source_kind: "none", source_series: null },
    ...{ unit: "USD bn", format: "index", cadence: "weekly", publication_lag: 8 },
    ...{ direction_kind: "higher_bullish", indicator_kind: "level" },
    description: "Net flow of money into equity mutual funds and exchange-traded funds.",
    reasons: ["Money flows into funds", "Flows are ordinary", "Money leaves funds"],
    stub: "The Investment Company Institute publishes it only as a workbook.",
  }),
  metric({
    ...{ metric_id: "buyback_yield", name: "Gross buyback yield", tier: 3 },
    ...{ source: "S&P Dow Jones Indices", source_kind: "none", source_series: null },
    ...{ unit: "%", format: "percent", cadence: "quarterly", publication_lag: 80 },
    ...{ direction_kind: "higher_bullish", indicator_kind: "level" },
    description: "Share buybacks of large companies, as a percentage of their market value.",
    reasons: ["Companies buy back freely", "Buybacks are ordinary", "Companies hold back"],
    stub: "It is published only in a quarterly press release.",
  }),
  metric({
    ...{ metric_id: "equity_gdp", name: "Corporate equity value / GDP", tier: 4 },
    ...{
      source: "Z.1 and BEA via FRED",
      source_kind: "fred_derived",
      source_series: "NCBEILQ027S/1000/GDP*100",
    },
    ...{ unit: "%", format: "percent", cadence: "quarterly", publication_lag: 165 },
    ...{ direction_kind: "higher_bearish", indicator_kind: "level" },
    description: "Market value of corporate equities as a percentage of GDP.",
    reasons: [
      "Equity value is low for its recent range",
      "Near its mean",
      "Equity value is stretched against output",
    ],
  }),
  metric({
    ...{ metric_id: "hh_equity_share", name: "Household equity share", tier: 4 },
    ...{ source: "Z.1 via FRED", source_kind: "fred", source_series: "BOGZ1FL153064486Q" },
    ...{ unit: "%", format: "percent", cadence: "quarterly", publication_lag: 165 },
    ...{ direction_kind: "higher_bearish", indicator_kind: "level", is_gauge: true },
    description:
      "Share of equities in household financial assets. It measures exposure, so it is a gauge " +
      "and does not vote.",
    reasons: [
      "Households have room to buy",
      "Share ordinary",
      "Households are already loaded with stock",
    ],
  }),
  metric({
    ...{ metric_id: "net_issuance", name: "Net equity issuance, 4 quarters", tier: 4 },
    ...{
      source: "Z.1 via FRED",
      source_kind: "fred_derived",
      source_series: "mean4(NCBCEBQ027S)/NCBEILQ027S*100",
    },
    ...{ unit: "% of value", format: "percent", cadence: "quarterly", publication_lag: 165 },
    ...{ direction_kind: "higher_bearish", indicator_kind: "level" },
    description:
      "Equity issuance less buybacks over four quarters, as a percentage of market value.",
    reasons: [
      "Companies retire stock on balance",
      "Supply ordinary",
      "Companies add stock to the market",
    ],
  }),
  metric({
    ...{ metric_id: "erp_proxy", name: "Profit yield minus real 10-year", tier: 4 },
    ...{
      source: "BEA, Z.1, Treasury via FRED",
      source_kind: "fred_derived",
      source_series: "CP*1000/NCBEILQ027S*100-DFII10",
    },
    ...{ unit: "pp", format: "points", cadence: "quarterly", publication_lag: 165 },
    ...{ direction_kind: "higher_bullish", indicator_kind: "level" },
    description:
      "Earnings yield of corporate equities less the real yield of the 10-year Treasury.",
    rules: [{ when: "below", level: 0, vote: "bear", text: "< 0 bear" }],
    reasons: [
      "Profits pay well over real bonds",
      "Premium ordinary",
      "Profits pay little over real bonds",
    ],
  }),
  metric({
    ...{ metric_id: "lending_standards", name: "Banks tightening business loans", tier: 4 },
    ...{ source: "Fed SLOOS via FRED", source_kind: "fred", source_series: "DRTSCILM" },
    ...{ unit: "net %", format: "percent", cadence: "quarterly", publication_lag: 45 },
    ...{ direction_kind: "higher_bearish", indicator_kind: "level" },
    description: "Net percentage of banks that tighten standards for business loans.",
    rules: [
      { when: "above", level: 20, vote: "bear", text: "> 20 bear" },
      { when: "below", level: 0, vote: "bull", text: "< 0 bull" },
    ],
    reasons: [
      "More banks ease than tighten",
      "Standards little changed",
      "Banks are closing the tap",
    ],
  }),
]

const by_id = new Map(metrics.map((one) => [one.metric_id, one]))

/** The metric with this id, if any. */
export const findMetric = (metric_id: string): Metric | undefined => by_id.get(metric_id)
