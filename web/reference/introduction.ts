/** The first page: what the API is, how to authenticate, and where its documents are. */
import { type Child, h } from "../element.ts"
import type { OpenApi } from "./document.ts"
import { inline, markdown } from "./markdown.ts"

const kindOf: Readonly<Record<string, string>> = {
  http: "Header Authorization: Bearer TOKEN",
  mutualTLS: "TLS client certificate",
}

const schemesOf = ({ components }: OpenApi) => {
  const all = Object.entries(components?.securitySchemes ?? {})
  return (
    all.length > 0 && [
      h("h3", { id: "introduction/credentials", tabindex: -1 }, "Credentials"),
      h(
        "dl",
        { class: "schemes" },
        all.map(
          ([, { type, in: place, name, description = "" }]): Child => [
            h("dt", {}, kindOf[type] ?? `${place === "header" ? "Header" : place} ${name}`),
            h("dd", {}, inline(description)),
          ],
        ),
      ),
    ]
  )
}

/** The nodes of the introduction, and its headings. */
export const introduction = (openapi: OpenApi) => {
  const { info } = openapi
  const text = markdown(info.description ?? "", { level: 3, id: "introduction" })
  const element = h(
    "div",
    { class: "about introduction" },
    h("h2", { id: "introduction", tabindex: -1 }, `${info.title} API`),
    h("p", { class: "note" }, `Version ${info.version}, base URL `, h("code", {}, location.origin)),
    [...text.nodes],
    schemesOf(openapi),
  )
  const own = { id: "introduction/credentials", text: "Credentials" }
  return { nodes: [element], headings: [...text.headings, own] }
}
