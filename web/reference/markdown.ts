/**
 * Renders the Markdown of descriptions: headings, paragraphs, lists, tables and code blocks, with
 * inline code, emphasis and links. Builds DOM nodes, never HTML text.
 */
import { type Child, h } from "../element.ts"

/** Inline code, strong text, emphasis, a link, and a bare URL. */
const inline_parts = new RegExp(
  [
    "`([^`]+)`",
    String.raw`\*\*([^*]+)\*\*`,
    String.raw`\*([^*\s][^*]*)\*`,
    String.raw`\[([^\]]+)\]\(([^)\s]+)\)`,
    String.raw`<?(https?:\/\/[^\s<>()]+[^\s<>().,;:])>?`,
  ].join("|"),
  "g",
)

/** Links in descriptions may lead to the web, to this server, or to a place on the page. */
const isSafe = (href: string) => /^(https?:\/\/|\/|#)/.test(href)

const link = (text: string, href: string): Child =>
  isSafe(href) ? h("a", { href, rel: "noreferrer" }, text) : text

/** The nodes of one line. */
export const inline = (text: string): readonly Child[] => {
  const nodes: Child[] = []
  let end = 0
  for (const found of text.matchAll(inline_parts)) {
    const [all, code, strong, emphasis, label, href, address] = found
    nodes.push(text.slice(end, found.index))
    end = found.index + all.length
    if (code !== undefined) nodes.push(h("code", {}, code))
    else if (strong !== undefined) nodes.push(h("strong", {}, inline(strong)))
    else if (emphasis !== undefined) nodes.push(h("em", {}, inline(emphasis)))
    else if (label !== undefined) nodes.push(link(label.replaceAll("`", ""), href ?? ""))
    else nodes.push(link(address ?? "", address ?? ""))
  }
  nodes.push(text.slice(end))
  return nodes
}

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

const item = /^(\s*)(?:[-*]|(\d+)[.)])\s+(.*)$/
const cellsOf = (row: string) =>
  row
    .replace(/^\s*\|/, "")
    .replace(/\|\s*$/, "")
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll("\\|", "|"))

const tableOf = ([head = "", , ...rows]: readonly string[]) =>
  h(
    "div",
    { class: "scroll", role: "region", tabindex: 0, "aria-label": "Table" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ...cellsOf(head).map((cell) => h("th", {}, inline(cell))))),
      h(
        "tbody",
        {},
        rows.map((row) => h("tr", {}, ...cellsOf(row).map((cell) => h("td", {}, inline(cell))))),
      ),
    ),
  )

/** A list, whose indented items and lines belong to the item above. */
const listOf = (lines: readonly string[]): HTMLElement => {
  const items: string[][] = []
  for (const line of lines) {
    const found = item.exec(line)
    const indent = (item.exec(lines[0] ?? "")?.[1] ?? "").length
    if (found && (found[1] ?? "").length <= indent) items.push([found[3] ?? ""])
    else items.at(-1)?.push(line)
  }
  const is_ordered = item.exec(lines[0] ?? "")?.[2] !== undefined
  return h(
    is_ordered ? "ol" : "ul",
    {},
    items.map(([first = "", ...rest]) => {
      const nested = rest.findIndex((line) => item.test(line))
      const own = nested === -1 ? rest : rest.slice(0, nested)
      const text = [first, ...own.map((line) => line.trim())].join(" ")
      return h("li", {}, inline(text), nested !== -1 && listOf(rest.slice(nested)))
    }),
  )
}

const codeOf = (lines: readonly string[]) =>
  h("pre", { tabindex: 0, "aria-label": "Code" }, h("code", {}, lines.join("\n")))

/** Takes lines from the front while they satisfy the condition. */
const takeWhile = (lines: string[], is: (line: string) => boolean) => {
  const end = lines.findIndex((line) => !is(line))
  return lines.splice(0, end === -1 ? lines.length : end)
}

const isBlank = (line: string) => line.trim() === ""
const startsBlock = (line: string) => /^(#{1,6} |```)/.test(line) || item.test(line)

/** The blocks of a text. */
export const markdown = (text: string, { level, id }: Options): Rendered => {
  const lines = text.split("\n")
  const nodes: Node[] = []
  const headings: Heading[] = []
  const levels = [...text.replaceAll(/```[\s\S]*?```/g, "").matchAll(/^(#{1,6}) /gm)]
  const highest = Math.min(...levels.map(([, marks = ""]) => marks.length))
  const addHeading = (marks: string, title: string) => {
    const depth = Math.min(5, level + marks.length - highest)
    const heading = { text: title.replaceAll("`", ""), id: `${id}/${slugOf(title)}` }
    if (depth === level) headings.push(heading)
    const tag = ([3, 4, 5] as const).find((one) => one === depth) ?? 5
    const attributes = id === undefined ? {} : { id: heading.id, tabindex: -1 }
    nodes.push(h(`h${tag}`, attributes, inline(title)))
  }
  while (lines.length > 0) {
    const [line = "", next = ""] = lines
    const [, marks, title = ""] = /^(#{1,6}) (.*)$/.exec(line) ?? []
    if (isBlank(line)) lines.shift()
    else if (marks !== undefined) {
      lines.shift()
      addHeading(marks, title)
    } else if (line.startsWith("```")) {
      lines.shift()
      nodes.push(codeOf(takeWhile(lines, (one) => !one.startsWith("```"))))
      lines.shift()
    } else if (line.includes("|") && /^[\s|:-]*-[\s|:-]*$/.test(next)) {
      nodes.push(tableOf(takeWhile(lines, (one) => one.includes("|"))))
    } else if (item.test(line)) {
      nodes.push(listOf(takeWhile(lines, (one) => item.test(one) || /^\s+\S/.test(one))))
    } else {
      const first = lines.splice(0, 1)
      const rest = takeWhile(lines, (one) => !isBlank(one) && !startsBlock(one))
      nodes.push(h("p", {}, inline([...first, ...rest].join(" "))))
    }
  }
  return { nodes, headings }
}
