/** Notices: no data yet, or a failed refresh. */

import { copyableCommand } from "../command.ts"
import { h } from "../element.ts"
import { clock } from "../format.ts"
import type { Problem } from "./client.ts"

const steps = [
  {
    command: "npm run almanac -- ingest --demo",
    title: "Try it with demo data",
    why: "Generates twenty years of history, offline. All pages mark it as demo data.",
  },
  {
    command: "npm run almanac -- ingest",
    title: "Or fetch real data",
    why: "Fetches all 20 metrics from public sources. Needs no key; takes a few minutes.",
  },
  {
    command: "npm run almanac -- backfill-composite",
    title: "Then compute the history",
    why: "Computes the composite of each past business day, for the chart and the tiers.",
  },
] as const

/** Explains which commands to run before the first ingest. */
export const emptyState = (): HTMLElement =>
  h(
    "section",
    { class: "empty", "aria-labelledby": "empty-title" },
    h("h2", { id: "empty-title" }, "No data yet"),
    h(
      "p",
      {},
      "This page shows how much pressure markets put on capital: 16 votes in four tiers, and one " +
        "composite of them. Run one of these commands in the project's folder to fill it.",
    ),
    h(
      "ol",
      {},
      steps.map(({ command, title, why }) =>
        h("li", {}, h("h3", {}, title), h("p", {}, why), copyableCommand(command)),
      ),
    ),
  )

const adviceOn = ({ kind, status }: Problem): readonly [title: string, what_to_do: string] => {
  if (kind === "offline") {
    return [
      "The server cannot be reached",
      "Check that it is running (npm start) and that your network reaches it.",
    ]
  }
  if (kind === "refused") {
    return ["This dashboard is private", "Enter the token from the setting capital.token."]
  }
  if (kind === "unreadable") {
    return ["Unexpected response", "A proxy between this page and the server may have sent it."]
  }
  if (status === 500) {
    return [
      "The server cannot read its data (500)",
      "The data file is missing or damaged. Run an ingest, or check the server's log.",
    ]
  }
  const is_busy = status === 429
  return [
    `${is_busy ? "Too many requests" : "Service unavailable"} (${status})`,
    is_busy
      ? "Wait a moment."
      : "The server may be starting or stopping. If this persists, check its log.",
  ]
}

const tokenForm = (onToken: (token: string) => void) =>
  h(
    "form",
    {
      class: "token",
      onsubmit: (event) => {
        event.preventDefault()
        const form = event.target
        if (!(form instanceof HTMLFormElement)) return
        const token = new FormData(form).get("token")
        if (typeof token === "string" && token !== "") onToken(token)
      },
    },
    h("label", { for: "token" }, "Token"),
    h("input", { id: "token", name: "token", type: "password", autocomplete: "off" }),
    h("button", { type: "submit" }, "Sign in"),
  )

export interface ProblemActions {
  readonly retry: () => void
  readonly onToken: (token: string) => void
}

/** The problem, with advice. `read_at`: time of the data on the page, if any. */
export const problemNotice = (
  problem: Problem,
  read_at: number | undefined,
  { retry, onToken }: ProblemActions,
): HTMLElement => {
  const [title, what_to_do] = adviceOn(problem)
  const seconds = Math.max(1, Math.round((problem.retry_at - Date.now()) / 1000))
  const next = `Retrying in ${seconds} s.`
  const data_age = read_at === undefined ? "" : ` The data on this page is from ${clock(read_at)}.`
  return h(
    "section",
    {
      class: "problem",
      role: "alert",
      "data-key": "problem",
    },
    h("h2", {}, title),
    h("p", {}, what_to_do, data_age, problem.kind === "refused" ? "" : ` ${next}`),
    problem.kind === "refused"
      ? tokenForm(onToken)
      : h("button", { type: "button", onclick: retry }, "Retry now"),
  )
}
