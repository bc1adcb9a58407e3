/** Progress of a command: a bar on a terminal, plain lines otherwise. */
import { Effect } from "effect"

/** Width of the bar itself, in characters. */
const bar_chars = 24

/** Assumed minimum width of a terminal: a wrapped line could not be overwritten. */
const line_chars_max = 79

/** Where progress goes: standard error, because standard output carries the result. */
export interface Screen {
  readonly isTTY?: boolean | undefined
  readonly write: (text: string) => unknown
}

export interface Progress {
  /** Counts one more item as done; `line` goes into logs. */
  readonly done: (line: string) => Effect.Effect<void>
  /** Shows the current item next to the bar; logs nothing. */
  readonly at: (label: string, done: number, total: number) => void
  /** Clears the bar. */
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

/** Progress towards `total`; without a terminal, only the lines of finished items. */
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
