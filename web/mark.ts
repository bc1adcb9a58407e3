/** Marks for votes, distinguished by shape and word as well as colour. */
import type { Direction } from "./capital-pressure/api.ts"
import { h, s } from "./element.ts"
import { voteWord } from "./format.ts"

const shapes: Readonly<Record<Direction, string>> = {
  bull: "M6 1.6 11 10.4H1Z",
  neutral: "M6 1.8a4.2 4.2 0 1 1 0 8.4 4.2 4.2 0 0 1 0-8.4Z",
  bear: "M6 10.4 1 1.6h10Z",
}

/** The shape alone, 12 px; needs the word next to it. */
export const mark = (direction: Direction): SVGElement =>
  s(
    "svg",
    { class: `mark ${direction}`, viewBox: "0 0 12 12", "aria-hidden": "true" },
    s("path", { d: shapes[direction] }),
  )

/** The shape and its word. */
export const vote = (direction: Direction): HTMLElement =>
  h("span", { class: `vote ${direction}` }, mark(direction), voteWord[direction])

/** A framed word that marks a special reading. */
export const badge = (kind: "demo" | "stale" | "gauge" | "error", text: string, title: string) =>
  h("span", { class: `badge ${kind}`, title }, text)

export const demoBadge = () => badge("demo", "Demo", "Generated data, not market data")
