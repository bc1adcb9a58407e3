/** Time travel: the history of an aggregate, commit by commit. */
import { announce } from "../announcement.ts"
import { h, morphChildren } from "../element.ts"
import type { Chart } from "./api.ts"
import type { Result } from "./client.ts"
import { timestamp } from "./format.ts"
import {
  fetchChart,
  fetchEarliest,
  fetchHistory,
  fetchLater,
  fetchNew,
  findAggregates,
  type HistoryWindow,
} from "./history.ts"
import { emptyBox, formValues, loading, problemBox, replaceForm, textField } from "./parts.ts"
import { poll } from "./poll.ts"
import { commitParts, foundList, typesOf } from "./time-travel-parts.ts"
import { historyAddress, type View } from "./view.ts"

const poll_ms = 3000
const is_name = /^[a-z-]+\.[a-z-]+\.\S+$/

const search = (text: string) =>
  h(
    "form",
    {
      class: "filters past-search",
      "aria-label": "Find a resource",
      onsubmit: (event) => {
        event.preventDefault()
        if (!(event.target instanceof HTMLFormElement)) return
        const { of = "" } = formValues(event.target)
        if (of !== "") location.hash = historyAddress(of)
      },
    },
    textField("of", "Id, service.aggregate or service.aggregate.id", text, "an id"),
    h("button", { type: "submit" }, "Find"),
    h("a", { href: historyAddress("blob-storage.cluster") }, "Blob cluster"),
    h("a", { href: "#audit" }, "Browse the audit log"),
  )

const emptyState = () =>
  emptyBox({
    title: "Find a resource",
    text:
      "Every resource, such as a job, a worker, a target or the blob cluster, has a history of " +
      "events. Enter an id, or follow an id from any view, then move the slider through its " +
      "commits.",
  })

/** The slider with its buttons; created once, so that redraws do not interrupt a drag. */
const slider = (go: (index: number) => void) => {
  const range = h("input", {
    type: "range",
    min: 0,
    step: 1,
    id: "travel",
    "aria-label": "Commit",
    oninput: () => go(Number(range.value)),
  })
  const step = (by: number) => () => go(Number(range.value) + by)
  const button = (name: string, text: string, onclick: () => void) =>
    h("button", { type: "button", "aria-label": name, onclick }, text)
  const words = h("output", { for: "travel" })
  const first = button("First", "\u00ab", () => go(0))
  const last = button("Last", "\u00bb", () => go(Number(range.max)))
  const before = button("Previous", "\u2039", step(-1))
  const after = button("Next", "\u203a", step(1))
  const more = h("span", { class: "more" })
  const element = h(
    "div",
    { class: "slider", "data-key": "slider" },
    first,
    before,
    range,
    after,
    last,
    words,
    more,
  )
  const show = (history: HistoryWindow, index: number) => {
    const commit = history.commits[index]
    range.max = String(history.commits.length - 1)
    range.value = String(index)
    for (const one of [first, before]) one.setAttribute("aria-disabled", String(index === 0))
    const is_last = index === history.commits.length - 1
    for (const one of [last, after]) one.setAttribute("aria-disabled", String(is_last))
    const text = `Commit ${index + 1} of ${history.commits.length}`
    words.textContent = text
    if (commit === undefined) return
    const types = typesOf(commit).join(", ")
    range.setAttribute("aria-valuetext", `${text}: ${types}, ${timestamp(commit.at)}`)
  }
  return { element, more, show }
}

/** Text scaled down below this factor is unreadable. */
const scale_min = 0.75

/** Scales down a chart that is slightly too wide; scrolls a wider one to the active state. */
const showActiveState = (parts: Element) => {
  const scroll = parts.querySelector(".chart-scroll")
  const active_box = parts.querySelector(".chart .state.lit:not(.outer)")
  if (scroll === null || active_box === null || scroll.scrollWidth <= scroll.clientWidth) return
  if (scroll.clientWidth >= scale_min * scroll.scrollWidth) {
    scroll.querySelector(".chart")?.classList.add("fitted")
    return
  }
  const [outer, box] = [scroll.getBoundingClientRect(), active_box.getBoundingClientRect()]
  scroll.scrollLeft += box.left + box.width / 2 - (outer.left + outer.width / 2)
}

interface Displayed {
  history: HistoryWindow
  readonly chart: Chart | undefined
  index: number
}

