/** Progress: one live line on a terminal, plain lines otherwise. */

import { formatBytes, formatDuration } from "#cli/client/format.ts"
import type { Screen } from "#cli/client/screen.ts"
import { truncated, widthOf } from "#cli/client/table.ts"

/** Width of the bar itself, in characters. */
const bar_chars_max = 28
const bar_chars_min = 8

/** Window of the rate, in ms: longer is steadier, shorter reacts faster. */
const rate_window_ms = 10_000

/** Minimum time between two redraws, in ms. */
const draw_ms_min = 100

/** Without a terminal: one line per this many percent. */
const log_percent = 10

/** Without a terminal, transfers shorter than this print nothing, in ms. */
export const transfer_quiet_ms = 2_000

export interface Step {
  readonly label: string
  /** In bytes, if known. */
  readonly done?: number | undefined
  readonly total?: number | undefined
  /** 0 to 100, if bytes are unknown. */
  readonly percent?: number | undefined
  /** Seconds since the start, if they are shown. */
  readonly elapsed_s?: number | undefined
}

export interface Progress {
  readonly at: (step: Step) => void
  /** Clears the live line. */
  readonly end: () => void
}

interface Sample {
  readonly ms: number
  readonly done: number
}

/** Bytes per second over the window; undefined until there are two samples. */
export const rateOf = (samples: ReadonlyArray<Sample>) => {
  const [first, last] = [samples[0], samples.at(-1)]
  if (first === undefined || last === undefined || last.ms <= first.ms) return undefined
  return ((last.done - first.done) * 1000) / (last.ms - first.ms)
}

const percentOf = ({ done, total, percent }: Step) => {
  if (total !== undefined && total > 0) return Math.min(100, (100 * (done ?? 0)) / total)
  return percent
}

const barOf = (percent: number, chars: number) => {
  const filled = Math.floor((chars * percent) / 100)
  return `[${"#".repeat(filled)}${"-".repeat(chars - filled)}]`
}

/** The figures after the bar, most important first. */
const figures = (step: Step, rate: number | undefined) => {
  const { done, total, elapsed_s } = step
  const percent = percentOf(step)
  const left =
    total !== undefined && done !== undefined && rate !== undefined && rate > 0 && done < total
      ? (total - done) / rate
      : undefined
  return [
    ...(percent === undefined ? [] : [`${Math.floor(percent)}%`.padStart(4)]),
    ...(done === undefined
      ? []
      : [total === undefined ? formatBytes(done) : `${formatBytes(done)} / ${formatBytes(total)}`]),
    // All bytes were sent and the server is still storing them: the rate would only drop.
    ...(rate === undefined || done === undefined || done === total
      ? []
      : [`${formatBytes(Math.max(0, rate))}/s`]),
    ...(left === undefined ? [] : [`${formatDuration(left)} left`]),
    ...(elapsed_s === undefined ? [] : [`${formatDuration(elapsed_s)} elapsed`]),
  ]
}

/** One line of at most `columns`: drops figures from the right until it fits. */
export const lineOf = (step: Step, rate: number | undefined, columns: number): string => {
  const percent = percentOf(step)
  for (let parts = figures(step, rate); ; parts = parts.slice(0, -1)) {
    const text = [step.label, ...parts].join("  ")
    const room = columns - widthOf(text) - "  []".length
    if (percent === undefined && room >= 0) return text
    if (percent !== undefined && room >= bar_chars_min) {
      const bar = barOf(percent, Math.min(bar_chars_max, room))
      return [step.label, bar, ...parts].join("  ")
    }
    if (parts.length === 0) return truncated(step.label, columns)
  }
}

/** Progress on standard error with the clock `now_ms`; prints no lines in the first `quiet_ms`. */
export const progressOn = (
  { err, err_columns }: Pick<Screen, "err" | "err_columns">,
  quiet_ms = 0,
  now_ms: () => number = () => performance.now(),
): Progress => {
  const since_ms = now_ms()
  let samples: Array<Sample> = []
  let drawn_ms = Number.NEGATIVE_INFINITY
  let is_drawn = false
  let logged = ""

  const sample = ({ done }: Step, ms: number) => {
    if (done === undefined) return
    if (done < (samples.at(-1)?.done ?? 0)) samples = []
    samples = samples.filter((one) => one.ms >= ms - rate_window_ms)
    samples.push({ ms, done })
  }
  const draw = (step: Step, ms: number) => {
    const is_whole = step.total !== undefined && step.done === step.total
    if (ms - drawn_ms < draw_ms_min && !is_whole) return
    drawn_ms = ms
    is_drawn = true
    // Leave one column free: some terminals wrap a line that fills the last one.
    err(`\r\u001b[K${lineOf(step, rateOf(samples), (err_columns ?? 0) - 1)}`)
  }
  const log = (step: Step) => {
    const percent = percentOf(step)
    // With an unknown total, one line per doubling.
    const doublings = Math.floor(Math.log2(Math.max(1, step.done ?? 1)))
    const part = percent === undefined ? doublings : Math.floor(percent / log_percent)
    if (logged === `${step.label} ${part}`) return
    logged = `${step.label} ${part}`
    err(`${[step.label, ...figures(step, undefined)].join("  ")}\n`)
  }
  return {
    at: (step) => {
      const ms = now_ms()
      sample(step, ms)
      if (err_columns !== undefined) draw(step, ms)
      else if (ms - since_ms >= quiet_ms) log(step)
    },
    end: () => {
      if (is_drawn) err("\r\u001b[K")
      is_drawn = false
    },
  }
}
