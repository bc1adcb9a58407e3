/** Formats measured rounds as Markdown, and publishes them in docs/benchmark-results.md. */
import { readFile, writeFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { median, type Round } from "./round.ts"
import { type Measured, rates, ratioSpread, type Series, type Spread, spread } from "./series.ts"

/** Such measurements are precise to three digits at most. */
const digits = 3

/** Formats a figure for the tables. */
export const number = (value: number) =>
  Number(value.toPrecision(digits)).toLocaleString("en-US", { maximumFractionDigits: digits })

/** A median with its bounds. */
export const range = ({ median: middle, min, max }: Spread) =>
  `${number(middle)} (${number(min)}..${number(max)})`

const middle = (series: Series, figure: (round: Round) => number) =>
  number(median(series.rounds.map(figure)))

/** Formats a table as the formatter does, so that a published page passes `npm run check`. */
export const aligned = ([heads = [], ...rows]: readonly (readonly string[])[]): string => {
  const widths = heads.map((head, column) =>
    Math.max(3, head.length, ...rows.map((row) => row[column]?.length ?? 0)),
  )
  const line = (cells: readonly string[], fill: string) =>
    `| ${widths.map((width, column) => (cells[column] ?? "").padEnd(width, fill)).join(" | ")} |`
  return [line(heads, " "), line([], "-"), ...rows.map((row) => line(row, " "))].join("\n")
}

export interface Columns {
  /** The unit of a rate: "commands/s". */
  readonly rate: string
  /** The number of units in one run. */
  readonly per_run: number
  /** The name of the series that the others are compared with. */
  readonly ours: string
  /** Whether latency is more informative than the rate. */
  readonly latency: boolean
}

/** One row per contestant with rates, latencies and ratio to ours; then the rates of all rounds. */
export const table = ({ series }: Measured, { rate, per_run, ours, latency }: Columns): string => {
  const own = series.find(({ name }) => name === ours)
  const rows = series.map((each) => {
    const scaled = rates(each).map((value) => value * per_run)
    const ratio = ratioSpread(own, each)
    return [
      each.name,
      range(spread(scaled)),
      ...(latency
        ? [middle(each, ({ p50_ms }) => p50_ms), middle(each, ({ p99_ms }) => p99_ms)]
        : []),
      ratio ? range(ratio) : "",
      scaled.map(number).join(" "),
    ]
  })
  const latencies = latency ? ["p50 ms", "p99 ms"] : []
  const heads = ["", rate, ...latencies, `${ours} / this`, "round by round"]
  return aligned([heads, ...rows])
}

const page = fileURLToPath(new URL("../../docs/benchmark-results.md", import.meta.url))

/** Puts `text` between the markers of `suite` in docs/benchmark-results.md. */
export const publish = async (suite: string, text: string): Promise<void> => {
  const [from, to] = [`<!-- bench:${suite} -->`, `<!-- /bench:${suite} -->`]
  const old = await readFile(page, "utf8")
  const [begin, end] = [old.indexOf(from), old.indexOf(to)]
  if (begin < 0 || end < begin) throw new Error(`${page} has no markers for ${suite}`)
  const head = old.slice(0, begin + from.length)
  await writeFile(page, `${head}\n${text.trim()}\n${old.slice(end)}`)
}
