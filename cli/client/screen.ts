/** The terminal or stream that a command writes to. */
import { once } from "node:events"

export interface Screen {
  readonly out: (text: string) => void
  /** Progress and hints; standard output carries the result. */
  readonly err: (text: string) => void
  /** Waits until the buffer of standard output has drained. */
  readonly drained: (signal: AbortSignal) => Promise<void>
  /** Columns of standard output, or COLUMNS; undefined without both. */
  readonly columns: number | undefined
  /** Whether standard output is a terminal. */
  readonly is_terminal: boolean
  /** Columns of standard error; undefined without a terminal. */
  readonly err_columns: number | undefined
  readonly has_colours: boolean
}

/** Width of a terminal that does not report one. */
const columns_default = 80

const columnsOf = ({ isTTY, columns }: NodeJS.WriteStream) =>
  isTTY === true ? columns || columns_default : undefined

/** The width that COLUMNS requests; undefined if it is unset or not a positive number. */
const requestedColumns = ({ COLUMNS = "" }: NodeJS.ProcessEnv) =>
  /^[1-9]\d{0,3}$/.test(COLUMNS) ? Number(COLUMNS) : undefined

/** This process's screen. Source: no-color.org; TERM=dumb has no colours. */
export const screen = (env: NodeJS.ProcessEnv = process.env): Screen => {
  const requested = requestedColumns(env)
  const is_terminal = process.stdout.isTTY === true
  const err_columns = columnsOf(process.stderr)
  const is_plain = (env.NO_COLOR ?? "") !== "" || env.TERM === "dumb"
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    drained: async (signal) => {
      if (process.stdout.writableNeedDrain) await once(process.stdout, "drain", { signal })
    },
    columns: requested ?? columnsOf(process.stdout),
    is_terminal,
    err_columns: err_columns === undefined ? undefined : (requested ?? err_columns),
    has_colours: is_terminal && !is_plain,
  }
}

const colours = { red: 31, green: 32, yellow: 33, blue: 34, grey: 90, bold: 1 } as const
export type Colour = keyof typeof colours

export const coloured = ({ has_colours }: Screen, text: string, colour: Colour | undefined) =>
  has_colours && colour !== undefined ? `\u001b[${colours[colour]}m${text}\u001b[0m` : text

const by_word: Readonly<Record<string, Colour>> = {
  available: "green",
  active: "green",
  ready: "green",
  succeeded: "green",
  healthy: "green",
  error: "red",
  dead: "red",
  offline: "red",
  halted: "red",
  failed: "red",
  queued: "yellow",
  pending: "yellow",
  creating: "yellow",
  draining: "yellow",
  leaving: "yellow",
  joining: "yellow",
  enrolling: "yellow",
  booting: "yellow",
  running: "blue",
  transferring: "blue",
  finalizing: "blue",
  releasing: "blue",
  provisioning_network: "blue",
  provisioning_source: "blue",
  connecting_repository: "blue",
  expired: "grey",
  retired: "grey",
  retiring: "grey",
  "-": "grey",
}

/** Colour of a state. */
export const colourOf = (word: string) => by_word[word]
