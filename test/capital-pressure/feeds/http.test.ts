import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger, Redacted } from "effect"
import { unchanged } from "#actors/capital-pressure/feeds.ts"
import { feedsHttp } from "#adapters/capital-pressure/feeds-http.ts"
import { dateOf, dayOf } from "#schemas/capital-pressure/day.ts"
import { metrics } from "#schemas/capital-pressure/registry.ts"
import { type FeedsPlace, feedsContract, refused, valuesOf } from "../../contract/feeds.ts"
import { feedsWith, given, metricOf, tempFolder } from "../../world/capital-pressure/feed-given.ts"
import { type FakePublisher, optionsAt, publisher } from "../../world/capital-pressure/publisher.ts"
import {
  cftcRows,
  datesOf,
  fredRows,
  good_key,
  holiday,
  margin_months,
} from "../../world/capital-pressure/publisher-answers.ts"

const placeAt = (fake: FakePublisher): FeedsPlace => {
  const texts = new Map<string, string>()
  fake.instead = ({ url }, response) => {
    const text = texts.get(url.pathname)
    if (text === undefined) return false
    const since = url.searchParams.get("cosd") ?? ""
    const [header = "", ...rows] = text.split("\n")
    const later = rows.filter((row) => since === "" || !/^\d{4}-/.test(row) || row >= since)
    response.writeHead(200, { "content-type": "text/csv" }).end([header, ...later].join("\n"))
    return true
  }
  const set = (path: string, text: string) => Effect.sync(() => void texts.set(path, text))
  const lines = (header: string, rows: ReadonlyArray<readonly [string, string]>) =>
    `${[header, ...rows.map((row) => row.join(","))].join("\n")}\n`
  return {
    metric: metricOf("baa_spread"),
    ticker: "UNH",
    publish: (rows) => set("/graph/fredgraph.csv", lines("observation_date,BAA10Y", rows)),
    publishText: (text) => set("/graph/fredgraph.csv", text),
    quote: (rows) => set("/q/d/l/", lines("Date,Close", rows)),
  }
}

const stooq_key = Redacted.make(good_key)

describe("feeds by HTTP", () => {
  feedsContract((name, body) =>
    it.live(name, () =>
      Effect.gen(function* () {
        const fake = yield* publisher()
        const options = optionsAt(fake.url, yield* tempFolder)
        const layer = feedsHttp({ ...options, prices_source: "stooq", stooq_key })
        yield* Effect.provide(body(placeAt(fake)), layer)
      }),
    ),
  )
})

/** Expected result of the fake responses by metric: the count, and one value with its date. */
const expected: Readonly<Record<string, readonly [number, string, number]>> = {
  hy_spread: [390, "2024-01-02", 3.04],
  baa_spread: [390, "2024-01-02", 2.04],
  net_liquidity: [78, "2024-01-03", 7_000_000 - 700_000 - 400_080],
  nfci: [78, "2024-01-10", -0.46],
  yield_curve: [390, "2024-01-02", -0.96],
  ofr_fsi: [391, "2024-01-02", -1.99],
  vix_term: [390, "2024-01-02", 15.04 / 18.04],
  cot_am_spx: [78, "2024-01-09", ((1_000_100 - 300_000) / 2_000_001) * 100],
  skew: [391, "2024-01-02", 140.1],
  margin_debt: [18, "2024-02-28", 701_000],
  margin_cushion: [18, "2024-01-31", (330_000 / 700_000) * 100],
  bank_credit: [78, "2024-01-10", 17_000.04],
  m2_growth: [18, "2024-02-01", 20_000.04],
  treasury_supply: [390, "2024-01-02", 27_000_000_000_001.25],
  equity_gdp: [6, "2024-01-01", (60_000_000 / 1000 / 28_000) * 100],
  hh_equity_share: [6, "2024-04-01", 40.04],
  net_issuance: [
    3,
    "2024-10-01",
    ((-300_000 + (0 + 0.04 + 0.08 + 0.01) / 4) / 60_000_000.01) * 100,
  ],
  erp_proxy: [6, "2024-01-01", (3_400_000 / 60_000_000) * 100 - 1.9],
  lending_standards: [6, "2024-04-01", 14.04],
}

