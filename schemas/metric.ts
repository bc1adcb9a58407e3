/**
 * Metrics as Prometheus text: families, each with its help and type before its samples.
 *
 * Source: Prometheus, text-based exposition format 0.0.4.
 */

import { Context, Metric } from "effect"

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

const escaped = (value: string) =>
  value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")

const labelled = (labels: Labels) => {
  const texts = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return texts.length === 0 ? "" : `{${texts.join(",")}}`
}

const headOf = ({ name, type, help }: Family) => [
  `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}`,
  `# TYPE ${name} ${type}`,
]

const shown = (value: number | bigint) =>
  Number.isFinite(Number(value)) ? String(value) : String(value).replace("Infinity", "+Inf")

const text = (lines: ReadonlyArray<string>) => `${lines.join("\n")}\n`

/** A family of counters or gauges; without samples it is only told that there is one. */
export const familyText = (family: Family, samples: ReadonlyArray<Sample>) =>
  text([
    ...headOf(family),
    ...samples.map(([value, labels = {}]) => `${family.name}${labelled(labels)} ${shown(value)}`),
  ])

/** A family of histograms over the same rising bounds. */
export const histogramText = (
  family: Family,
  bounds: ReadonlyArray<number>,
  histograms: ReadonlyArray<Histogram>,
) =>
  text([
    ...headOf(family),
    ...histograms.flatMap(({ labels = {}, counts, sum }) => {
      let total = 0
      const buckets = counts.map((count, place) => {
        total += count
        const le = String(bounds[place] ?? "+Inf")
        return `${family.name}_bucket${labelled({ ...labels, le })} ${total}`
      })
      return [
        ...buckets,
        `${family.name}_sum${labelled(labels)} ${sum}`,
        `${family.name}_count${labelled(labels)} ${total}`,
      ]
    }),
  ])

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
