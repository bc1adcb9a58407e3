/**
 * Counts and durations of requests, by route and status, as plain numbers: counting must not slow
 * down requests, and effect's histograms count only up to 2^32.
 * Source: DECISIONS, "health".
 */
import { familyText, histogramText } from "#schemas/metric.ts"

/**
 * Upper bounds of the duration buckets in seconds: from reads in memory to the deadline of a
 * minute.
 */
const bounds_s = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60]

interface Series {
  readonly labels: { readonly method: string; readonly route: string }
  readonly statuses: Map<number, number>
  /** Number of requests in each bucket, up to the bound of the same index. */
  readonly buckets: Array<number>
  sum_s: number
}

const newSeries = ({ method, path }: Measured): Series => ({
  labels: { method, route: path },
  statuses: new Map(),
  buckets: new Array(bounds_s.length + 1).fill(0),
  sum_s: 0,
})

/** The labels of a route. The path is the declared one, to limit the number of series. */
export interface Measured {
  readonly method: string
  readonly path: string
}

export interface RequestMetrics {
  readonly add: (route: Measured, status: number, seconds: number) => void
  /** Prometheus text. */
  readonly text: () => string
}

const requests_total = {
  name: "almanac_http_requests_total",
  type: "counter",
  help: "Completed requests, by route and status.",
} as const

const duration = {
  name: "almanac_http_request_duration_seconds",
  type: "histogram",
  help: "Time from a request's headers to the response's headers, in seconds.",
} as const

/** Routes are compared by identity. */
export const requestMetrics = (): RequestMetrics => {
  const all = new Map<Measured, Series>()
  return {
    add: (route, status, seconds) => {
      const series = all.get(route) ?? newSeries(route)
      if (series.statuses.size === 0) all.set(route, series)
      series.statuses.set(status, (series.statuses.get(status) ?? 0) + 1)
      series.sum_s += seconds
      let place = 0
      while (place < bounds_s.length && seconds > (bounds_s[place] ?? 0)) place++
      series.buckets[place] = (series.buckets[place] ?? 0) + 1
    },
    text: () => {
      const counts = [...all.values()].flatMap(({ labels, statuses }) =>
        [...statuses].map(
          ([status, count]) => [count, { ...labels, status: String(status) }] as const,
        ),
      )
      const times = [...all.values()].map(({ labels, buckets, sum_s }) => ({
        labels,
        counts: buckets,
        sum: sum_s,
      }))
      return familyText(requests_total, counts) + histogramText(duration, bounds_s, times)
    },
  }
}
