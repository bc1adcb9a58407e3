/**
 * The table of carriers, with pages of 100 rows. Paged rather than virtualized: a plain table works
 * with every screen reader at any length, and no row moves while results arrive.
 */
import { h } from "../element.ts"
import { count } from "../format.ts"
import type { Found } from "./search.ts"

const page_rows = 100

export interface CarrierTable {
  readonly element: HTMLElement
  /** Shows the current rows; stays on the current page. */
  readonly show: (found: Found) => void
  /** Clears the table for a new search. */
  readonly clear: () => void
}

const row = (number: number, name: string) =>
  h(
    "tr",
    {},
    h("th", { scope: "row", class: "number" }, number),
    h("td", { class: "name" }, name),
    h("td", { class: "state" }, "ACTIVE"),
    h("td", { class: "state" }, "CARRIER"),
  )

const heading = (title: string, kind: string | null) =>
  h("th", { scope: "col", class: kind }, title)

const plainTable = () => {
  const body = h("tbody")
  const scroll = h(
    "div",
    { class: "scroll", role: "region", tabindex: 0, "aria-label": "Carriers found" },
    h(
      "table",
      {},
      h("caption", { class: "visually-hidden" }, "Carriers found, by MC number"),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heading("MC number", "number"),
          heading("Legal name", null),
          heading("Authority", "state"),
          heading("Type", "state"),
        ),
      ),
      body,
    ),
  )
  return { body, scroll }
}

const pager = (onPage: (page: number) => void) => {
  const button = (title: string, sign: string, page: () => number) =>
    h("button", { type: "button", "aria-label": title, title, onclick: () => onPage(page()) }, sign)
  let at = 0
  let last = 0
  const first = button("First page", "\u00ab", () => 0)
  const before = button("Previous page", "\u2039", () => at - 1)
  const next = button("Next page", "\u203a", () => at + 1)
  const end = button("Last page", "\u00bb", () => last)
  const field = h("input", {
    type: "text",
    inputmode: "numeric",
    autocomplete: "off",
    "aria-label": "Page",
    onchange: () => {
      const requested = Number(field.value.replaceAll(",", ""))
      onPage(Number.isInteger(requested) ? requested - 1 : at)
    },
  })
  const page_count = h("span")
  const rows = h("span", { class: "rows" })
  const element = h(
    "nav",
    { class: "turner", "aria-label": "Pages of the table", hidden: true },
    rows,
    h(
      "span",
      { class: "turn" },
      first,
      before,
      h("span", {}, "Page ", field, page_count),
      next,
      end,
    ),
  )
  const show = (page: number, found: number) => {
    at = page
    last = Math.max(0, Math.ceil(found / page_rows) - 1)
    element.hidden = last === 0
    // `aria-disabled` instead of `disabled`, because a disabled button would lose the focus.
    for (const one of [first, before]) one.setAttribute("aria-disabled", String(at === 0))
    for (const one of [next, end]) one.setAttribute("aria-disabled", String(at === last))
    if (document.activeElement !== field) field.value = count(at + 1)
    page_count.textContent = ` of ${count(last + 1)}`
    const to = Math.min(found, (at + 1) * page_rows)
    rows.textContent = `Rows ${count(at * page_rows + 1)} to ${count(to)} of ${count(found)}`
  }
  return { element, show }
}

export const carrierTable = (): CarrierTable => {
  const { body, scroll } = plainTable()
  let current: Found = { numbers: [], names: [] }
  let page = 0

  const draw = () => {
    const { numbers, names } = current
    const from = page * page_rows
    const to = Math.min(numbers.length, from + page_rows)
    for (let index = from + body.childElementCount; index < to; index++) {
      body.append(row(numbers[index] ?? 0, names[index] ?? ""))
    }
    element.hidden = numbers.length === 0
    page_controls.show(page, numbers.length)
  }
  const showPage = (requested: number) => {
    const last = Math.max(0, Math.ceil(current.numbers.length / page_rows) - 1)
    const next = Math.min(last, Math.max(0, requested))
    if (next !== page) {
      page = next
      body.replaceChildren()
      scroll.scrollTop = 0
    }
    draw()
  }
  const page_controls = pager(showPage)
  const element = h("div", { class: "found", hidden: true }, scroll, page_controls.element)
  return {
    element,
    show: (found) => {
      current = found
      draw()
    },
    clear: () => {
      page = 0
      body.replaceChildren()
      element.hidden = true
    },
  }
}
