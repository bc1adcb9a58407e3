/** The table of contents with its filter. */
import { announce } from "../announcement.ts"
import { h } from "../element.ts"
import { matching, type Operation, type Section } from "./document.ts"
import type { Heading } from "./markdown.ts"

/** On narrow screens the list is closed until it is needed. */
const wide = matchMedia("(min-width: 900px)")

const entry = (href: string, ...children: readonly (Node | string)[]) =>
  h("li", {}, h("a", { href }, ...children))

const operationEntry = ({ anchor, title, method }: Operation) =>
  entry(
    `#${anchor}`,
    h("span", { class: `method ${method.toLowerCase()}` }, method),
    h("span", {}, title),
  )

/** A section: its operations are listed when it is current or the filter matches them. */
const sectionEntry = (section: Section, filter: string, current: string) => {
  const found = filter === "" ? section.operations : matching(section, filter)
  if (found.length === 0) return []
  const is_open = filter !== "" || section.name === current
  return [
    h(
      "li",
      {},
      h("a", { href: `#${section.name}`, class: "section" }, section.title),
      is_open && h("ul", {}, found.map(operationEntry)),
    ),
  ]
}

export const contentsOf = (sections: readonly Section[], headings: readonly Heading[]) => {
  let anchor = ""
  const list = h("ul", { class: "sections" })
  const none = h("p", { class: "note", hidden: true }, "No operation matches.")
  const details = h("details", { open: wide.matches }, h("summary", {}, "Contents"), list, none)
  const draw = (filter: string) => {
    const current = anchor.split("/")[0] ?? ""
    const is_intro = filter === "" && !sections.some(({ name }) => name === current)
    const entries = sections.flatMap((section) => sectionEntry(section, filter, current))
    const intro = h(
      "li",
      {},
      h("a", { href: "#introduction", class: "section" }, "Introduction"),
      is_intro &&
        h(
          "ul",
          {},
          headings.map(({ id, text }) => entry(`#${id}`, text)),
        ),
    )
    list.replaceChildren(...(filter === "" ? [intro] : []), ...entries)
    none.hidden = filter === "" || entries.length > 0
    for (const link of list.querySelectorAll("a")) {
      if (link.getAttribute("href") === `#${anchor || "introduction"}`) {
        link.setAttribute("aria-current", "true")
      }
    }
  }
  const field = h("input", {
    type: "search",
    placeholder: "Filter operations",
    "aria-label": "Filter operations",
    autocomplete: "off",
    oninput: () => {
      const filter = field.value.trim()
      if (filter !== "") details.open = true
      draw(filter)
      const count = list.querySelectorAll("ul a").length
      if (filter !== "") announce(`${count} ${count === 1 ? "operation" : "operations"}`)
    },
  })
  wide.addEventListener("change", () => {
    details.open = wide.matches
  })
  return {
    element: h("div", { class: "contents" }, field, details),
    /** Marks the entry that the address refers to. */
    mark: (place: string) => {
      anchor = place
      if (!wide.matches) details.open = false
      draw(field.value.trim())
      list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" })
    },
  }
}
