import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { archiveOf } from "../../../packages/zip/test/archive.ts"
import { refused, valuesOf } from "../../contract/feeds.ts"
import { given, metricOf } from "../../world/capital-pressure/feed-given.ts"
import {
  cftcRows,
  margin_headings,
  workbook,
} from "../../world/capital-pressure/publisher-answers.ts"

/** The feed's result for a given response body. */
const answering = Effect.fnUntraced(function* (metric_id: string, body: string | Buffer) {
  const { fetch, fake } = yield* given()
  fake.instead = (_asked, response) => {
    response.writeHead(200).end(body)
    return true
  }
  return fetch(metricOf(metric_id))
})

const refusing = (metric_id: string, body: string | Buffer, because: RegExp) =>
  Effect.flatMap(answering(metric_id, body), (answer) => refused(answer, because))

const reading = (metric_id: string, body: string | Buffer) =>
  Effect.flatMap(answering(metric_id, body), (answer) => Effect.map(answer, valuesOf))

describe("FINRA's workbook", () => {
  const row = ["2024-02", 700_000, 150_000, 200_000] as const

  it.live("is read wherever its table, columns and sheet have moved", () =>
    Effect.gen(function* () {
      const [month = "", debit = "", cash = "", margin = ""] = margin_headings
      const moved = yield* Effect.promise(() =>
        workbook(
          [
            ["Margin statistics", null, null, null, null],
            [null, null, null, null, null],
            [margin, cash, "Notes", month, debit],
            [200_000, 150_000, "x", "2024-02", "700,000"],
            [201_000, 151_000, null, new Date("2024-01-01T00:00:00Z"), 690_000],
            [null, null, null, null, null],
            [null, null, null, "Debit balances since 2010 hold more than before", null],
          ],
          "Another name",
        ),
      )
      assert.deepEqual(yield* reading("margin_debt", moved), [
        ["2024-01-31", 690_000] as const,
        ["2024-02-28", 700_000] as const,
      ])
      const cushion = yield* reading("margin_cushion", moved)
      assert.deepEqual(
        cushion.map(([date]) => date),
        ["2024-01-31", "2024-02-28"],
      )
      assert.closeTo(cushion[1]?.[1] ?? 0, 50, 1e-9)
    }),
  )

  it.live("has a cushion from February 2010 on, and debt before", () =>
    Effect.gen(function* () {
      const months = ["2010-03", "2010-02", "2010-01", "1997-01"]
      const rows = months.map((month) => [month, 200, month === "1997-01" ? null : 50, 50] as const)
      const book = yield* Effect.promise(() => workbook([margin_headings, ...rows]))
      assert.deepEqual(yield* reading("margin_cushion", book), [
        ["2010-02-28", 50] as const,
        ["2010-03-31", 50] as const,
      ])
      assert.lengthOf(yield* reading("margin_debt", book), 4)
    }),
  )

  it.live("of another form is refused", () =>
    Effect.gen(function* () {
      const book = (...rows: Parameters<typeof workbook>[0]) =>
        Effect.promise(() => workbook(rows, "Sheet\u00a01"))
      const other = yield* book(["Month", "Debit", "Credit"], ["2024-02", 1, 2])
      yield* refusing("margin_debt", other, /no sheet with the columns of margin balances \(Sheet/)
      const empty = yield* book(margin_headings, ["2024-02", null, 1, 1])
      yield* refusing("margin_debt", empty, /no debit balance for 2024-02/)
      const negative = yield* book(margin_headings, ["2024-02", -1, 1, 1])
      yield* refusing("margin_debt", negative, /no debit balance for 2024-02/)
      const words = yield* book(margin_headings, ["2024-02", 1, "n/a", 1])
      yield* refusing("margin_cushion", words, /no free credit balance for 2024-02/)
      const twice = yield* book(margin_headings, [...row], ["2024-02", 1, 1, 1])
      yield* refusing("margin_debt", twice, /two values for 2024-02-28/)
      const coming = yield* book(margin_headings, ["2190-01", 1, 1, 1])
      yield* refusing("margin_debt", coming, /2190-01-31, which is in the future/)
      const none = yield* book(margin_headings)
      yield* refusing("margin_debt", none, /no values/)
    }),
  )

  it.live("that is cut, or not a workbook, or unpacks without end, is refused", () =>
    Effect.gen(function* () {
      const good = yield* Effect.promise(() => workbook([margin_headings, [...row]]))
      yield* refusing("margin_debt", good.subarray(0, good.length - 30), /not a workbook/)
      yield* refusing(
        "margin_debt",
        Buffer.from("PK\u0003\u0004 and then nothing"),
        /not a workbook/,
      )
      const bad = Buffer.from(good)
      bad.fill(0x5a, 40, 300)
      yield* refusing("margin_debt", bad, /not a workbook/)
      const spaces = Buffer.alloc(12 * 1024 * 1024, " ")
      const bomb = { name: "xl/worksheets/sheet1.xml", content: spaces }
      const bombs = archiveOf([bomb, { ...bomb, name: "xl/worksheets/sheet2.xml", over: 0 }])
      assert.isBelow(bombs.length, 100_000)
      yield* refusing("margin_debt", bombs, /FINRA decompresses to more than 16 MB/)
      yield* refusing("margin_debt", archiveOf([{ ...bomb, bytes: 10 }]), /not a workbook/)
      const other = archiveOf([{ name: "xl/any.xml", content: Buffer.from("<a/>") }])
      yield* refusing("margin_debt", other, /not a workbook/)
    }),
  )
})

describe("the CFTC's rows", () => {
  const rows = cftcRows().slice(0, 5)
  const [first] = rows
  const changed = (change: object, n = 2) =>
    JSON.stringify(rows.map((row, place) => (place === n ? { ...row, ...change } : row)))

  it.live("are taken as they come", () =>
    Effect.gen(function* () {
      const values = yield* reading("cot_am_spx", JSON.stringify(rows.toReversed()))
      assert.lengthOf(values, 5)
      assert.closeTo(values[0]?.[1] ?? 0, 35, 1e-9)
    }),
  )

  const wrong: ReadonlyArray<readonly [string, object, RegExp]> = [
    ["a number that is none", { open_interest_all: "many" }, /JSON in an unexpected format/],
    ["a number instead of a text", { open_interest_all: 5 }, /JSON in an unexpected format/],
    ["a negative number", { asset_mgr_positions_long: "-5" }, /JSON in an unexpected format/],
    ["no open interest", { open_interest_all: "0" }, /exceed the open interest/],
    ["longs above it", { asset_mgr_positions_long: "3000000" }, /exceed the open interest/],
    ["shorts above it", { asset_mgr_positions_short: "3000000" }, /exceed the open interest/],
    ["no date", { report_date_as_yyyy_mm_dd: "2024-13-01T00:00:00.000" }, /not a date/],
    ["a time of day", { report_date_as_yyyy_mm_dd: "2024-01-16T10:00:00.000" }, /not a date/],
    [
      "a date to come",
      { report_date_as_yyyy_mm_dd: "2190-01-05T00:00:00.000" },
      /2190-01-05, which is in the future/,
    ],
    [
      "a date twice",
      { report_date_as_yyyy_mm_dd: first?.report_date_as_yyyy_mm_dd },
      /has 2024-01-02 twice/,
    ],
    ["two jumps", { asset_mgr_positions_short: "1900000" }, /2 weeks that change by more than 25/],
  ]
  for (const [what, change, because] of wrong) {
    it.live(`are all refused for one with ${what}`, () =>
      refusing("cot_am_spx", changed(change), because),
    )
  }

  it.live("may jump once", () =>
    Effect.gen(function* () {
      const text = changed({ asset_mgr_positions_short: "1900000" }, rows.length - 1)
      assert.lengthOf(yield* reading("cot_am_spx", text), rows.length)
    }),
  )

  it.live("are refused as anything else than rows", () =>
    Effect.gen(function* () {
      yield* refusing("cot_am_spx", '{"message":"error"}', /JSON in an unexpected format/)
      yield* refusing("cot_am_spx", "[]", /no values/)
    }),
  )
})

describe("FiscalData's and Cboe's answers", () => {
  it.live("are refused where they are not whole", () =>
    Effect.gen(function* () {
      const data = [{ record_date: "2024-01-02", debt_held_public_amt: "5" }]
      const pages = JSON.stringify({ data, meta: { "total-count": 2 } })
      yield* refusing("treasury_supply", pages, /returned 1 of 2 rows/)
      yield* refusing("treasury_supply", '{"error":"x"}', /JSON in an unexpected format/)
      yield* refusing("treasury_supply", '{"data":[', /JSON in an unexpected format/)
      yield* refusing("skew", "DATE,VVIX\n01/02/2024,1\n", /changed its columns.*DATE, VVIX/)
      yield* refusing("skew", "DATE,SKEW\n2024/01/02,1\n", /"2024\/01\/02", which is not a date/)
    }),
  )

  it.live("are read by the names of their columns", () =>
    Effect.gen(function* () {
      const moved = "Close,Extra,DATE\n141.5,x,01/02/2024\n"
      assert.deepEqual(yield* reading("skew", moved), [["2024-01-02", 141.5]])
      const old = "DATE,NFCI\n2024-01-05,.\n2024-01-12,-0.5\n"
      assert.deepEqual(yield* reading("nfci", old), [["2024-01-12", -0.5]])
      const fsi = "Credit,OFR FSI,Date\n9,-1.5,2024-01-02\n"
      assert.deepEqual(yield* reading("ofr_fsi", fsi), [["2024-01-02", -1.5]])
    }),
  )
})