describe("each metric", () => {
  const live = metrics.filter(({ stub }) => stub === null)

  it("is one of twenty, each with an expectation but the volatility", () => {
    assert.lengthOf(live, 20)
    const names = live.map(({ metric_id }) => metric_id).filter((id) => id !== "rates_vol")
    assert.deepEqual(names.toSorted(), Object.keys(expected).toSorted())
  })

  for (const metric of live) {
    it.live(`${metric.metric_id} is parsed from its documented format`, () =>
      Effect.gen(function* () {
        const { fetch } = yield* given()
        const rows = valuesOf(yield* fetch(metric))
        const [count, date, value] = expected[metric.metric_id] ?? [369, "", Number.NaN]
        assert.lengthOf(rows, count)
        const found = rows.find(([day]) => day === date)?.[1] ?? Number.NaN
        if (date !== "") assert.closeTo(found, value, 1e-9)
        assert.isFalse(rows.some(([day]) => day === holiday && metric.source_kind === "fred"))
        // A later first day returns the same values from that day on: no input of theirs is
        // missing.
        const since = "2025-03-03"
        const later = valuesOf(yield* fetch(metric, dayOf(since)))
        assert.deepEqual(
          later,
          rows.filter(([day]) => day >= since),
        )
      }),
    )

    it.live(`${metric.metric_id} is the same with a key of FRED`, () =>
      Effect.gen(function* () {
        const { fetch, fake } = yield* given({ fred_key: Redacted.make(good_key) })
        const { fetch: keyless } = yield* given()
        assert.deepEqual(valuesOf(yield* fetch(metric)), valuesOf(yield* keyless(metric)))
        const of_fred = fake.requests.filter(({ url }) => url.pathname.startsWith("/fred/"))
        const is_fred = metric.source_kind.startsWith("fred")
        assert.equal(of_fred.length > 0, is_fred)
        assert.isTrue(of_fred.every(({ url }) => url.searchParams.get("api_key") === good_key))
      }),
    )
  }
})

describe("what is asked", () => {
  it.live("is as documented, of each publisher", () =>
    Effect.gen(function* () {
      const { fetch, fake } = yield* given()
      const since = dayOf("2024-05-01")
      const sendRequest = Effect.fnUntraced(function* (id: string) {
        const before = fake.requests.length
        yield* fetch(metricOf(id), since)
        return fake.requests
          .slice(before)
          .map(({ url }) => decodeURIComponent(`${url.pathname}${url.search}`))
      })
      assert.deepEqual(yield* sendRequest("nfci"), ["/graph/fredgraph.csv?id=NFCI&cosd=2024-05-01"])
      assert.deepEqual((yield* sendRequest("net_liquidity")).toSorted(), [
        "/graph/fredgraph.csv?id=RRPONTSYD&cosd=2023-03-28",
        "/graph/fredgraph.csv?id=WALCL&cosd=2023-03-28",
        "/graph/fredgraph.csv?id=WDTGAL&cosd=2023-03-28",
      ])
      assert.deepEqual(yield* sendRequest("ofr_fsi"), ["/financial-stress-index/data/fsi.csv"])
      assert.deepEqual(yield* sendRequest("skew"), [
        "/api/global/us_indices/daily_prices/SKEW_History.csv",
      ])
      assert.deepEqual(yield* sendRequest("margin_debt"), [
        "/sites/default/files/2021-03/margin-statistics.xlsx",
      ])
      assert.deepEqual(yield* sendRequest("treasury_supply"), [
        "/services/api/fiscal_service/v2/accounting/od/debt_to_penny?fields=record_date," +
          "debt_held_public_amt&filter=record_date:gte:2024-05-01&sort=record_date" +
          "&page[size]=10000",
      ])
      assert.deepEqual(yield* sendRequest("cot_am_spx"), [
        "/resource/gpe5-46if.json?$select=report_date_as_yyyy_mm_dd,open_interest_all," +
          "asset_mgr_positions_long,asset_mgr_positions_short,lev_money_positions_long," +
          "lev_money_positions_short&$where=cftc_contract_market_code='13874A'+and+" +
          "report_date_as_yyyy_mm_dd>='2024-05-01'&$order=report_date_as_yyyy_mm_dd&$limit=5000",
      ])
    }),
  )

  it.live("says who asks", () =>
    Effect.gen(function* () {
      const plain = yield* given()
      yield* plain.fetch(metricOf("nfci"))
      assert.equal(plain.fake.requests[0]?.headers["user-agent"], "almanac/1.2.3")
      const named = yield* given({ contact: "ops@example.org\u00e9\n" })
      yield* named.fetch(metricOf("nfci"))
      assert.equal(
        named.fake.requests[0]?.headers["user-agent"],
        "almanac/1.2.3 (+ops@example.org)",
      )
    }),
  )
})

