/** The API's responses for generated data, by path, from the API's own functions. */
import { dashboardOf } from "#projections/capital-pressure/dashboard.ts"
import { detailOf, historyOf } from "#projections/capital-pressure/detail.ts"
import { schedulerOf } from "#projections/capital-pressure/schedule.ts"
import { sourcesOf } from "#projections/capital-pressure/source.ts"
import type { Store } from "#projections/capital-pressure/store.ts"
import { watchlistOf } from "#projections/capital-pressure/watchlist.ts"
import { metrics } from "#schemas/capital-pressure/registry.ts"
import { synthetic_last_day, syntheticStore } from "../capital-pressure/synthetic-store.ts"

/** The evening of the day for which the canned responses were made. */
export const canned_now = new Date("2026-11-20T22:30:00Z")

export type Bodies = ReadonlyMap<string, string>

const nothing: Store["composite"] = {
  days: new Int32Array(),
  z: new Float64Array(),
  tiers: [new Float64Array(), new Float64Array(), new Float64Array(), new Float64Array()],
}

/** A store before the first ingest. */
export const empty_store: Store = {
  observations: new Map(),
  prices: new Map(),
  composite: nothing,
  feeds: new Map(),
  jobs: new Map(),
  targets: [],
}

/** One metric has had no values for a month; another was never fetched. */
const withGaps = (store: Store): Store => {
  const observations = new Map(store.observations)
  const silent = observations.get("vix_term")
  const month = 22
  if (silent) {
    const days = silent.days.slice(0, -month)
    observations.set("vix_term", { days, values: silent.values.slice(0, -month) })
  }
  observations.delete("lending_standards")
  const feeds = new Map(store.feeds)
  feeds.delete("lending_standards")
  return { ...store, observations, feeds }
}

/** Too few values for a z-score: as after an ingest of this year's values. */
const asShort = (store: Store): Store => ({
  ...store,
  observations: new Map(
    [...store.observations].map(([id, { days, values }]) => {
      const from = days.findIndex((day) => day > synthetic_last_day - 200)
      return [id, { days: days.slice(from), values: values.slice(from) }] as const
    }),
  ),
})

/** The only metric with enough history has stopped. */
const asEnded = (store: Store): Store => {
  const observations = new Map(asShort(store).observations)
  const { days, values } = store.observations.get("nfci") ?? { days: [], values: [] }
  const is_old = Array.from(days, (day) => day < synthetic_last_day - 60)
  observations.set("nfci", {
    days: Int32Array.from(days).filter((_, at) => is_old[at]),
    values: Float64Array.from(values).filter((_, at) => is_old[at]),
  })
  return { ...store, observations }
}

/** A store with only generated data. */
const asDemo = (store: Store): Store => ({
  ...store,
  feeds: new Map([...store.feeds].map(([id, row]) => [id, { ...row, demo: true }])),
})

const whole = syntheticStore()

export const stores = {
  whole: withGaps(whole),
  demo: asDemo(whole),
  before_backfill: { ...whole, composite: nothing },
  empty: empty_store,
  short: asShort({ ...whole, composite: nothing }),
  ended: asEnded(whole),
}

/** The next run of each job; null if the scheduler is off. */
const next_run = "2026-11-23T22:00:00Z"

/** Every path that the page may request. */
export const bodiesOf = (store: Store, today = synthetic_last_day, is_on = true): Bodies =>
  new Map<string, unknown>([
    ["/api/dashboard", dashboardOf(store, today)],
    ["/api/watchlist", watchlistOf(store)],
    ["/api/sources", sourcesOf(store)],
    ["/api/scheduler", schedulerOf(store, () => (is_on ? next_run : null))],
    ...metrics.flatMap(
      (metric): Array<[string, unknown]> => [
        [`/api/metrics/${metric.metric_id}/detail`, detailOf(store, metric, today)],
        [`/api/metrics/${metric.metric_id}/history`, historyOf(store, metric)],
      ],
    ),
  ])
    .entries()
    .map(([path, body]): [string, string] => [path, JSON.stringify(body)])
    .reduce((all, [path, body]) => all.set(path, body), new Map<string, string>())
