/** One commit in time travel: the chart, the events, the fields, and its origin. */
import { type Child, h } from "../element.ts"
import type { AuditCommit, Chart } from "./api.ts"
import { chartPicture } from "./chart-drawing.ts"
import { activeOf, describedStates, initialOf, transitionsTaken } from "./chart-transitions.ts"
import { compareFields, type Field, isChanged } from "./fields.ts"
import { duration, readable, timeOf, timestamp } from "./format.ts"
import { type FoundAggregates, type HistoryWindow, search_events_max } from "./history.ts"
import { addressOf, historyAddress } from "./view.ts"

/** Above this number of fields, only changed fields are shown. */
const fields_max = 120
/** Number of commits to list before and after the current one. */
const around = 8

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

/** Splits an event into its type and its other fields. */
const split = (event: unknown) => {
  const { type = "?", ...fields } = isRecord(event) ? event : {}
  return { type: String(type), fields }
}

export const typesOf = ({ events }: AuditCommit): readonly string[] =>
  events.map((event) => split(event).type)

/** The state before the commit at `index`. */
const beforeOf = ({ commits, before, value_before }: HistoryWindow, index: number) => {
  const last = commits[index - 1]?.snapshot
  return last ?? { context: before, value: value_before }
}

/** The innermost states, with the region's name if there are several. */
const stateText = (active: readonly string[]) => {
  const inner = active.filter((path) => !active.some((other) => other.startsWith(`${path}.`)))
  const names = inner.map((path) => {
    const [name = path, region] = path.split(".").toReversed()
    return inner.length > 1 && region !== undefined ? `${region}: ${name}` : name
  })
  return names.length === 0 ? "\u2013" : readable(names.join(", "))
}

const chartCard = (
  chart: Chart | undefined,
  history: HistoryWindow,
  index: number,
  commit: AuditCommit,
) => {
  const active = activeOf(commit.snapshot.value)
  if (chart === undefined) {
    const text =
      "This server has no state chart for this aggregate, because another version wrote it."
    return h("p", { class: "note", "data-key": "chart" }, text)
  }
  const { value } = beforeOf(history, index)
  const before = value === undefined ? initialOf(chart) : activeOf(value)
  const taken = transitionsTaken(chart, before, typesOf(commit), active)
  return h(
    "section",
    { class: "card", "aria-labelledby": "chart", "data-key": "chart" },
    h("h2", { id: "chart" }, stateText(active)),
    h(
      "ul",
      { class: "descriptions" },
      describedStates(chart, active).map(({ path, description }) =>
        h("li", { "data-key": path }, description),
      ),
    ),
    chartPicture(chart, { active, transitions: taken }),
    chart.description !== null && h("p", { class: "note" }, chart.description),
  )
}

const pair = (name: string, value: Child) => [h("dt", {}, name), h("dd", {}, value)]

const filterPair = (name: string, value: string | undefined) =>
  value !== undefined && pair(name, h("a", { href: addressOf("audit", { [name]: value }) }, value))

const eventCard = (commit: AuditCommit, since: string | undefined) =>
  h(
    "section",
    { class: "card causing-event", "aria-labelledby": "event", "data-key": "event" },
    h("h2", { id: "event" }, typesOf(commit).join(", ")),
    h(
      "p",
      { class: "note" },
      timestamp(commit.at),
      since !== undefined &&
        `, ${duration(Date.parse(commit.at) - Date.parse(since))} after the previous commit`,
    ),
    commit.events.map((event, index) => {
      const { type, fields } = split(event)
      const text = JSON.stringify(fields, undefined, 2)
      return [
        commit.events.length > 1 && h("h3", {}, `${index + 1}. ${type}`),
        h(
          "pre",
          { tabindex: 0, "aria-label": `Data of ${type}` },
          text === "{}" ? "No data" : text,
        ),
      ]
    }),
    h(
      "dl",
      { class: "pairs" },
      filterPair("actor", commit.actor),
      filterPair("request_id", commit.request_id),
      filterPair("correlation_id", commit.correlation_id),
      commit.cause !== undefined && pair("cause", `commit ${commit.cause}`),
      pair("command", h("code", {}, commit.command_id)),
      pair("position", String(commit.position)),
    ),
  )

