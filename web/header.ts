/** The header of all pages: title, navigation and theme switch. */
import { h } from "./element.ts"
import { themeSwitch } from "./theme.ts"

/** Titles of all pages by path. */
const names: Readonly<Record<string, string>> = {
  "/": "Capital pressure",
  "/carriers": "Carriers",
  "/plants": "Plants",
  "/console": "Console",
  "/docs": "API",
}

/** Paths of the pages that this server serves, from an attribute that the server fills in. */
const servedPages = (header: Element) =>
  (header.getAttribute("data-pages") ?? "").split(" ").filter((path) => Object.hasOwn(names, path))

/** The navigation; omitted if there is only one page. */
const navigation = (paths: readonly string[], title: string) =>
  paths.length > 1 &&
  h(
    "nav",
    { "aria-label": "Pages" },
    paths.map((path) =>
      h("a", { href: path, "aria-current": names[path] === title && "page" }, names[path]),
    ),
  )

/** Fills the page's header; `status` is the page's own part, before the theme switch. */
export const fillHeader = (title: string, status: Node): void => {
  const header = document.querySelector("#header")
  if (header === null) return
  const parts = [
    h("h1", {}, h("span", { class: "brand" }, "Almanac"), " ", title),
    navigation(servedPages(header), title),
    h("div", { class: "status" }, status),
    themeSwitch(),
  ]
  header.append(...parts.filter((part) => part !== false))
}
