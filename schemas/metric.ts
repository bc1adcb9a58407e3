/**
 * Formats metrics as Prometheus text: each family has its help and type before its samples.
 *
 * Source: Prometheus, text-based exposition format 0.0.4.
 */

import { Context, Metric } from "effect"
import { PrometheusMetrics } from "effect/observability"

/** A metric, with or without samples. */
export interface Family {
  /** `almanac_<what>_<unit>`, in base units; a counter ends in `_total`. */
  readonly name: string
  readonly type: "counter" | "gauge" | "histogram"
  /** One sentence. */
  readonly help: string
}

export type Labels = Readonly<Record<string, string>>

const declared: Array<Family> = []

/** All metrics that parts of this process declared, with or without samples. */
export const declared_families: ReadonlyArray<Family> = declared

/**
 * A counter from the start of the process. Series that are known in advance start at zero, because
 * Prometheus sees no increase in a series that starts at one.
 */
export const counter = (name: string, help: string, ...series: ReadonlyArray<Labels>) => {
  declared.push({ name, type: "counter", help })
  const made = Metric.counter(name, { description: help, incremental: true })
  for (const labels of series) {
    Metric.withAttributes(made, labels).updateUnsafe(0, Context.empty())
  }
  return made
}

/** A gauge of the last value. */
export const gauge = (name: string, help: string) => {
  declared.push({ name, type: "gauge", help })
  return Metric.gauge(name, { description: help })
}

/** A histogram with ascending upper bounds. */
export const histogram = (name: string, help: string, boundaries: ReadonlyArray<number>) => {
  declared.push({ name, type: "histogram", help })
  return Metric.histogram(name, { description: help, boundaries })
}

/** A value and its labels within the family. */
export type Sample = readonly [value: number | bigint, labels?: Labels]

/** Times or sizes, counted by upper bound. */
export interface Histogram {
  readonly labels?: Labels
  /** One count per bound, and one for values above the last bound. */
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
  /** The state of an Effect metric of this type. */
  readonly state: object
}

const nothing = () => undefined

/** The text of a registry with only this family. */
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

/** A family of counters or gauges; without samples, only its help and type. */
export const familyText = (family: Family, samples: ReadonlyArray<Sample>) =>
  familyOf(
    family,
    samples.map(([value, labels]) => ({ labels, state: { count: value, value } })),
  )

/** A family of histograms with the same ascending bounds. */
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

/** Families of one sample each, whose names share a prefix. */
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
