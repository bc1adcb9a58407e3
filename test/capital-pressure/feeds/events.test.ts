import { assert, describe, it } from "@effect/vitest"
import { Feed } from "#actors/capital-pressure/feed.ts"
import { type FeedEvent, FeedFailed, FeedIngested } from "#events/capital-pressure/feed.ts"
import { RecordFeedFailure, RecordIngest } from "#schemas/capital-pressure/feed.ts"
import { coded } from "../../world/capital-pressure/coded.ts"
import { assertStorable, everyState } from "../../world/state-table.ts"

const at = "2026-11-20T17:00:00.000Z"
const later = "2026-11-21T17:00:00.000Z"
const values = { observed: 3, revised: 1, newest: "2026-11-19" }
const detail = "FRED returned status 500."

const ingested = FeedIngested.make({ at, ...values, demo: false })
const generated = FeedIngested.make({ at, ...values, demo: true })
const failed = FeedFailed.make({ at, detail })

const states = {
  never: [],
  ingested: [ingested],
  "failing from the start": [failed],
  failing: [ingested, FeedFailed.make({ at: later, detail })],
  demo: [generated],
  "demo and failing": [generated, failed],
} satisfies Record<string, ReadonlyArray<FeedEvent>>

describe("a feed", () => {
  everyState(coded(Feed), states, {
    RecordIngest: [
      {
        command: RecordIngest.make({ at, ...values, demo: false }),
        in: { ingested: [], demo: "DemoMixed", "demo and failing": "DemoMixed" },
        otherwise: [ingested],
      },
      {
        with: "that had no new values",
        command: RecordIngest.make({
          at: later,
          observed: 0,
          revised: 0,
          newest: null,
          demo: false,
        }),
        in: { demo: "DemoMixed", "demo and failing": "DemoMixed" },
        otherwise: [
          FeedIngested.make({
            at: later,
            observed: 0,
            revised: 0,
            newest: null,
            demo: false,
          }),
        ],
      },
      {
        with: "of generated data",
        command: RecordIngest.make({ at, ...values, demo: true }),
        in: { ingested: "DemoMixed", failing: "DemoMixed", demo: [] },
        otherwise: [generated],
      },
    ],
    RecordFeedFailure: [
      {
        command: RecordFeedFailure.make({ at, detail }),
        in: { "failing from the start": [], "demo and failing": [] },
        otherwise: [failed],
      },
      {
        with: "with other words",
        command: RecordFeedFailure.make({ at, detail: "It timed out." }),
        otherwise: [FeedFailed.make({ at, detail: "It timed out." })],
      },
    ],
  })

  it("is never at first, and stored as it is", () => {
    assert.equal(Feed.initialState.value, "never")
    assert.deepInclude(assertStorable(Feed, states.failing), { value: "failing" })
    assert.deepInclude(assertStorable(Feed, [...states.failing, ingested]), { value: "ingested" })
  })

  it("recognises a command after it was stored", () => {
    const restored = Feed.restore(
      JSON.parse(JSON.stringify(Feed.save(Feed.after(Feed.initialState, [ingested])))),
    )
    assert.isDefined(restored)
    const again = Feed.decide(restored, RecordIngest.make({ at, ...values, demo: false }))
    assert.deepInclude(again, { success: [] })
  })
})
