import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { readWatchlist } from "#adapters/capital-pressure/watchlist-file.ts"
import { SetWatchlist, watchlist } from "#schemas/capital-pressure/watchlist.ts"
import { tempFolder } from "../../world/capital-pressure/feed-given.ts"

const reading = Effect.fnUntraced(function* (text: string) {
  const path = join(yield* tempFolder, "watchlist.json")
  yield* Effect.promise(() => writeFile(path, text))
  return readWatchlist(path)
})

describe("the watchlist's file", () => {
  it.live("that is not there leaves each name without a target", () =>
    Effect.gen(function* () {
      const targets = yield* readWatchlist(join(yield* tempFolder, "none", "watchlist.json"))
      const unset = { target: 0, fwd_pe: null, set_on: null }
      assert.deepEqual(
        targets,
        watchlist.map(({ ticker }) => ({ ticker, ...unset })),
      )
      Schema.asserts(SetWatchlist.fields.targets, targets)
    }),
  )

  it.live("sets the names that it has", () =>
    Effect.gen(function* () {
      const read = yield* reading(
        `\uFEFF[{"ticker":"LLY","target":900.5,"fwd_pe":31.2,"set_on":"2026-01-05"},
          {"ticker":"UNH","target":400,"fwd_pe":null}]`,
      )
      const targets = yield* read
      const set = targets.filter(({ target }) => target > 0)
      assert.deepEqual(set, [
        { ticker: "UNH", target: 400, fwd_pe: null, set_on: null },
        { ticker: "LLY", target: 900.5, fwd_pe: 31.2, set_on: "2026-01-05" },
      ])
      assert.lengthOf(targets, 8)
    }),
  )

  const wrong: ReadonlyArray<readonly [string, RegExp]> = [
    ["[", /watchlist\.json: is not a JSON array of objects\.$/],
    ['{"UNH":1}', /not a JSON array/],
    ["[1]", /not a JSON array of objects/],
    ['[{"ticker":"AAPL","target":1}]', /entry 1 \(AAPL\) needs a ticker of UNH, LLY/],
    ['[{"target":1}]', /entry 1 needs a ticker/],
    ['[{"ticker":"UNH","target":1},{"ticker":"LLY"}]', /entry 2 \(LLY\) needs a target above 0/],
    ['[{"ticker":"UNH","target":0}]', /entry 1 \(UNH\) needs a target above 0/],
    ['[{"ticker":"UNH","target":"400"}]', /needs a target above 0/],
    ['[{"ticker":"UNH","target":1,"fwd_pe":"17x"}]', /entry 1 \(UNH\) needs a fwd_pe/],
    ['[{"ticker":"UNH","target":1,"set_on":"yesterday"}]', /needs a set_on of the form YYYY/],
    ['[{"ticker":"UNH","target":1,"note":"x"}]', /entry 1 \(UNH\) has the unknown field note/],
    [
      '[{"ticker":"UNH","target":1},{"ticker":"UNH","target":2}]',
      /entry 2 \(UNH\) is listed twice/,
    ],
  ]
  for (const [text, because] of wrong) {
    it.live(`is refused in one line as ${text}`, () =>
      Effect.gen(function* () {
        const { message } = yield* Effect.flip(yield* reading(text))
        assert.match(message, because)
        assert.notInclude(message, "\n")
      }),
    )
  }

  it.live("that cannot be read is no empty one", () =>
    Effect.gen(function* () {
      const path = join(yield* tempFolder, "watchlist.json")
      yield* Effect.promise(() => mkdir(path))
      assert.match((yield* Effect.flip(readWatchlist(path))).message, /EISDIR/)
    }),
  )
})
