/** How far a verb has come: a bar on a terminal, and lines where there is none. */
import { Effect } from "effect"

/** Characters of the bar itself. */
const bar_chars = 24

/** A terminal is at least this wide; a line that wraps could not be overwritten. */
const line_chars_max = 79

/** Where it is shown: standard error, since standard output is a verb's answer. */
export interface Screen {
  readonly isTTY?: boolean | undefined
  readonly write: (text: string) => unknown
}

export interface Progress {
  /** One more is done; `line` is what a log says of it. */
  readonly done: (line: string) => Effect.Effect<void>
  /** What is under way now: shown beside the bar, and in no log. */
  readonly at: (label: string, done: number, total: number) => void
  /** Takes the bar away. */
  readonly end: Effect.Effect<void>
}

/** Control characters would let a publisher's text write on the operator's terminal. */
const printable = (text: string) => text.replaceAll(/\p{Cc}/gu, "?")

/** `[#####     ] 3/22 label`, no longer than a line. */
export const barOf = (done: number, total: number, label: string) => {
  const filled = total === 0 ? bar_chars : Math.floor((bar_chars * done) / total)
  const bar = "#".repeat(filled).padEnd(bar_chars)
  return `[${bar}] ${done}/${total} ${printable(label)}`.slice(0, line_chars_max)
}

/** Progress towards `total`; nothing where there is nobody to see a bar, but for the lines. */
export const progressTo = (total: number, screen: Screen = process.stderr): Progress => {
  let count = 0
  const clear = `\r${" ".repeat(line_chars_max)}\r`
  const draw = (text: string) => {
    if (screen.isTTY === true) screen.write(`${clear}${text}`)
  }
  return {
    done: (line) =>
      Effect.sync(() => {
        count++
        if (screen.isTTY === true) draw(barOf(count, total, line))
        else screen.write(`${printable(line)}\n`)
      }),
    at: (label, done, of) => draw(barOf(done, of, label)),
    end: Effect.sync(() => draw("")),
  }
}
