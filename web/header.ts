/** The head that all pages share: whose they are, the way between them, and the colours. */
import { h } from "./element.ts"
import { themeSwitch } from "./theme.ts"

/** Every page, by its path. */
const names: Readonly<Record<string, string>> = {
  "/": "Capital pressure",
  "/carriers": "Carriers",
  "/plants": "Plants",
  "/console": "Console",
}

/** The paths of the pages that are served here, as the server wrote them into this one. */
const servedPages = (header: Element) =>
  (header.getAttribute("data-pages") ?? "").split(" ").filter((path) => Object.hasOwn(names, path))

/** A way to one page alone is not shown. */
const way = (served: readonly string[], title: string) =>
  served.length > 1 &&
  h(
    "nav",
    { "aria-label": "Pages" },
    served.map((path) =>
      h("a", { href: path, "aria-current": names[path] === title && "page" }, names[path]),
    ),
  )

/** Fills the page's `header`; `status` is the page's own, between the title and the colours. */
export const fillHeader = (title: string, status: Node): void => {
  const header = document.querySelector("#header")
  if (header === null) return
  const parts = [
    h("h1", {}, h("span", { class: "house" }, "Almanac"), " ", title),
    way(servedPages(header), title),
    h("div", { class: "status" }, status),
    themeSwitch(),
  ]
  header.append(...parts.filter((part) => part !== false))
}
