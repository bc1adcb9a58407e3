/** Small stores for tests, with the given values. */
import type {
  CompositeSeries,
  PriceSeries,
  Series,
  Store,
} from "#projections/capital-pressure/store.ts"
import { dayOf } from "#schemas/capital-pressure/day.ts"
import type { Metric } from "#schemas/capital-pressure/metric.ts"
import { findMetric } from "#schemas/capital-pressure/registry.ts"

const no_composite: CompositeSeries = {
  days: new Int32Array(),
  z: new Float64Array(),
  tiers: [new Float64Array(), new Float64Array(), new Float64Array(), new Float64Array()],
}

/** A store without rows, except for the given ones. */
export const storeOf = (given: Partial<Store> = {}): Store => ({
  observations: new Map(),
  prices: new Map(),
  composite: no_composite,
  feeds: new Map(),
  jobs: new Map(),
  targets: [],
  ...given,
})

type Rows = ReadonlyArray<readonly [date: string, value: number]>

export const seriesOf = (rows: Rows): Series => ({
  days: Int32Array.from(rows, ([date]) => dayOf(date)),
  values: Float64Array.from(rows, ([, value]) => value),
})

/** `adjusted` is a tenth of the close, so that the two cannot be confused. */
export const pricesOf = (rows: Rows): PriceSeries => {
  const { days, values } = seriesOf(rows)
  return { days, close: values, adjusted: values.map((value) => value / 10) }
}

/** Values at intervals of `days` days, starting at a date. */
export const every = (days: number, from: string, values: Iterable<number>): Series => {
  const all = Float64Array.from(values)
  return { days: Int32Array.from(all, (_, index) => dayOf(from) + index * days), values: all }
}

/** A registered metric with some fields replaced. */
export const metricOf = (metric_id: string, otherwise: Partial<Metric> = {}): Metric => {
  const metric = findMetric(metric_id)
  if (metric === undefined) throw new Error(`there is no metric ${metric_id}`)
  return { ...metric, ...otherwise }
}
