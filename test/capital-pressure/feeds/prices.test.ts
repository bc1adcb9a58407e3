import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { dateOf, dayOf } from "#schemas/capital-pressure/day.ts"
import { refused } from "../../contract/feeds.ts"
import { given } from "../../world/capital-pressure/feed-given.ts"
import type { FakePublisher } from "../../world/capital-pressure/publisher.ts"
import {
  chart,
  good_key,
  holiday,
  opening,
} from "../../world/capital-pressure/publisher-answers.ts"

const day_s = 86_400
const jan_2 = opening("2024-01-02")

const answering = (fake: FakePublisher, body: unknown, status = 200) => {
  fake.instead = (_asked, response) => {
    response.writeHead(status).end(typeof body === "string" ? body : JSON.stringify(body))
    return true
  }
}

describe("prices of Yahoo", () => {
  it.live("are closes and adjusted closes, without days that have none", () =>
    Effect.gen(function* () {
      const { prices, fake } = yield* given()
      const { days, close, adjusted } = yield* prices("XLV")
      assert.lengthOf(days, 390)
      assert.isFalse(days.includes(dayOf(holiday)))
      assert.deepEqual([dateOf(days[1] ?? 0), close[1], adjusted[1]], ["2024-01-02", 101, 100])
      const [requests] = fake.requests
      assert.equal(requests?.url.pathname, "/v8/finance/chart/XLV")
      assert.equal(requests?.url.search, "?range=1y&interval=1d")
    }),
  )

  it.live("reach back as far as they are wanted, and at least a year", () =>
    Effect.gen(function* () {
      const { prices, fake } = yield* given()
      const today = Math.floor(Date.now() / 1000 / day_s)
      for (const [days, range] of [
        [0, "1y"] as const,
        [365, "1y"] as const,
        [366, "2y"] as const,
        [1800, "5y"] as const,
        [3650, "10y"] as const,
        [9000, "max"] as const,
      ]) {
        yield* prices("XLV", today - days)
        assert.equal(fake.requests.at(-1)?.url.searchParams.get("range"), range)
      }
    }),
  )

  it.live("leave out the price of a day that still runs, and keep it after its close", () =>
    Effect.gen(function* () {
      const { prices, fake } = yield* given()
      const now_s = Math.floor(Date.now() / 1000)
      // In the exchange's time zone it is noon, whenever this test runs.
      const gmtoffset = 12 * 3600 - (now_s % day_s)
      const rows = [[now_s - day_s, 10, 10] as const, [now_s - 60, 11, 11] as const]
      answering(fake, chart("UNH", rows, { gmtoffset }))
      assert.deepEqual([...(yield* prices("UNH")).close], [10])
      const closed = { regular: { end: now_s - 5 } }
      answering(fake, chart("UNH", rows, { gmtoffset, currentTradingPeriod: closed }))
      assert.deepEqual([...(yield* prices("UNH")).close], [10, 11])
      const open = { regular: { end: now_s + 600 } }
      answering(fake, chart("UNH", rows, { gmtoffset, currentTradingPeriod: open }))
      assert.deepEqual([...(yield* prices("UNH")).close], [10])
      // At 4:30 pm in New York's winter the response has no closing time, but the exchange has
      // closed.
      const late = 16.5 * 3600 - (now_s % day_s)
      answering(fake, chart("UNH", rows, { gmtoffset: late }))
      assert.deepEqual([...(yield* prices("UNH")).close], [10, 11])
    }),
  )

  it.live("of a day that comes twice are the later one", () =>
    Effect.gen(function* () {
      const { prices, fake } = yield* given()
      answering(fake, chart("UNH", [[jan_2, 10, 9], [jan_2 + 6.5 * 3600, 11, 10] as const]))
      const { close, adjusted } = yield* prices("UNH")
      assert.deepEqual([[...close], [...adjusted]], [[11], [10]])
    }),
  )

  const wrong: ReadonlyArray<readonly [string, unknown, RegExp]> = [
    ["another ticker", chart("XLV", [[jan_2, 1, 1]]), /another ticker/],
    ["a currency", chart("UNH", [[jan_2, 1, 1]], { currency: "EUR" }), /than USD/],
    ["no closing price", chart("UNH", [[jan_2, null, null]]), /has no closing price/],
    ["a close of nothing", chart("UNH", [[jan_2, 0, 0]]), /no price for 2024-01-02/],
    ["a day to come", chart("UNH", [[jan_2 + 36_500 * day_s, 1, 1]]), /in the future/],
    ["a web page", "<html>Sign in</html>", /a web page/],
    ["an error", { chart: { result: null, error: { code: "Not Found" } } }, /an error instead/],
    ["columns of unequal length", uneven(), /unequal length/],
    ["another form", { finance: {} }, /JSON in an unexpected format/],
  ]
  for (const [what, body, because] of wrong) {
    it.live(`are refused as ${what}`, () =>
      Effect.gen(function* () {
        const { prices, fake } = yield* given()
        answering(fake, body)
        const detail = yield* refused(prices("UNH"), because)
        assert.match(detail, /^UNH: Yahoo .*capital\.prices_source/)
      }),
    )
  }

  it.live("that are refused for their number are not asked for again", () =>
    Effect.gen(function* () {
      const { prices, fake } = yield* given()
      answering(fake, "Too Many Requests", 429)
      yield* refused(
        prices("UNH"),
        /^UNH: Yahoo returned status 429.*capital\.prices_source to stooq/,
      )
      const { length } = fake.requests
      yield* refused(
        prices("LLY"),
        /^LLY: Yahoo rejected an earlier request, .* in 15 minutes\. Use another/,
      )
      assert.lengthOf(fake.requests, length)
      const not_found = { chart: { result: null, error: { code: "Not Found" } } }
      const other = yield* given()
      answering(other.fake, not_found, 404)
      yield* refused(other.prices("UNH"), /Yahoo returned status 404/)
    }),
  )
})

