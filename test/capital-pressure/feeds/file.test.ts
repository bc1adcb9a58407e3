import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Feeds } from "#actors/capital-pressure/feeds.ts"
import { feedsFile } from "#adapters/capital-pressure/feeds-file.ts"
import { type FeedsPlace, feedsContract, refused, valuesOf } from "../../contract/feeds.ts"
import { metricOf, tempFolder } from "../../world/capital-pressure/feed-given.ts"

const rowsIn = (header: string, rows: ReadonlyArray<readonly [string, string]>) =>
  `${[header, ...rows.map((row) => row.join(","))].join("\r\n")}\r\n`

const placeIn = (folder: string): FeedsPlace => {
  const write = (name: string, text: string) =>
    Effect.promise(() => writeFile(join(folder, name), text))
  return {
    metric: metricOf("baa_spread"),
    ticker: "UNH",
    publish: (rows) => write("baa_spread.csv", rowsIn("date,value", rows)),
    publishText: (text) => write("baa_spread.csv", text),
    quote: (rows) => write("UNH.csv", rowsIn("Date,Close", rows)),
  }
}

describe("feeds of a folder", () => {
  feedsContract((name, body) =>
    it.live(name, () =>
      Effect.gen(function* () {
        const folder = yield* tempFolder
        yield* Effect.provide(body(placeIn(folder)), feedsFile(folder, join(folder, "feeds")))
      }),
    ),
  )

  it.live("names a file that is missing, too large or unreadable", () =>
    Effect.gen(function* () {
      const folder = yield* tempFolder
      const { fetch, prices } = yield* Effect.provide(
        Feeds,
        feedsFile(folder, join(folder, "feeds")),
      )
      yield* refused(fetch(metricOf("nfci")), /nfci\.csv does not exist\. Put the file/)
      yield* refused(prices("XLV"), /XLV\.csv does not exist/)
      yield* Effect.promise(() => mkdir(join(folder, "nfci.csv")))
      yield* refused(fetch(metricOf("nfci")), /nfci\.csv cannot be read \(EISDIR\)/)
      const large = Buffer.alloc(16 * 1024 * 1024 + 1, "date,value\n")
      yield* Effect.promise(() => writeFile(join(folder, "skew.csv"), large))
      yield* refused(fetch(metricOf("skew")), /skew\.csv cannot be read \(TOO_LARGE\)/)
    }),
  )

  it.live("reads what spreadsheets write, for any metric", () =>
    Effect.gen(function* () {
      const folder = yield* tempFolder
      const { fetch, prices } = yield* Effect.provide(
        Feeds,
        feedsFile(folder, join(folder, "feeds")),
      )
      const values = '\uFEFF"Date";"Value"\n'.replace(";", ",")
      const text = `${values}"2024-01-02","1.5"\r\n\r\n2024-01-03, 2 \r\n`
      yield* Effect.promise(() => writeFile(join(folder, "fund_flows.csv"), text))
      assert.deepEqual(valuesOf(yield* fetch(metricOf("fund_flows"))), [
        ["2024-01-02", 1.5] as const,
        ["2024-01-03", 2] as const,
      ])
      const quotes = "Date,Open,Close,Adj Close,Volume\n2024-01-02,1,10,9.5,7\n"
      yield* Effect.promise(() => writeFile(join(folder, "LLY.csv"), quotes))
      const { close, adjusted } = yield* prices("LLY")
      assert.deepEqual([[...close], [...adjusted]], [[10], [9.5]])
    }),
  )
})
