/**
 * A strict parser of Prometheus text, used as an oracle for our output.
 *
 * Source: Prometheus, exposition formats, text format; metric and label naming; OpenMetrics 1.0,
 * histograms.
 */

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Family {
  readonly name: string
  readonly type: string
  readonly help: string
  readonly samples: Array<Sample>
}

const head = /^# (HELP|TYPE) ([a-z][a-z0-9_]*) (.+)$/
const line = /^([a-z][a-z0-9_]*)(?:\{(.*)\})? (-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|\+?Inf)|NaN)$/
const label = /([a-z_][a-z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/y
const types = new Set(["counter", "gauge", "histogram"])

const labelsOf = (text: string) => {
  const labels: Record<string, string> = {}
  label.lastIndex = 0
  while (label.lastIndex < text.length) {
    const at = label.lastIndex
    const [, name = "", value = ""] = label.exec(text) ?? []
    if (name === "") throw new Error(`no labels from ${at} on: ${text}`)
    if (name in labels) throw new Error(`label ${name} twice: ${text}`)
    labels[name] = value
  }
  return labels
}

const numberOf = (text: string) => Number(text.replace("+Inf", "Infinity"))

const belongs = ({ name, type }: Family, sample: string) =>
  type === "histogram"
    ? ["_bucket", "_sum", "_count"].some((end) => sample === name + end)
    : sample === name

/** Bucket counts increase and end in +Inf, which equals the count. */
const checkHistogram = ({ name, samples }: Family) => {
  const series = new Map<string, Array<Sample>>()
  for (const sample of samples) {
    const labels = Object.entries(sample.labels).filter(([name]) => name !== "le")
    const key = JSON.stringify(labels)
    series.set(key, [...(series.get(key) ?? []), sample])
  }
  for (const [key, own] of series) {
    const buckets = own.filter((sample) => sample.name === `${name}_bucket`)
    const bounds = buckets.map(({ labels }) => numberOf(labels.le ?? "NaN"))
    const counts = buckets.map(({ value }) => value)
    const rises = (values: ReadonlyArray<number>, least: number) =>
      values.every((value, i) => i === 0 || value - (values[i - 1] ?? 0) >= least)
    const total = own.find((sample) => sample.name === `${name}_count`)?.value
    const sum = own.find((sample) => sample.name === `${name}_sum`)?.value
    if (bounds.at(-1) !== Infinity || counts.at(-1) !== total || sum === undefined) {
      throw new Error(`${name}${key} does not end in +Inf with its count`)
    }
    if (!rises(counts, 0) || !rises(bounds.slice(0, -1), Number.MIN_VALUE)) {
      throw new Error(`${name}${key} does not rise`)
    }
  }
}

/** The families of a text by name; throws at the first violation. */
export const parsed = (text: string): ReadonlyMap<string, Family> => {
  if (!text.endsWith("\n")) throw new Error("the last line does not end")
  const families = new Map<string, Family>()
  const series = new Set<string>()
  let help: readonly [string, string] | undefined
  let family: Family | undefined
  for (const one of text.slice(0, -1).split("\n")) {
    const [, kind, name = "", rest = ""] = head.exec(one) ?? []
    if (kind === "HELP") {
      if (families.has(name)) throw new Error(`${name} comes twice`)
      help = [name, rest]
    } else if (kind === "TYPE") {
      if (help?.[0] !== name) throw new Error(`${name} has no help before its type`)
      if (!types.has(rest)) throw new Error(`${name} is a ${rest}`)
      family = { name, type: rest, help: help[1], samples: [] }
      families.set(name, family)
    } else {
      const [, sample = "", labels = "", value = ""] = line.exec(one) ?? []
      if (family === undefined || !belongs(family, sample)) throw new Error(`not expected: ${one}`)
      const key = one.slice(0, one.lastIndexOf(" "))
      if (series.has(key)) throw new Error(`twice: ${key}`)
      series.add(key)
      family.samples.push({ name: sample, labels: labelsOf(labels), value: numberOf(value) })
    }
  }
  for (const one of families.values()) if (one.type === "histogram") checkHistogram(one)
  return families
}

const units = /_(seconds|bytes)(_total)?$/
/** Counts have no unit in their name; times and sizes have a base unit. */
const improper = /_(ms|millis|milliseconds|minutes|hours|days|kb|mb|kib|mib|percent)(_|$)/

/** Violations of the naming rules. */
export const badNames = (families: Iterable<Family>) =>
  [...families].flatMap(({ name, type, help }) => {
    const wrong: Array<string> = []
    if (!/^(almanac|process|nodejs)_/.test(name)) wrong.push(`${name} has no beginning of ours`)
    if ((type === "counter") !== name.endsWith("_total")) wrong.push(`${name} is a ${type}`)
    if (improper.test(name)) wrong.push(`${name} is not in base units`)
    if (/seconds|bytes/.test(name) && !units.test(name)) wrong.push(`${name} has its unit inside`)
    if (!/^[A-Z0-9].*[^.]\.$|; 0.*\.$/.test(help))
      wrong.push(`${name}: help is no sentence: ${help}`)
    return wrong
  })