/** Index of the last commit up to a position; by default the last commit. */
export const indexAt = ({ commits }: HistoryWindow, at: number | undefined): number => {
  if (at === undefined) return commits.length - 1
  const later = commits.findIndex(({ position }) => position > at)
  return Math.max(0, (later === -1 ? commits.length : later) - 1)
}

/** The section with the slider and the current commit. */
const timeTravel = (onChange: (section: HTMLElement) => void) => {
  const title = h("h2", { class: "whose" })
  const parts = h("div", { class: "travel" })
  let displayed: Displayed | undefined

  const go = (to: number) => {
    if (displayed === undefined) return
    const { history, chart } = displayed
    const index = Math.min(Math.max(0, to), history.commits.length - 1)
    displayed.index = index
    slide_controls.show(history, index)
    morphChildren(parts, commitParts(chart, history, index, go))
    showActiveState(parts)
    // Keep the address shareable without adding a history entry per commit.
    globalThis.history.replaceState(
      null,
      "",
      historyAddress(history.of, history.commits[index]?.position),
    )
  }
  const slide_controls = slider(go)
  const section = h(
    "section",
    { class: "past", "aria-label": "History" },
    title,
    slide_controls.element,
    parts,
  )

  /** A button that loads another window and shows its first commit. */
  const windowButton = (
    name: string,
    load: (history: HistoryWindow) => Promise<Result<HistoryWindow>>,
  ) => {
    const onclick = () => {
      const from = displayed
      if (from === undefined) return
      void load(from.history).then((result) => {
        if (displayed === from && result.kind === "ok") display(result.body, from.chart, 0)
      })
    }
    return h("button", { type: "button", onclick }, name)
  }
  const display = (history: HistoryWindow, chart: Chart | undefined, index: number) => {
    displayed = { history, chart, index }
    title.textContent = history.of
    slide_controls.more.replaceChildren(
      ...(history.is_from_start ? [] : [windowButton("Earliest commits", fetchEarliest)]),
      ...(history.has_later ? [windowButton("Later commits", fetchLater)] : []),
    )
    onChange(section)
    go(index)
  }
  /** Appends new commits; advances if the last commit is on screen. */
  const follow = async () => {
    const from = displayed
    const next = from === undefined ? undefined : await fetchNew(from.history)
    if (from === undefined || next === undefined || displayed !== from) return
    const was_last = from.index === from.history.commits.length - 1
    from.history = next
    go(was_last ? next.commits.length - 1 : from.index)
    announce("New commit")
  }
  return {
    go,
    display,
    follow,
    history: () => displayed?.history,
    clear: () => {
      displayed = undefined
    },
  }
}

const open = (place: HTMLElement) => {
  const form = h("div", { class: "filter-place" })
  const below = h("div")
  place.replaceChildren(form, below)
  let requested: string | undefined
  const put = (node: HTMLElement) => below.replaceChildren(node)
  const time_travel = timeTravel(put)
  const following = poll(time_travel.follow, () => poll_ms)

  /** Finds aggregates by id or kind; opens the only match, or lists several. */
  const find = async (text: string) => {
    const result = await findAggregates(text)
    if (requested !== text) return
    if (result.kind === "problem") return put(problemBox(result.problem, text))
    const [only, ...others] = result.body.of
    if (only === undefined || others.length > 0) return put(foundList(text, result.body))
    location.replace(historyAddress(only))
  }
  const load = async (of: string, at: number | undefined) => {
    put(loading())
    if (!is_name.test(of)) return find(of)
    const [result, chart] = await Promise.all([fetchHistory(of, at), fetchChart(of)])
    if (requested !== of) return
    if (result.kind === "problem") return put(problemBox(result.problem, of))
    const known = chart !== undefined && "id" in chart ? chart : undefined
    time_travel.display(result.body, known, indexAt(result.body, at))
  }
  const show = (query: URLSearchParams) => {
    const of = query.get("of")?.trim() ?? ""
    const at = query.get("at")
    const position = at === null || !/^\d+$/.test(at) ? undefined : Number(at)
    replaceForm(form, search(of))
    const history = time_travel.history()
    if (of !== "" && history?.of === of) {
      time_travel.go(indexAt(history, position))
      return
    }
    time_travel.clear()
    requested = of === "" ? undefined : of
    if (of === "") put(emptyState())
    else void load(of, position)
  }
  return {
    show,
    close: () => {
      requested = undefined
      time_travel.clear()
      following.stop()
    },
  }
}

export const timeTravelView: View = { name: "past", title: "Time travel", open }
