/** Renders the Markdown of descriptions as DOM nodes, never as HTML text. */
import { Lexer, lexer, type Token, type Tokens } from "marked"
import { type Child, h } from "../element.ts"

/** Links in descriptions may lead to the web, to this server, or to a place on the page. */
const isSafe = (href: string) => /^(https?:\/\/|\/|#)/.test(href)

/** The nodes of inline text. HTML and unknown syntax stay text. */
const inlineNodes = (tokens: readonly Token[]): readonly Child[] =>
  tokens.map((token) => {
    const inner = "tokens" in token && token.tokens ? inlineNodes(token.tokens) : undefined
    if (token.type === "codespan") return h("code", {}, token.text)
    if (token.type === "strong") return h("strong", {}, inner)
    if (token.type === "em") return h("em", {}, inner)
    if (token.type === "br") return h("br")
    if (token.type === "link" && isSafe(token.href)) {
      return h("a", { href: token.href, rel: "noreferrer" }, inner)
    }
    return inner ?? ("text" in token ? token.text : token.raw)
  })

/** The nodes of one line. */
export const inline = (text: string) => inlineNodes(Lexer.lexInline(text))

const slugOf = (text: string) =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "")

export interface Heading {
  readonly text: string
  readonly id: string
}

export interface Rendered {
  readonly nodes: readonly Node[]
  /** The headings of the highest level. */
  readonly headings: readonly Heading[]
}

interface Options {
  /** Level of the highest heading on the page. */
  readonly level: 3 | 4 | 5
  /** Prefix of the ids of headings; without it they have none. */
  readonly id?: string
}

const rowOf = (cell_tag: "th" | "td", cells: readonly Tokens.TableCell[]) =>
  h("tr", {}, ...cells.map(({ tokens }) => h(cell_tag, {}, inlineNodes(tokens))))

const tableOf = (header: readonly Tokens.TableCell[], rows: Tokens.Table["rows"]) =>
  h(
    "div",
    { class: "scroll", role: "region", tabindex: 0, "aria-label": "Table" },
    h(
      "table",
      {},
      h("thead", {}, rowOf("th", header)),
      h(
        "tbody",
        {},
        rows.map((row) => rowOf("td", row)),
      ),
    ),
  )

/** The node of a block; undefined for blank lines. */
const blockOf = (token: Token): Node | undefined => {
  if (token.type === "space") return undefined
  if (token.type === "code") {
    return h("pre", { tabindex: 0, "aria-label": "Code" }, h("code", {}, token.text))
  }
  if (token.type === "table") return tableOf(token.header, token.rows)
  if (token.type === "list") return listOf(token)
  return h("p", {}, inlineNodes([token]))
}

/** An item contains its text directly; only nested blocks have elements. */
const listOf = ({ ordered, items }: Tokens.Generic) =>
  h(
    ordered ? "ol" : "ul",
    {},
    items.map(({ tokens }: Tokens.ListItem) =>
      h(
        "li",
        {},
        tokens.map((token) => (token.type === "text" ? inlineNodes([token]) : blockOf(token))),
      ),
    ),
  )

/** The blocks of a text. */
export const markdown = (text: string, { level, id }: Options): Rendered => {
  const tokens = lexer(text)
  const depths = tokens.flatMap((token) => (token.type === "heading" ? [token.depth] : []))
  const highest = Math.min(...depths)
  const headings: Heading[] = []
  const headingOf = ({ depth, text: title, tokens: parts = [] }: Tokens.Generic) => {
    const own = Math.min(5, level + depth - highest)
    const heading = { text: title.replaceAll("`", ""), id: `${id}/${slugOf(title)}` }
    if (own === level) headings.push(heading)
    const tag = ([3, 4, 5] as const).find((one) => one === own) ?? 5
    const attributes = id === undefined ? {} : { id: heading.id, tabindex: -1 }
    return h(`h${tag}`, attributes, inlineNodes(parts))
  }
  const nodes = tokens.flatMap((token) => {
    const node = token.type === "heading" ? headingOf(token) : blockOf(token)
    return node === undefined ? [] : [node]
  })
  return { nodes, headings }
}