describe("a publisher that has nothing new", () => {
  const tagged = (fake: FakePublisher, header: string, value: string, asked_by: string) => {
    fake.instead = ({ headers }, response) => {
      if (headers[asked_by] === value) response.writeHead(304).end()
      else {
        response.writeHead(200, { [header]: value })
        response.end("observation_date,NFCI\n2024-01-03,1\n")
      }
      return true
    }
  }

  for (const [header, asked_by, value] of [
    ["etag", "if-none-match", '"abc"'],
    ["last-modified", "if-modified-since", "Wed, 03 Jan 2024 13:30:00 GMT"],
  ] as const) {
    it.live(`is asked by ${header}, once its values were kept`, () =>
      Effect.gen(function* () {
        const { fetch, fake, options } = yield* given()
        tagged(fake, header, value, asked_by)
        const nfci = metricOf("nfci")
        const first = yield* fetch(nfci)
        // A process that dies before the values reach the log receives them again.
        const again = yield* fetch(nfci)
        assert.isTrue(fake.requests.every(({ headers }) => headers[asked_by] === undefined))
        assert.deepEqual(valuesOf(again), valuesOf(first))
        if (again !== unchanged) yield* again.acknowledge
        const other_process = yield* feedsWith(options)
        assert.equal(yield* other_process.fetch(nfci), unchanged)
        assert.equal(fake.requests.at(-1)?.headers[asked_by], value)
        // A different first day is a different request.
        assert.deepEqual(valuesOf(yield* fetch(nfci, dayOf("2024-01-01"))), valuesOf(first))
        yield* other_process.reset(nfci)
        assert.deepEqual(valuesOf(yield* fetch(nfci)), valuesOf(first))
      }),
    )
  }

  it.live("is known by its bytes where it gives nothing to ask with", () =>
    Effect.gen(function* () {
      const { fetch, fake } = yield* given()
      const skew = metricOf("skew")
      const first = yield* fetch(skew)
      if (first !== unchanged) yield* first.acknowledge
      assert.equal(yield* fetch(skew), unchanged)
      fake.instead = (_asked, response) => {
        response.end("DATE,SKEW\n01/02/2024,141\n")
        return true
      }
      assert.deepEqual(valuesOf(yield* fetch(skew)), [["2024-01-02", 141]])
    }),
  )

  it.live("returns earlier values after only later days were fetched and acknowledged", () =>
    Effect.gen(function* () {
      const { fetch } = yield* given()
      for (const id of ["skew", "ofr_fsi", "margin_debt"]) {
        const since = dayOf("2025-06-01")
        const late = yield* fetch(metricOf(id), since)
        if (late !== unchanged) yield* late.acknowledge
        assert.equal(yield* fetch(metricOf(id), since), unchanged)
        assert.isAbove(valuesOf(yield* fetch(metricOf(id))).length, valuesOf(late).length)
      }
    }),
  )

  it.live("is asked in full after all where another part changed", () =>
    Effect.gen(function* () {
      const { fetch, fake } = yield* given()
      let near = "15"
      fake.instead = ({ url, headers }, response) => {
        const id = url.searchParams.get("id") ?? ""
        const value = id === "VIXCLS" ? near : "20"
        const etag = `"${id}${value}"`
        if (headers["if-none-match"] === etag) response.writeHead(304).end()
        else response.writeHead(200, { etag }).end(`DATE,${id}\n2024-01-02,${value}\n`)
        return true
      }
      const term = metricOf("vix_term")
      const first = yield* fetch(term)
      assert.deepEqual(valuesOf(first), [["2024-01-02", 0.75]])
      if (first !== unchanged) yield* first.acknowledge
      assert.equal(yield* fetch(term), unchanged)
      near = "10"
      assert.deepEqual(valuesOf(yield* fetch(term)), [["2024-01-02", 0.5]])
    }),
  )

  it.live("is not believed where it was not asked whether anything is new", () =>
    Effect.gen(function* () {
      const { fetch, fake } = yield* given()
      fake.instead = (_asked, response) => {
        response.writeHead(304).end()
        return true
      }
      yield* refused(fetch(metricOf("nfci")), /FRED returned status 304/)
    }),
  )
})

