/**
 * The prose of the project: paragraphs of documents, comments, messages in code and text of pages.
 * The style check and the sampler of sentences read it.
 */
import type { TreeFile } from "./tree.ts"

export type Kind = "document" | "comment" | "message" | "page"

export interface Passage {
  readonly kind: Kind
  /** The line in its file that it starts on, from 1. */
  readonly line: number
  /** On one line, without markup, code spans and addresses of links. */
  readonly text: string
}

const lineAt = (text: string, index: number) => text.slice(0, index).split("\n").length

const onOneLine = (text: string) => text.replaceAll(/\s+/g, " ").trim()

/** Code spans become a placeholder, so that a sentence keeps its shape. */
const withoutMarkup = (text: string) =>
  text
    .replaceAll(/`[^`\n]*`/g, "`x`")
    .replaceAll(/\]\([^)]*\)/g, "]")
    .replaceAll(/<https?:[^>]*>|https?:\S+/g, "")
    .replaceAll(/\*\*/g, "")

const blank = (text: string) => text.replaceAll(/[^\n]/g, " ")

/** Paragraphs, list items, table cells and headings of a Markdown page. */
const documentPassages = (text: string): ReadonlyArray<Passage> => {
  const bare = text.replaceAll(/^( *)(```|~~~)[\s\S]*?^\1\2/gm, blank)
  const start = /^(?=\s*(?:[-*] |\d+\. |#+ |\||>|$))/m
  let index = 0
  return bare.split(start).flatMap((part) => {
    const line = lineAt(bare, index)
    index += part.length
    const cells = /^\s*\|/.test(part) ? part.split("|") : [part]
    return cells
      .map((cell) => onOneLine(withoutMarkup(cell.replace(/^\s*([-*>]|\d+\.|#+) /, ""))))
      .filter((cell) => /\p{L}{2}/u.test(cell))
      .map((cell) => ({ kind: "document" as const, line, text: cell }))
  })
}

/** Comments and string literals, in the order of the file; adjacent line comments are one. */
const token = new RegExp(
  [
    String.raw`(\/\*[\s\S]*?\*\/)`,
    String.raw`((?:^[ \t]*\/\/[^\n]*\n)+|(?<=\s)\/\/[^\n]*)`,
    "(\"(?:\\\\.|[^\"\\\\\\n])*\"|'(?:\\\\.|[^'\\\\\\n])*'|`(?:\\\\.|[^`\\\\])*`)",
  ].join("|"),
  "gm",
)

const commentText = (raw: string) =>
  onOneLine(
    withoutMarkup(
      raw
        .replaceAll(/^\s*(\/\*\*?|\*\/|\/\/|\*(?!\/))/gm, "")
        .replaceAll(/\*\/\s*$/g, "")
        .replaceAll(/\{@link (\w+)\}/g, "$1"),
    ),
  )

/** Two words make a message. Adjacent literals that `+` joins are read apart. */
const is_message = /\p{L}{2,}[,:;]? \p{L}/u

const stringText = (raw: string) =>
  onOneLine(
    withoutMarkup(
      raw
        .slice(1, -1)
        .replaceAll(/\$\{[^}]*\}/g, "x")
        .replaceAll(/\\n/g, " ")
        .replaceAll(/\\./g, ""),
    ),
  )

const codePassages = (text: string): ReadonlyArray<Passage> =>
  [...text.matchAll(token)].flatMap(([raw, block, line_comment], position, all) => {
    const line = lineAt(text, all[position]?.index ?? 0)
    const is_comment = block !== undefined || line_comment !== undefined
    const said = is_comment ? commentText(raw) : stringText(raw)
    if (!is_message.test(said)) return []
    return [{ kind: is_comment ? ("comment" as const) : ("message" as const), line, text: said }]
  })

const hashPassages = (text: string): ReadonlyArray<Passage> =>
  [...text.matchAll(/(?:^[ \t]*#(?!!)[^\n]*\n?)+/gm)].flatMap(({ 0: raw, index }) => {
    const said = onOneLine(withoutMarkup(raw.replaceAll(/^\s*#+/gm, "")))
    return is_message.test(said) ? [{ kind: "comment", line: lineAt(text, index), text: said }] : []
  })

const pagePassages = (text: string): ReadonlyArray<Passage> => {
  const bare = text.replaceAll(/<(script|style)[\s\S]*?<\/\1>|<!--[\s\S]*?-->/g, blank)
  return [...bare.matchAll(/>([^<>]*\p{L}{2}[^<>]*)</gu)].map(({ 1: raw = "", index }) => ({
    kind: "page",
    line: lineAt(bare, index),
    text: onOneLine(raw),
  }))
}

/** The passages of one file; none for a kind of file that holds no prose. */
export const passagesOf = ({ path, text }: TreeFile): ReadonlyArray<Passage> => {
  if (/\.md$/.test(path)) return documentPassages(text)
  if (/\.html$/.test(path)) return pagePassages(text)
  if (/\.(sh|yml|toml|conf)$|\.ci\/run$/.test(path)) return hashPassages(text)
  if (!/\.(ts|mts|mjs|css)$/.test(path)) return []
  // A page's program: its messages are labels.
  const passages = codePassages(text)
  if (!path.startsWith("web/")) return passages
  return passages.map((one) => (one.kind === "message" ? { ...one, kind: "page" } : one))
}
