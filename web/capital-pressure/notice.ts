/** Notices: no data yet, or a failed refresh. */

import { copyableCommand } from "../command.ts"
import { h } from "../element.ts"
import { clock } from "../format.ts"
import type { Problem } from "./client.ts"

const steps = [
  {
    command: "npm run almanac -- ingest --demo",
    title: "Look around first",
    why: "Fills twenty years of generated history, without network. It says so wherever it shows.",
  },
  {
    command: "npm run almanac -- ingest",
    title: "Or fetch the real series",
    why: "Asks the public sources for all 20 metrics. No key is needed; it takes a few minutes.",
  },
  {
    command: "npm run almanac -- backfill-composite",
    title: "Then compute the history",
    why: "Works out the composite of each past business day, for the chart and the tiers.",
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
        "composite of them. It fills by itself once one of these has run in the project's folder.",
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
      "Check that it runs (npm start) and that this machine has a way to it.",
    ]
  }
  if (kind === "refused") {
    return [
      "This dashboard is private",
      "It needs the token that the operator set as capital.token.",
    ]
  }
  if (kind === "unreadable") {
    return [
      "The answer is not a dashboard's",
      "Something between this page and the server may have answered instead of it.",
    ]
  }
  if (status === 500) {
    return [
      "The server cannot read its data (500)",
      "Its file is missing or damaged. Run an ingest, or look at what the server has logged.",
    ]
  }
  const is_busy = status === 429
  return [
    `The server ${is_busy ? "is asked too often" : "cannot answer now"} (${status})`,
    is_busy ? "Wait a moment." : "It may be starting or stopping. If this lasts, look at its log.",
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
    h("button", { type: "submit" }, "Show the dashboard"),
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
  const next = `Trying again in ${seconds} s.`
  const data_age = read_at === undefined ? "" : ` What you see was read at ${clock(read_at)}.`
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
      : h("button", { type: "button", onclick: retry }, "Try now"),
  )
}