function uneven() {
  const whole = chart("UNH", [[jan_2, 1, 1], [jan_2 + day_s, 2, 2] as const])
  whole.chart.result[0]?.timestamp.pop()
  return whole
}

describe("prices of Stooq", () => {
  const stooq_key = Redacted.make(good_key)

  it.live("are asked for with one's own key", () =>
    Effect.gen(function* () {
      const { prices, fake } = yield* given({ prices_source: "stooq", stooq_key })
      const { days, close, adjusted } = yield* prices("XLV")
      assert.lengthOf(days, 391)
      assert.deepEqual(close, adjusted)
      assert.equal(fake.requests[0]?.url.search, `?s=xlv.us&i=d&apikey=${good_key}`)
    }),
  )

  it.live("need a key, and a good one", () =>
    Effect.gen(function* () {
      const without = yield* given({ prices_source: "stooq" })
      yield* refused(without.prices("XLV"), /not set up\. Set capital\.stooq_key\.$/)
      assert.deepEqual(without.fake.requests, [])
      const wrong = Redacted.make("wrong")
      const { prices, fake } = yield* given({ prices_source: "stooq", stooq_key: wrong })
      yield* refused(prices("XLV"), /Stooq does not accept the key in capital\.stooq_key/)
      answering(fake, "Exceeded the daily hits limit")
      yield* refused(prices("XLV"), /no more requests today/)
      answering(fake, "")
      yield* refused(prices("XLV"), /Stooq returned nothing/)
      answering(fake, "No data")
      yield* refused(prices("XLV"), /changed its columns.*No data/)
    }),
  )
})

describe("the chain of providers", () => {
  const folderWith = Effect.fnUntraced(function* (folder: string, ticker: string) {
    const prices_dir = join(folder, "prices")
    yield* Effect.promise(() => mkdir(prices_dir))
    const text = "Date,Close\n2024-01-02,55\n"
    yield* Effect.promise(() => writeFile(join(prices_dir, `${ticker}.csv`), text))
    return prices_dir
  })

  it.live("continues with the next configured one, and reports each when all fail", () =>
    Effect.gen(function* () {
      const place = yield* given()
      const prices_dir = yield* folderWith(place.folder, "UNH")
      const stooq_key = Redacted.make("wrong")
      const { prices, fake } = yield* given({ stooq_key, prices_dir })
      fake.instead = ({ url }, response) => {
        if (!url.pathname.startsWith("/v8/")) return false
        response.writeHead(403).end()
        return true
      }
      // Both share one address here, so a refusal by the first blocks requests to the second too.
      assert.deepEqual([...(yield* prices("UNH")).close], [55])
      const detail = yield* refused(prices("LLY"), /^LLY: Yahoo .*Stooq .*LLY\.csv does not exist/)
      assert.notInclude(detail, "wrong")
    }),
  )

  it.live("sends no request if a folder is the source", () =>
    Effect.gen(function* () {
      const place = yield* given()
      const prices_dir = yield* folderWith(place.folder, "UNH")
      const { prices, fake } = yield* given({ prices_source: "csv", prices_dir })
      assert.deepEqual([...(yield* prices("UNH")).close], [55])
      yield* refused(prices("LLY"), /LLY\.csv does not exist/)
      assert.deepEqual(fake.requests, [])
      const without = yield* given({ prices_source: "csv" })
      yield* refused(without.prices("UNH"), /Set capital\.prices_dir\.$/)
    }),
  )

  it.live("has the index from FRED, unless the folder has it", () =>
    Effect.gen(function* () {
      const { prices, fake, folder } = yield* given()
      const { days, close, adjusted } = yield* prices("SP500")
      assert.lengthOf(days, 390)
      assert.closeTo(close[1] ?? 0, 5000.04, 1e-9)
      assert.deepEqual(close, adjusted)
      assert.equal(fake.requests[0]?.url.search, "?id=SP500")
      const prices_dir = yield* folderWith(folder, "SP500")
      const own = yield* given({ prices_source: "csv", prices_dir })
      assert.deepEqual([...(yield* own.prices("SP500")).close], [55])
      answering(fake, "a,b\n1,2\n")
      yield* refused(prices("SP500"), /^SP500: FRED has changed its columns/)
    }),
  )
})
