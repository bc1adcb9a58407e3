import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { CompositeComputed, CompositeWithdrawn } from "#events/capital-pressure/composite.ts"
import { WatchlistSet } from "#events/capital-pressure/watchlist.ts"
import { published as publications } from "#projections/capital-pressure/published.ts"
import { publishedOf } from "#projections/published-events.ts"
import { published as types } from "#schemas/capital-pressure/published.ts"
import { CloudEvent } from "#schemas/cloud-event.ts"
import type { Message } from "#schemas/message.ts"
import { type Happening, happenings } from "../../world/capital-pressure/happenings.ts"
import { histories } from "../../world/histories.ts"

const at = "2026-11-20T12:00:00.000Z"

/** The events published for one commit. */
const publishedFrom = (stream: string, ...events: ReadonlyArray<Message>) =>
  publishedOf(publications, {
    position: 7,
    stream: `capital-pressure.${stream}`,
    hash: "",
    commit: {
      v: 1,
      actor: "test",
      at,
      events,
      commands: ["c"],
      prev: "",
      snapshot: { machine: 1, value: "", context: {} },
    },
  })

const strict = { onExcessProperty: "error" } as const

/** Each short history as one commit. */
const all = Object.entries(happenings).flatMap(
  ([kind, { machine, id, events }]: [string, Happening]) =>
    [...histories(machine, events, 3)].map(({ history }) => ({ kind, id, history })),
)

describe("what the dashboard publishes", () => {
  it("has exactly the data that its type promises, and names no project", () => {
    const ever = new Set<string>()
    for (const { kind, id, history } of all) {
      for (const { service, aggregate, event } of publishedFrom(`${kind}.${id}`, ...history)) {
        const type = types[event.type as keyof typeof types]
        Schema.decodeUnknownSync(type.data, strict)(event.data)
        Schema.decodeUnknownSync(CloudEvent, strict)(JSON.parse(JSON.stringify(event)))
        assert.deepEqual([service, aggregate], ["capital-pressure", type.aggregate])
        assert.equal(event.subject, id)
        assert.isUndefined(event.projectid)
        ever.add(event.type)
      }
    }
    assert.deepEqual([...ever].sort(), Object.keys(types).sort())
  })

  it("is not each value, price or run", () => {
    for (const { kind, id, history } of all) {
      if (["observation", "price", "schedule"].includes(kind)) {
        assert.deepEqual(publishedFrom(`${kind}.${id}`, ...history), [])
      }
    }
  })

  it("has an event for each ingest of a feed", () => {
    const [ingested, nothing, , failed] = happenings.feed.events
    const history = [ingested, failed, nothing].filter((event) => event !== undefined)
    const events = publishedFrom("feed.hy_spread", ...history)
    assert.deepEqual(
      events.map(({ event: { type, data } }) => [type, data]),
      [
        [
          "metrics_ingested",
          {
            feed_id: "hy_spread",
            at: "2026-11-19T22:00:00.000Z",
            observed: 1,
            revised: 0,
            newest: "2026-01-02",
            demo: false,
          },
        ],
        [
          "metric_ingest_failed",
          {
            feed_id: "hy_spread",
            at: "2026-11-19T22:00:00.000Z",
            detail: "It answered 500.",
          },
        ],
        [
          "metrics_ingested",
          {
            feed_id: "hy_spread",
            at: "2026-11-20T22:00:00.000Z",
            observed: 0,
            revised: 0,
            newest: null,
            demo: false,
          },
        ],
      ],
    )
  })

  it("has one composite event for each commit, with the first and last day of any order", () => {
    const day = (ts: string, z: number) => ({ ts, z, tiers: [z, null, null, null] as const })
    const days = [day("2026-01-02", 2), day("2026-11-20", 3), day("2026-04-01", 4)]
    const event = CompositeComputed.make({ days: [day("2026-03-02", 1), ...days] })
    const events = publishedFrom("composite.2026", event)
    assert.deepEqual(
      events.map(({ event: { id, type, data } }) => [id, type, data]),
      [["7.0", "composite_computed", { from: "2026-01-02", to: "2026-11-20", days: 4, z: 3 }]],
    )
  })

  it("lists the days whose composite was withdrawn, in their order", () => {
    const event = CompositeWithdrawn.make({ days: ["2026-03-02", "2026-01-02"] })
    assert.deepEqual(
      publishedFrom("composite.2026", event).map(({ event: { type, data } }) => [type, data]),
      [["composite_withdrawn", { dates: ["2026-01-02", "2026-03-02"] }]],
    )
  })

  it("lists the watchlist's names that have a target", () => {
    const target = { ticker: "MRK", target: 120, fwd_pe: null, set_on: null } as const
    const events = publishedFrom(
      "watchlist.main",
      WatchlistSet.make({ targets: [target], demo: true }),
    )
    assert.deepEqual(
      events.map(({ event: { type, data } }) => [type, data]),
      [["watchlist_set", { tickers: ["MRK"], demo: true }]],
    )
  })
})
