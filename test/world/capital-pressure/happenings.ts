/** The possible events of each dashboard aggregate, to explore every short history. */
import type { AnyStateMachine } from "xstate"
import { machine as composite } from "#actors/capital-pressure/composite.ts"
import { machine as feed } from "#actors/capital-pressure/feed.ts"
import { machine as observation } from "#actors/capital-pressure/observation.ts"
import { machine as price } from "#actors/capital-pressure/price.ts"
import { machine as schedule } from "#actors/capital-pressure/schedule.ts"
import { machine as watchlist } from "#actors/capital-pressure/watchlist.ts"
import { CompositeComputed, CompositeWithdrawn } from "#events/capital-pressure/composite.ts"
import { FeedFailed, FeedIngested } from "#events/capital-pressure/feed.ts"
import { MetricObserved, MetricRevised } from "#events/capital-pressure/observation.ts"
import { PriceQuoted, PriceRequoted } from "#events/capital-pressure/price.ts"
import {
  ScheduledRunEnded,
  ScheduledRunFailed,
  ScheduledRunStarted,
} from "#events/capital-pressure/schedule.ts"
import { WatchlistSet } from "#events/capital-pressure/watchlist.ts"
import type { Message } from "#schemas/message.ts"

export interface Happening {
  readonly machine: AnyStateMachine
  readonly id: string
  readonly events: ReadonlyArray<Message>
  /** Limits the number of histories to a few hundred. */
  readonly length_max: number
}

const at = "2026-11-19T22:00:00.000Z"
const later = "2026-11-20T22:00:00.000Z"
const ts = "2026-01-02"
const other = "2026-12-31"
const demo = true as const

const close = { close: 140.25, adjusted: 139.5 }
const dividend = { close: 140.25, adjusted: 138.75 }
const before = (price: typeof close) => ({
  previous_close: price.close,
  previous_adjusted: price.adjusted,
})

const target = { ticker: "MRK", target: 120, fwd_pe: 12.5, set_on: "2026-11-01" } as const
const lilly = { ticker: "LLY", target: 900, fwd_pe: null, set_on: null } as const

const run = { tick: at, at }
const rerun = { tick: later, at: later }

export const happenings = {
  observation: {
    machine: observation,
    id: "hy_spread-2026",
    events: [
      MetricObserved.make({ ts, value: 3.25 }),
      MetricObserved.make({ ts: other, value: -1 }),
      MetricRevised.make({ ts, value: 3.5, previous: 3.25 }),
      MetricRevised.make({ ts, value: 3.25, previous: 3.5 }),
      MetricObserved.make({ ts, value: 0.1, demo }),
      MetricRevised.make({ ts, value: 1e-9, previous: 0.1, demo }),
    ],
    length_max: 7,
  },
  price: {
    machine: price,
    id: "XLV-2026",
    events: [
      PriceQuoted.make({ ts, ...close }),
      PriceQuoted.make({ ts: other, ...dividend }),
      PriceRequoted.make({ ts, ...dividend, ...before(close) }),
      PriceRequoted.make({ ts, ...close, ...before(dividend) }),
      PriceQuoted.make({ ts, ...close, demo }),
    ],
    length_max: 7,
  },
  composite: {
    machine: composite,
    id: "2026",
    events: [
      CompositeComputed.make({ days: [{ ts, z: 0.25, tiers: [1, null, -0.5, null] }] }),
      CompositeComputed.make({
        days: [
          { ts, z: -1, tiers: [null, null, null, -1] },
          { ts: other, z: 0, tiers: [0, 0, 0, 0] },
        ],
      }),
      CompositeComputed.make({ days: [{ ts: other, z: 1, tiers: [1, 1, 1, 1] }] }),
      CompositeWithdrawn.make({ days: [other] }),
      CompositeWithdrawn.make({ days: [other, ts] }),
    ],
    length_max: 5,
  },
  feed: {
    machine: feed,
    id: "prices",
    events: [
      FeedIngested.make({ at, observed: 1, revised: 0, newest: ts, demo: false }),
      FeedIngested.make({ at: later, observed: 0, revised: 0, newest: null, demo: false }),
      FeedIngested.make({ at, observed: 1, revised: 0, newest: ts, demo }),
      FeedFailed.make({ at, detail: "It answered 500." }),
      FeedFailed.make({ at: later, detail: "It timed out." }),
    ],
    length_max: 4,
  },
  schedule: {
    machine: schedule,
    id: "daily_ingest",
    events: [
      ScheduledRunStarted.make(run),
      ScheduledRunEnded.make(run),
      ScheduledRunFailed.make({ ...run, detail: "3 of 20 feeds failed." }),
      ScheduledRunStarted.make(rerun),
      ScheduledRunEnded.make(rerun),
      ScheduledRunFailed.make({ ...rerun, detail: "All feeds failed." }),
    ],
    length_max: 6,
  },
  watchlist: {
    machine: watchlist,
    id: "main",
    events: [
      WatchlistSet.make({ targets: [target, lilly], demo: false }),
      WatchlistSet.make({ targets: [{ ...target, target: 121 }], demo: false }),
      WatchlistSet.make({ targets: [], demo: false }),
      WatchlistSet.make({ targets: [lilly], demo }),
    ],
    length_max: 4,
  },
} satisfies Record<string, Happening>

export type Kind = keyof typeof happenings
