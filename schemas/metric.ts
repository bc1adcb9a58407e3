/**
 * Metrics as Prometheus text: families, each with its help and type before its samples.
 *
 * Source: Prometheus, text-based exposition format 0.0.4.
 */

import { Context, Metric } from "effect"
import { PrometheusMetrics } from "effect/observability"

/** A metric, whether it has samples already or not. */
export interface Family {
  /** `almanac_<what>_<unit>`, in base units; a counter ends in `_total`. */
  readonly name: string
  readonly type: "counter" | "gauge" | "histogram"
  /** One sentence. */
  readonly help: string
}

export type Labels = Readonly<Record<string, string>>

const declared: Array<Family> = []

/** What parts of this process count as they go, whether anything of it happened already or not. */
export const declared_families: ReadonlyArray<Family> = declared

/**
 * Counts up from the start of the process. The series that are known beforehand are told from zero
 * on: of one that begins at one, Prometheus sees no increase.
 */
export const counter = (name: string, help: string, ...series: ReadonlyArray<Labels>) => {
  declared.push({ name, type: "counter", help })
  const made = Metric.counter(name, { description: help, incremental: true })
  for (const labels of series) {
    Metric.withAttributes(made, labels).updateUnsafe(0, Context.empty())
  }
  return made
}

/** Shows the last value that it was given. */
export const gauge = (name: string, help: string) => {
  declared.push({ name, type: "gauge", help })
  return Metric.gauge(name, { description: help })
}

/** Counts values by the first of the rising bounds that they do not pass. */
export const histogram = (name: string, help: string, boundaries: ReadonlyArray<number>) => {
  declared.push({ name, type: "histogram", help })
  return Metric.histogram(name, { description: help, boundaries })
}

/** A value and the labels that tell it from the others of its family. */
export type Sample = readonly [value: number | bigint, labels?: Labels]

/** Times or sizes, counted by the first bound that they do not pass. */
export interface Histogram {
  readonly labels?: Labels
  /** One count for each bound, and one for what passes them all. */
  readonly counts: ReadonlyArray<number>
  readonly sum: number
}

const types = { counter: "Counter", gauge: "Gauge", histogram: "Histogram" } as const
const zeros = {
  counter: { count: 0 },
  gauge: { value: 0 },
  histogram: { buckets: [], count: 0, sum: 0 },
}

interface Series {
  readonly labels?: Labels | undefined
  /** The state that effect keeps for a metric of this type. */
  readonly state: object
}

const nothing = () => undefined

/** The text of a registry that holds this family alone. */
const textOf = ({ name, type, help }: Family, all: ReadonlyArray<Series>) => {
  const registry: Metric.MetricRegistry = new Map(
    [...all.entries()].map(([place, { labels, state }]) => [
      String(place),
      {
        id: name,
        type: types[type],
        description: help,
        attributes: labels,
        hooks: { get: () => state, update: nothing, modify: nothing },
      },
    ]),
  )
  return PrometheusMetrics.formatUnsafe(Context.make(Metric.MetricRegistry, registry))
}

const familyOf = (family: Family, all: ReadonlyArray<Series>) => {
  if (all.length > 0) return textOf(family, all)
  const [help, type] = textOf(family, [{ state: zeros[family.type] }]).split("\n")
  return `${help}\n${type}\n`
}

/** A family of counters or gauges; without samples only its help and type. */
export const familyText = (family: Family, samples: ReadonlyArray<Sample>) =>
  familyOf(
    family,
    samples.map(([value, labels]) => ({ labels, state: { count: value, value } })),
  )

/** A family of histograms over the same rising bounds. */
export const histogramText = (
  family: Family,
  bounds: ReadonlyArray<number>,
  histograms: ReadonlyArray<Histogram>,
) =>
  familyOf(
    family,
    histograms.map(({ labels, counts, sum }) => {
      let count = 0
      const buckets = counts.map((more, place) => {
        count += more
        return [bounds[place] ?? Number.POSITIVE_INFINITY, count] as const
      })
      return { labels, state: { buckets, count, sum } }
    }),
  )

/** Families of one sample each, by what follows their common beginning. */
export const plainText = (
  beginning: string,
  rows: ReadonlyArray<
    readonly [type: "counter" | "gauge", name: string, help: string, value: number | bigint]
  >,
) =>
  rows
    .map(([type, name, help, value]) =>
      familyText({ type, name: `${beginning}${name}`, help }, [[value]]),
    )
    .join("")
