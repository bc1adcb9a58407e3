/** Logs to standard error: readable lines on a terminal, JSON otherwise. */
import { Formatter, Layer, Logger, LogLevel, References } from "effect"
import type { Settings } from "#schemas/settings.ts"

/** Output of the logger. */
export interface Sink {
  readonly is_terminal: boolean
  readonly write: (line: string) => void
}

const standard_error: Sink = {
  is_terminal: process.stderr.isTTY === true,
  write: (line) => {
    process.stderr.write(line)
  },
}

/** Level names of settings, mapped to Effect's. */
const levels: Readonly<Record<Settings["log"]["level"], LogLevel.LogLevel>> = {
  trace: "Trace",
  debug: "Debug",
  info: "Info",
  warning: "Warn",
  error: "Error",
  fatal: "Fatal",
}

/** Patterns of credentials in headers and URLs, anywhere in a string. */
const credentials = [
  [/\b(bearer|basic)\s+[\w.~+/=-]{4,}/gi, "$1 <redacted>"],
  [/((?:authorization|x-auth-token|cookie)["']?\s*[:=]\s*["']?)[^\s"',}]+/gi, "$1<redacted>"],
  // Limited, because a long run of dots would otherwise take seconds.
  [/(\b[a-z][a-z\d+.-]{0,30}:\/\/)[^\s/@"]+@/gi, "$1<redacted>@"],
] as const

/** The text without credentials. */
export const redacted = (text: string) =>
  credentials.reduce(
    (clean, [pattern, replacement]) => clean.replaceAll(pattern, replacement),
    text,
  )

const colours: Readonly<Record<string, string>> = {
  TRACE: "\x1b[90m",
  DEBUG: "\x1b[90m",
  INFO: "\x1b[32m",
  WARN: "\x1b[33m",
  ERROR: "\x1b[31m",
  FATAL: "\x1b[31m",
}

type Entry =
  typeof Logger.formatStructured extends Logger.Logger<unknown, infer Output> ? Output : never

/** Escapes control characters, so that external input can neither forge nor hide log lines. */
const escapeControls = (text: string) =>
  text.replaceAll(/\p{Cc}/gu, (one) => `\\x${one.charCodeAt(0).toString(16).padStart(2, "0")}`)

const valueText = (value: unknown) =>
  typeof value === "string" ? value : Formatter.formatJson(value)

const pretty = ({ timestamp, level, message, annotations, cause }: Entry) => {
  const time = timestamp.slice(11, 23)
  const words = (Array.isArray(message) ? message : [message]).map(valueText).join(" ")
  const annotation_text = Object.entries(annotations).map(
    ([name, value]) => ` ${name}=${valueText(value)}`,
  )
  const colour = colours[level] ?? ""
  const trace = cause === undefined ? "" : `\n${cause.split("\n").map(escapeControls).join("\n")}`
  const head = `\x1b[90m${time}\x1b[0m ${colour}${level.padEnd(5)}\x1b[0m`
  return `${head} ${escapeControls(`${words}${annotation_text.join("")}`)}${trace}`
}

/** The only logger of the process; `level` is evaluated per line, so that it can be reloaded. */
export const logging = (level: () => Settings["log"]["level"], sink: Sink = standard_error) => {
  const write = sink.is_terminal ? pretty : (entry: Entry) => Formatter.formatJson(entry)
  const logger = Logger.make<unknown, void>((options) => {
    if (LogLevel.isLessThan(options.logLevel, levels[level()])) return
    sink.write(`${redacted(write(Logger.formatStructured.log(options)))}\n`)
  })
  return Layer.merge(
    Logger.layer([logger]),
    Layer.succeed(References.MinimumLogLevel, "Trace" as const),
  )
}
