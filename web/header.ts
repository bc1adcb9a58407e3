/** The head that all pages share: whose they are, the way between them, and the colours. */
import { h } from "./element.ts"
import { themeSwitch } from "./theme.ts"

/** Pages, in the order of the way; a way to one page alone is not shown. */
const pages = [{ path: "/", name: "Capital pressure" }] as const

const way = () =>
  pages.length < 2
    ? null
    : h(
        "nav",
        { "aria-label": "Pages" },
        pages.map(({ path, name }) =>
          h("a", { href: path, "aria-current": location.pathname === path ? "page" : null }, name),
        ),
      )

/** Fills the page's `header`; `status` is the page's own, between the title and the colours. */
export const fillHeader = (title: string, status: Node): void => {
  document
    .querySelector("#header")
    ?.append(
      h("h1", {}, h("span", { class: "house" }, "Almanac"), " ", title),
      way() ?? "",
      h("div", { class: "status" }, status),
      themeSwitch(),
    )
}
