/** Describes a search: headline, progress, and advice on errors. */
import { h } from "../element.ts"
import { count, sentence } from "../format.ts"
import { type Range, rangeText, total } from "./range.ts"
import { duration, rateOf, timeLeft } from "./rate.ts"
import type { Failure, Found, Outcome } from "./search.ts"

export interface Run {
  readonly range: Range
  readonly found: Found
  readonly started_at: number
  /** Numbers looked up so far. */
  done: number
  /** Time of the last message, in milliseconds. */
  last_message_at: number
  samples: Parameters<typeof rateOf>[0]
  outcome?: Outcome
}

/** The server sends a line each second; a longer silence is reported. */
const silence_ms_max = 10_000

const carriers = (amount: number) => `${count(amount)} carrier${amount === 1 ? "" : "s"}`

/** "1,204 carriers in MC 1 to 500" */
export const headline = ({ found, range, outcome }: Run): string => {
  const amount = found.numbers.length
  if (outcome?.kind === "done" && amount === 0) return `No carriers in ${rangeText(range)}`
  const so_far = outcome?.kind === "done" ? "" : " so far"
  return `${carriers(amount)}${so_far} in ${rangeText(range)}`
}

const runningText = ({ range, done, samples, last_message_at }: Run, now: number) => {
  const rate = rateOf(samples)
  const pace = rate === undefined || rate < 1 ? [] : [`${count(Math.round(rate))} per second`]
  const left = total(range) - done
  return [
    `${count(done)} of ${count(total(range))} numbers`,
    ...pace,
    ...(rate !== undefined && rate > 0 && left > 0 ? [timeLeft(left, rate)] : []),
    ...(now - last_message_at > silence_ms_max
      ? [`no data for ${duration(now - last_message_at)}`]
      : []),
  ]
}

const endedText = (run: Run) => {
  const { outcome, done, range } = run
  if (outcome?.kind === "done") {
    const { total, duration_ms, registry } = outcome.summary
    const place_text = registry === "mirror" ? "in the mirror" : "at FMCSA"
    return [`${count(total)} numbers looked up ${place_text}`, duration(duration_ms)]
  }
  const stopped = outcome?.kind === "cancelled" ? "Cancelled" : "Stopped"
  return [
    `${stopped} after ${count(done)} of ${count(total(range))} numbers`,
    "partial results below",
  ]
}

/** One line: progress, rate and time left, or the outcome. */
export const progressText = (run: Run, now: number): string =>
  (run.outcome ? endedText(run) : runningText(run, now)).join(" \u00b7 ")

/** Explains an empty result. */
export const nothingFound = (): HTMLElement =>
  h(
    "p",
    { class: "hint", "data-key": "nothing" },
    "All numbers were looked up. Unassigned and inactive numbers, brokers, and carriers that are " +
      "also brokers are excluded.",
  )

const retry_later = "Wait a moment, then search again."
const advice_by_kind: Readonly<
  Record<Failure["kind"], readonly [title: string, what_to_do: string]>
> = {
  offline: [
    "The server cannot be reached",
    "Check that it is running (npm start) and that your network reaches it.",
  ],
  refused: ["The search is invalid", "Change the range, then search again."],
  busy: ["The server is busy", retry_later],
  registry: [
    "Some lookups failed",
    "Search again, or narrow the range. The status of the registry is shown above.",
  ],
  server: ["The search failed", "Check the server's log, then search again."],
  broken: [
    "The response was cut off",
    "The server stopped or the connection was lost. Partial results are below. Search again.",
  ],
  unreadable: ["Unexpected response", "A proxy between this page and the server may have sent it."],
}

/** The server's error message, with advice. */
export const failureNotice = (
  { kind, status, message }: Failure,
  retry: () => void,
): HTMLElement => {
  const [title, what_to_do] = advice_by_kind[kind]
  return h(
    "section",
    { class: "problem", role: "alert", "data-key": "problem" },
    h("h2", {}, status >= 400 ? `${title} (${status})` : title),
    h("p", {}, `${sentence(message)} `, what_to_do),
    h("button", { type: "button", onclick: retry }, "Search again"),
  )
}
