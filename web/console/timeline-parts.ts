/** Parts of the timeline: the filter form, and a line per event. */
import { h } from "../element.ts"
import type { AuditEvent } from "./api.ts"
import { shortId, timeOf, timestamp } from "./format.ts"
import { choice, formValues, textField } from "./parts.ts"
import { addressOf, historyAddress } from "./view.ts"

const names = [
  "service",
  "aggregate",
  "type",
  "actor",
  "subject",
  "request_id",
  "correlation_id",
  "from",
  "to",
] as const

export type TimelineFilters = Readonly<Record<string, string>>

/** The filters of the address that the API supports. */
export const filtersIn = (query: URLSearchParams): TimelineFilters =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = query.get(name)?.trim() ?? ""
      return value === "" ? [] : [[name, value]]
    }),
  )

const services = [
  ["", "Any"],
  ["blob-storage", "Blob storage"],
  ["share-protection", "Share protection"],
  ["capital-pressure", "Capital pressure"],
  ["carrier-search", "Carrier search"],
  ["plant-disease", "Plant disease"],
  ["system", "System"],
] as const

/** Converts a date, or a date and time like "2026-11-20 14:00", to RFC 3339 in UTC. */
export const instant = (text: string): string => {
  const [, day = "", clock = "00:00", seconds = ":00"] =
    /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(:\d{2}(?:\.\d+)?)?)?Z?$/i.exec(text) ?? []
  return day === "" ? text : `${day}T${clock}${seconds}Z`
}

const submit = (form: HTMLFormElement) => {
  const { from, to, ...others } = formValues(form)
  location.hash = addressOf("audit", {
    ...others,
    from: from === undefined ? undefined : instant(from),
    to: to === undefined ? undefined : instant(to),
  })
}

/** The filter form; submitting it changes the address. */
export const filterForm = (filters: TimelineFilters): HTMLElement => {
  const of = (name: string) => filters[name] ?? ""
  return h(
    "form",
    {
      class: "filters",
      "aria-label": "Filter events",
      onsubmit: (event) => {
        event.preventDefault()
        if (event.target instanceof HTMLFormElement) submit(event.target)
      },
      onchange: ({ target }) => {
        if (target instanceof HTMLSelectElement) target.form?.requestSubmit()
      },
    },
    choice("service", "Service", services, of("service")),
    textField("type", "Type", of("type"), "JobFailed"),
    textField("subject", "Subject", of("subject"), "an id"),
    textField("actor", "Actor", of("actor"), "token:admin"),
    textField("request_id", "Request id", of("request_id")),
    textField("from", "From (UTC)", of("from"), "2026-11-20 14:00"),
    textField("to", "To (UTC)", of("to"), "2026-11-21"),
    h("button", { type: "submit" }, "Filter"),
    Object.keys(filters).length > 0 && h("a", { href: "#audit" }, "Show all"),
  )
}

/** A field of the event with a link that filters by its value. */
const filterLink = (name: string, value: string | undefined) =>
  value !== undefined && [
    h("dt", {}, name),
    h("dd", {}, h("a", { href: addressOf("audit", { [name]: value }) }, value)),
  ]

const detail = (event: AuditEvent) =>
  h(
    "div",
    { class: "event-detail" },
    h(
      "dl",
      { class: "pairs" },
      filterLink("subject", event.subject),
      filterLink("actor", event.actor),
      filterLink("request_id", event.request_id),
      filterLink("correlation_id", event.correlation_id),
      event.cause !== undefined && [h("dt", {}, "cause"), h("dd", {}, `commit ${event.cause}`)],
      h("dt", {}, "at"),
      h("dd", {}, timestamp(event.at)),
      h("dt", {}, "position"),
      h("dd", {}, `${event.position}.${event.index}`),
    ),
    h("pre", { tabindex: 0, "aria-label": "Event data" }, JSON.stringify(event.data, undefined, 2)),
  )

interface Line {
  readonly key: string
  readonly is_open: boolean
  readonly toggle: () => void
}

export const eventLine = (event: AuditEvent, { key, is_open, toggle }: Line): HTMLElement => {
  const { service, aggregate, id, at, type, subject, actor, position } = event
  return h(
    "li",
    { "data-key": key, class: "event" },
    h("time", { datetime: at, title: timestamp(at) }, timeOf(at)),
    h(
      "button",
      { type: "button", class: "type", "aria-expanded": String(is_open), onclick: toggle },
      type,
    ),
    h(
      "a",
      {
        class: "id",
        href: historyAddress(`${service}.${aggregate}.${id}`, position),
        title: `History of ${service}.${aggregate}.${id}`,
      },
      `${aggregate} ${shortId(subject)}`,
    ),
    h("span", { class: `service of-${service}` }, service),
    h("span", { class: "actor", title: actor }, actor),
    is_open && detail(event),
  )
}
