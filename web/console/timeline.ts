/** The timeline of all events, newest first, by day: filtered, paged, and live. */
import { announce } from "../announcement.ts"
import { h, morphChildren } from "../element.ts"
import type { AuditEvent, AuditPage } from "./api.ts"
import { get, type Problem } from "./client.ts"
import { dayOf, plural } from "./format.ts"
import { emptyBox, loading, problemBox, replaceForm } from "./parts.ts"
import { type Poller, poll } from "./poll.ts"
import { eventLine, filterForm, filtersIn, type TimelineFilters } from "./timeline-parts.ts"
import type { View } from "./view.ts"

const page_rows = 100
/** Maximum number of events on the page; new ones push out the oldest. */
const rows_max = 1000
const poll_ms = 2000

interface State {
  readonly filters: TimelineFilters
  events: readonly AuditEvent[]
  next_marker: string | undefined
  problem: Problem | undefined
  /** Whether the first response has arrived. */
  is_read: boolean
  is_loading_older: boolean
  readonly open: Set<string>
}

const keyOf = ({ position, index }: AuditEvent) => `${position}.${index}`

const getPage = (filters: TimelineFilters, more: Readonly<Record<string, string>>) =>
  get<AuditPage>(
    `/v1/admin/audit?${new URLSearchParams({ ...filters, limit: String(page_rows), ...more })}`,
  )

/** Reads the newest page and discards the events on screen. */
const readNewest = async (state: State): Promise<boolean> => {
  const result = await getPage(state.filters, {})
  state.is_read = true
  state.problem = result.kind === "problem" ? result.problem : undefined
  if (result.kind === "ok") {
    state.events = result.body.events
    state.next_marker = result.body.next_marker
  }
  return true
}

/**
 * Reads new events, or the newest page if they exceed one page. Returns whether anything changed.
 */
const readNew = async (state: State): Promise<boolean> => {
  const [newest] = state.events
  if (newest === undefined || state.problem !== undefined) return readNewest(state)
  const result = await getPage(state.filters, { order: "asc", marker: keyOf(newest) })
  if (result.kind === "problem") {
    state.problem = result.problem
    return true
  }
  if (result.body.next_marker !== undefined) return readNewest(state)
  const { events } = result.body
  if (events.length === 0) return false
  const all = [...events.toReversed(), ...state.events]
  state.events = all.slice(0, rows_max)
  const last = state.events.at(-1)
  if (all.length > rows_max && last !== undefined) state.next_marker = keyOf(last)
  announce(plural(events.length, "new event"))
  return true
}

const readOlder = async (state: State) => {
  const { next_marker: marker } = state
  if (marker === undefined || state.is_loading_older) return
  state.is_loading_older = true
  const result = await getPage(state.filters, { marker })
  state.is_loading_older = false
  if (result.kind === "problem") {
    state.problem = result.problem
    return
  }
  state.events = [...state.events, ...result.body.events]
  state.next_marker = result.body.next_marker
}

const days = (state: State, draw: () => void) =>
  [...Map.groupBy(state.events, ({ at }) => dayOf(at))].map(([day, events]) =>
    h(
      "section",
      { class: "day", "aria-label": day, "data-key": day },
      h("h2", {}, day),
      h(
        "ol",
        {},
        events.map((event) => {
          const key = keyOf(event)
          const toggle = () => {
            if (!state.open.delete(key)) state.open.add(key)
            draw()
          }
          return eventLine(event, { key, is_open: state.open.has(key), toggle })
        }),
      ),
    ),
  )

const footer = ({ next_marker, events, is_loading_older }: State, loadOlder: () => void) => {
  if (next_marker === undefined) return []
  if (events.length >= rows_max) {
    const text = `Showing ${rows_max} events. Narrow the filters to see older ones.`
    return [h("p", { class: "note", "data-key": "foot" }, text)]
  }
  return [
    h(
      "button",
      { type: "button", "data-key": "foot", onclick: loadOlder, "aria-disabled": is_loading_older },
      "Older events",
    ),
  ]
}

const body = (state: State, draw: () => void, loadOlder: () => void) => {
  if (!state.is_read) return [loading()]
  const problem_parts = state.problem === undefined ? [] : [problemBox(state.problem, "The audit")]
  if (state.events.length === 0 && state.problem === undefined) {
    const is_filtered = Object.keys(state.filters).length > 0
    return [
      is_filtered
        ? emptyBox({
            title: "No matching events",
            text: "No event matches all filters. Times are in UTC; ids must be complete.",
          })
        : emptyBox({
            title: "No events",
            text: "Every change is recorded as an event. Store a blob to see the first one.",
          }),
    ]
  }
  return [...problem_parts, ...days(state, draw), ...footer(state, loadOlder)]
}

const newState = (filters: TimelineFilters): State => ({
  filters,
  events: [],
  next_marker: undefined,
  problem: undefined,
  is_read: false,
  is_loading_older: false,
  open: new Set(),
})

export const timelineView: View = {
  name: "audit",
  title: "Audit",
  open: (place) => {
    const form = h("div", { class: "filter-place" })
    const list = h("section", { class: "timeline", "aria-label": "Events" })
    place.replaceChildren(form, list)
    let state = newState({})
    let poller: Poller | undefined
    const draw = () => morphChildren(list, body(state, draw, loadOlder))
    const loadOlder = () => {
      const own_state = state
      void readOlder(own_state).then(() => own_state === state && draw())
      draw()
    }
    const start = (filters: TimelineFilters) => {
      poller?.stop()
      const own_state = newState(filters)
      state = own_state
      replaceForm(form, filterForm(filters))
      draw()
      poller = poll(
        async () => {
          const is_new = await readNew(own_state)
          if (is_new && own_state === state) draw()
        },
        () => poll_ms,
      )
    }
    return {
      show: (query) => start(filtersIn(query)),
      close: () => {
        poller?.stop()
        state = newState({})
      },
    }
  },
}
