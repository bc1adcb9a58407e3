/** Elements shared by several views. */
import { copyableCommand } from "../command.ts"
import { type Child, h, morphChildren, s } from "../element.ts"
import type { Problem } from "./client.ts"
import { ago, shortId, timestamp } from "./format.ts"
import { historyAddress } from "./view.ts"

/** The command that issues a token with access to every view. */
export const token_command =
  "npm run almanac -- token issue --name console --role admin --scope cluster:admin --ttl 43200"

/** A problem with advice; a 403 adds the command that issues a token. */
export const problemBox = ({ status, title, text }: Problem, of: string): HTMLElement =>
  h(
    "section",
    { class: "problem", role: "alert", "data-key": `problem-${of}` },
    h("h2", {}, `${title}${status > 0 ? ` (${status})` : ""}`),
    h("p", {}, `${of}: ${text}`),
    status === 403 && copyableCommand(token_command),
  )

export interface EmptyState {
  readonly title: string
  readonly text: string
  readonly commands?: readonly string[]
}

/** A view without data: what will appear here, and how to get it. */
export const emptyBox = ({ title, text, commands = [] }: EmptyState): HTMLElement =>
  h(
    "section",
    { class: "empty", "data-key": "empty" },
    h("h2", {}, title),
    h("p", {}, text),
    h(
      "ol",
      {},
      commands.map((command) => h("li", {}, copyableCommand(command))),
    ),
  )

/** Shown until the first response. */
export const loading = (): HTMLElement =>
  h("section", { class: "loading", "data-key": "loading" }, "Loading\u2026")

/** Distinguished by shape as well as colour. */
export type Tone = "good" | "busy" | "waiting" | "bad" | "over"

const tone_class: Readonly<Record<Tone, string>> = {
  good: "live",
  busy: "busy",
  waiting: "",
  bad: "failing",
  over: "stub",
}

/** A status: a mark for its tone, then a word. */
export const statusMark = (tone: Tone, text: string): HTMLElement =>
  h("span", { class: `standing ${tone_class[tone]}`.trim() }, text)

/** The age of a time, with the full time as tooltip. */
export const when = (at: string | null, now: number): Child =>
  at === null
    ? h("span", { class: "none" }, "\u2013")
    : h("time", { datetime: at, title: timestamp(at) }, ago(at, now))

/** A short id that links to the aggregate's history. */
export const historyLink = (of: string, id: string, position?: number): HTMLElement =>
  h(
    "a",
    {
      href: historyAddress(`${of}.${id}`, position),
      title: `History of ${of} ${id}`,
      class: "id",
    },
    shortId(id),
  )

/** A short id without a link, with the full id as tooltip. */
export const idText = (id: string | null): Child =>
  id === null ? h("span", { class: "none" }, "\u2013") : h("code", { title: id }, shortId(id))

export interface Piece {
  readonly tone: Tone
  readonly amount: number
  readonly title: string
}

const bar_units = 100

/** A stacked bar. Hidden from screen readers, so the values must also be in text nearby. */
export const bar = (pieces: readonly Piece[], total?: number): SVGElement => {
  const whole = Math.max(
    total ?? pieces.reduce((sum, { amount }) => sum + amount, 0),
    Number.MIN_VALUE,
  )
  let from = 0
  return s(
    "svg",
    {
      class: "bar",
      viewBox: `0 0 ${bar_units} 1`,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    },
    s("rect", { class: "ground", x: 0, y: 0, width: bar_units, height: 1 }),
    pieces.map(({ tone, amount, title }) => {
      const width = (amount / whole) * bar_units
      const piece = s(
        "rect",
        { class: tone, x: from, y: 0, width, height: 1 },
        s("title", {}, title),
      )
      from += width
      return width > 0 && piece
    }),
  )
}

/** A figure with its name. */
export const figure = (value: Child, name: string, href?: string): HTMLElement =>
  h("div", {}, h("dt", {}, href === undefined ? name : h("a", { href }, name)), h("dd", {}, value))

/** A select field with its label. */
export const choice = (
  name: string,
  title: string,
  options: readonly (readonly [value: string, text: string])[],
  chosen: string,
): HTMLElement =>
  h(
    "div",
    { class: "field" },
    h("label", { for: `f-${name}` }, title),
    h(
      "select",
      { id: `f-${name}`, name },
      options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)),
    ),
  )

/** A text field with its label. */
export const textField = (name: string, title: string, value: string, hint = ""): HTMLElement =>
  h(
    "div",
    { class: "field" },
    h("label", { for: `f-${name}` }, title),
    h("input", {
      id: `f-${name}`,
      name,
      value,
      placeholder: hint,
      autocomplete: "off",
      spellcheck: "false",
    }),
  )

/** Replaces the form; keeps the focus and resets all fields to the new values. */
export const replaceForm = (place: HTMLElement, form: HTMLElement): void => {
  morphChildren(place, [form])
  place.querySelector("form")?.reset()
}

/** The non-empty fields of a form. */
export const formValues = (form: HTMLFormElement): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...new FormData(form)].flatMap(([name, value]) =>
      typeof value === "string" && value.trim() !== "" ? [[name, value.trim()]] : [],
    ),
  )
