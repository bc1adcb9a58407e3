import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { Watchlist } from "#actors/capital-pressure/watchlist.ts"
import { type WatchlistEvent, WatchlistSet } from "#events/capital-pressure/watchlist.ts"
import { SetWatchlist, watchlist } from "#schemas/capital-pressure/watchlist.ts"
import { coded } from "../world/capital-pressure/coded.ts"
import { assertStorable, everyState } from "../world/state-table.ts"

const merck = { ticker: "MRK", target: 120, fwd_pe: 12.5, set_on: "2026-11-01" } as const
const lilly = { ticker: "LLY", target: 900, fwd_pe: null, set_on: null } as const

const both = WatchlistSet.make({ targets: [merck, lilly], demo: false })
const one = WatchlistSet.make({ targets: [merck], demo: false })
const empty = WatchlistSet.make({ targets: [], demo: false })
const generated = WatchlistSet.make({ targets: [merck], demo: true })

const states = {
  absent: [],
  real: [both],
  "of one": [both, one],
  empty: [empty],
  demo: [generated],
} satisfies Record<string, ReadonlyArray<WatchlistEvent>>

describe("the watchlist", () => {
  everyState(coded(Watchlist), states, {
    SetWatchlist: [
      {
        command: SetWatchlist.make({ targets: [merck, lilly], demo: false }),
        in: { real: [], demo: "DemoMixed" },
        otherwise: [both],
      },
      {
        with: "to nothing",
        command: SetWatchlist.make({ targets: [], demo: false }),
        in: { empty: [], demo: "DemoMixed" },
        otherwise: [empty],
      },
      {
        with: "to what was generated",
        command: SetWatchlist.make({ targets: [merck], demo: true }),
        in: { absent: [generated], demo: [] },
        otherwise: "DemoMixed",
      },
    ],
  })

  it("recognises its list after it was stored, and a number that differs", () => {
    const targets = watchlist.map(({ ticker }, i) => ({ ...merck, ticker, target: i / 3 }))
    const command = SetWatchlist.make({ targets, demo: false })
    const saved = assertStorable(Watchlist, [WatchlistSet.make({ targets, demo: false })])
    const restored = Watchlist.restore(JSON.parse(JSON.stringify(saved)))
    assert.isDefined(restored)
    assert.deepEqual(Watchlist.decide(restored, command), Result.succeed([]))
    const moved = targets.map((target) => ({ ...target, target: target.target + 1 }))
    const other = Watchlist.decide(restored, SetWatchlist.make({ targets: moved, demo: false }))
    assert.lengthOf(Result.getOrThrow(other), 1)
  })
})
