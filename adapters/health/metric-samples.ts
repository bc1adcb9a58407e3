/** Parses Prometheus text as our servers write it. */

export interface MetricSample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const label = /([a-z_]+)="((?:[^"\\]|\\.)*)"/g

const unescapeLabel = (value: string) =>
  value.replaceAll(/\\(.)/g, (_, char: string) => (char === "n" ? "\n" : char))

/** All samples of one metric; empty if it does not exist. */
export const samplesOf = (text: string, name: string): ReadonlyArray<MetricSample> =>
  text.split("\n").flatMap((line) => {
    if (!line.startsWith(name) || !/^[{ ]/.test(line.slice(name.length))) return []
    const end = line.lastIndexOf(" ")
    const labels = [...line.slice(name.length, end).matchAll(label)].map(
      ([, key = "", value = ""]) => [key, unescapeLabel(value)] as const,
    )
    return [{ labels: Object.fromEntries(labels), value: Number(line.slice(end + 1)) }]
  })