const fieldRow = (field: Field) => {
  const { path, before, now } = field
  const is_changed = isChanged(field)
  const mark = before === undefined ? "new" : now === undefined ? "removed" : "changed"
  return h(
    "tr",
    { class: is_changed ? `changed ${mark}` : null, "data-key": path },
    h("th", { scope: "row" }, h("code", {}, path)),
    h(
      "td",
      {},
      is_changed && before !== undefined && [h("del", {}, before), " "],
      now !== undefined && h(is_changed ? "ins" : "span", {}, now),
    ),
    h("td", { class: "mark" }, is_changed && mark),
  )
}

const fieldsCard = (history: HistoryWindow, index: number, commit: AuditCommit) => {
  const before = beforeOf(history, index)
  const all = [
    {
      path: "State",
      before: before.value === undefined ? undefined : stateText(activeOf(before.value)),
      now: stateText(activeOf(commit.snapshot.value)),
    },
    ...compareFields(before.context, commit.snapshot.context),
  ]
  const changed = all.filter(isChanged)
  const shown = all.length > fields_max ? changed.slice(0, fields_max) : all
  return h(
    "section",
    { class: "card fields", "aria-labelledby": "fields", "data-key": "fields" },
    h("h2", { id: "fields" }, "State after this commit"),
    h(
      "p",
      { class: "note" },
      `${changed.length} of ${all.length} fields changed.`,
      shown.length < all.length && ` Showing ${shown.length} changed fields.`,
    ),
    h(
      "div",
      { class: "scroll", role: "region", tabindex: 0, "aria-labelledby": "fields" },
      h(
        "table",
        {},
        h("caption", { class: "visually-hidden" }, "Fields of the state after the commit"),
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["Field", "Value", "Changed"].map((title) => h("th", { scope: "col" }, title)),
          ),
        ),
        h("tbody", {}, shown.map(fieldRow)),
      ),
    ),
  )
}

const commitList = (history: HistoryWindow, index: number, go: (to: number) => void) => {
  const first = Math.max(0, index - around)
  const near = history.commits.slice(first, index + around + 1)
  return h(
    "section",
    { class: "card commits", "aria-labelledby": "commits", "data-key": "commits" },
    h("h2", { id: "commits" }, "Nearby commits"),
    h(
      "ol",
      {},
      near.map((commit, offset) =>
        h(
          "li",
          { "data-key": String(commit.position) },
          h(
            "button",
            {
              type: "button",
              "aria-current": first + offset === index && "step",
              onclick: () => go(first + offset),
            },
            h("span", {}, typesOf(commit).join(", ")),
            h("small", {}, stateText(activeOf(commit.snapshot.value))),
            h("small", { title: timestamp(commit.at) }, timeOf(commit.at)),
          ),
        ),
      ),
    ),
  )
}

/** All parts of one commit. */
export const commitParts = (
  chart: Chart | undefined,
  history: HistoryWindow,
  index: number,
  go: (to: number) => void,
): readonly HTMLElement[] => {
  const commit = history.commits[index]
  if (commit === undefined) return []
  return [
    chartCard(chart, history, index, commit),
    h(
      "div",
      { class: "aside", "data-key": "aside" },
      eventCard(commit, history.commits[index - 1]?.at),
      commitList(history, index, go),
    ),
    fieldsCard(history, index, commit),
  ]
}

/** The aggregates that a search found, as links. */
export const foundList = (id: string, { of, is_all }: FoundAggregates): HTMLElement =>
  h(
    "section",
    { class: "card", "aria-labelledby": "found", "data-key": "found" },
    h("h2", { id: "found" }, of.length === 0 ? "No match" : "Choose a resource"),
    of.length === 0 &&
      h("p", { class: "note" }, `No event has the id ${id}. Enter the complete id.`),
    !is_all &&
      h(
        "p",
        { class: "note" },
        `From the newest ${search_events_max} events. Enter an id to find an older resource.`,
      ),
    h(
      "ul",
      {},
      of.map((name) => h("li", { "data-key": name }, h("a", { href: historyAddress(name) }, name))),
    ),
  )
