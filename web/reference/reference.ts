/** The API reference: the introduction, or the operations of one section, from /openapi.json. */
import { announce } from "../announcement.ts"
import { h } from "../element.ts"
import { fillHeader } from "../header.ts"
import { contentsOf } from "./contents.ts"
import { type OpenApi, type Section, sectionsOf } from "./document.ts"
import { introduction } from "./introduction.ts"
import { operationArticle } from "./operation.ts"
import { describe, resolver } from "./schema.ts"

const title = "API"

const status = h(
  "div",
  { class: "status-parts" },
  h("a", { href: "/openapi.json" }, "OpenAPI"),
  h("a", { href: "/asyncapi.json" }, "AsyncAPI"),
)
fillHeader(title, status)

const main = document.querySelector("#main") ?? document.body
const contents_place = document.querySelector("#contents") ?? document.body

const anchorInAddress = () => decodeURIComponent(location.hash.slice(1))

const sectionPage = ({ title, description, operations }: Section, openapi: OpenApi) => {
  const resolve = resolver(openapi)
  return [
    h("h2", { id: operations[0]?.anchor.split("/")[0] ?? "", tabindex: -1 }, title),
    h("div", { class: "about" }, describe(description)),
    ...operations.map((operation) => operationArticle(operation, resolve)),
  ]
}

/** Shows the page, and redraws it when the address changes. */
const start = (openapi: OpenApi) => {
  const sections = sectionsOf(openapi)
  const intro = introduction(openapi)
  const contents = contentsOf(sections, intro.headings)
  contents_place.replaceChildren(contents.element)
  let shown: string | undefined

  const show = (is_first: boolean) => {
    const anchor = anchorInAddress()
    const name = anchor.split("/")[0] ?? ""
    const section = sections.find((one) => one.name === name)
    const page = section?.name ?? ""
    if (page !== shown) {
      shown = page
      main.replaceChildren(...(section ? sectionPage(section, openapi) : intro.nodes))
    }
    const operation = section?.operations.find((one) => one.anchor === anchor)
    const place = operation?.title ?? section?.title
    document.title = [place, title, "Almanac"].filter(Boolean).join(" \u00b7 ")
    contents.mark(anchor)
    const target = document.getElementById(anchor)
    if (target === null) {
      if (!is_first) scrollTo(0, 0)
      return
    }
    target.scrollIntoView()
    target.focus({ preventScroll: true })
  }
  addEventListener("hashchange", () => show(false))
  show(true)
}

const showFailure = (reason: string) => {
  const retry = h("button", { type: "button", onclick: () => void load() }, "Retry")
  main.replaceChildren(
    h(
      "section",
      { class: "problem", role: "alert" },
      h("h2", {}, "The API description could not be loaded"),
      h("p", {}, `GET /openapi.json failed: ${reason}`),
      retry,
    ),
  )
}

async function load() {
  main.replaceChildren(h("p", { class: "loading" }, "Loading\u2026"))
  try {
    const response = await fetch("/openapi.json", { headers: { accept: "application/json" } })
    if (!response.ok) return showFailure(`status ${response.status}.`)
    const openapi: OpenApi = await response.json()
    start(openapi)
    announce("Loaded")
  } catch {
    showFailure("the server does not respond.")
  }
}

void load()