const keysStayAway = Effect.gen(function* () {
  const key = Redacted.make(good_key)
  const changes = { fred_key: key, stooq_key: key, prices_source: "stooq" } as const
  const { fetch, prices, fake, folder } = yield* given(changes)
  const first = yield* fetch(metricOf("nfci"))
  if (first !== unchanged) yield* first.acknowledge
  const names = yield* Effect.promise(() => readdir(folder))
  assert.deepEqual(names, ["nfci.json"])
  assert.isNotEmpty(valuesOf(yield* fetch(metricOf("cot_am_spx"))))
  const text = yield* Effect.promise(() => readFile(join(folder, "nfci.json"), "utf8"))
  assert.match(text, /"sha256":"[0-9a-f]{64}"/)
  assert.notInclude(text, good_key)
  for (const status of [302, 400, 403, 404, 500]) {
    const { fetch, prices } = yield* feedsWith({
      ...optionsAt(fake.url, folder),
      ...changes,
    })
    fake.instead = ({ url }, response) => {
      const location = `http://localhost:1${url.pathname}${url.search}`
      response.writeHead(status, { location }).end(url.href)
      return true
    }
    const failures = [
      yield* Effect.flip(fetch(metricOf("hy_spread"))),
      yield* Effect.flip(prices("UNH")),
    ]
    for (const failure of failures) {
      const whole = `${failure.detail} ${JSON.stringify(failure)} ${failure.stack}`
      assert.notInclude(whole, good_key)
      assert.notMatch(whole, /api_?key=/i)
    }
  }
  fake.instead = (_asked, response) => {
    response.end("{}")
    return true
  }
  yield* refused(prices("UNH"), /Stooq/)
})

describe("keys", () => {
  it.live("are in no failure, in no file and in no log", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const logger = Logger.make((entry) => lines.push(inspect(entry, { depth: 6 })))
      yield* Effect.provide(keysStayAway, Logger.layer([logger]))
      assert.isNotEmpty(lines)
      assert.isTrue(lines.some((line) => line.includes("certificate is not verified")))
      assert.isFalse(lines.some((line) => line.includes(good_key)))
    }),
  )

  it.live("that are wrong are said to be so, by their setting", () =>
    Effect.gen(function* () {
      const { fetch, fake } = yield* given({ fred_key: Redacted.make("wrong") })
      fake.instead = (_asked, response) => {
        response.writeHead(400).end('{"error_code":400,"error_message":"api_key"}')
        return true
      }
      yield* refused(
        fetch(metricOf("nfci")),
        /FRED API returned status 400.*Check capital\.fred_key\.$/,
      )
    }),
  )
})

describe("the responses of the fakes", () => {
  it("is more than one row of each", () => {
    assert.isAbove(fredRows("NFCI").length, 50)
    assert.isAbove(cftcRows().length, 50)
    assert.isAbove(margin_months.length, 10)
    assert.include(datesOf("daily"), holiday)
    assert.equal(dateOf(dayOf(holiday)), holiday)
  })
})
