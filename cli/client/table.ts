/** Tables and field lists that fit the terminal. */

import { flat } from "#cli/client/columns.ts"
import { formatValue, plain } from "#cli/client/format.ts"
import { isList, isObject, type Json, type JsonObject, memberAt } from "#cli/client/json.ts"
import { coloured, colourOf, type Screen } from "#cli/client/screen.ts"

const gap = "  "

/** Minimum width of a shrunk column, in characters; below it, the last column is dropped. */
const column_chars_min = 18

/** Columns of words that are readable with fewer characters. */
const short_chars_min = 10
const is_short = /^(job_type|type|state|status|target|actor)$/

/** Columns that are never truncated, because people copy them: ids, hashes and times. */
const is_uncut = /^(id|.*_id|checksum|hash|subject|at|.*_at|last_tick|age|position)$/

/** Characters that take two cells, as most terminals show them. */
const is_wide = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60]/u

/** Width of the text in terminal cells. */
export const widthOf = (text: string) => {
  let cells = 0
  for (const one of text) cells += is_wide.test(one) || one.length > 1 ? 2 : 1
  return cells
}

/** Truncates the text to `cells`, with an ellipsis. */
export const truncated = (text: string, cells: number) => {
  if (widthOf(text) <= cells) return text
  let head_text = ""
  let used = 1
  for (const one of text) {
    used += widthOf(one)
    if (used > cells) break
    head_text += one
  }
  return `${head_text}…`
}

const padded = (text: string, cells: number, is_right: boolean) => {
  const blank = " ".repeat(Math.max(0, cells - widthOf(text)))
  return is_right ? blank + text : text + blank
}

const totalWidth = (widths: ReadonlyArray<number>) =>
  widths.reduce((all, one) => all + one, 0) + gap.length * Math.max(0, widths.length - 1)

/** Widths of the columns that fit. */
const layout = (
  names: ReadonlyArray<string>,
  natural: ReadonlyArray<number>,
  columns: number | undefined,
): ReadonlyArray<number> => {
  if (columns === undefined || totalWidth(natural) <= columns) return natural
  // Shrink the widest truncatable column first, down to the minimum.
  const widths = [...natural]
  const min = names.map((name) => (is_short.test(name) ? short_chars_min : column_chars_min))
  const can_shrink = names.map(
    (name, i) => !is_uncut.test(name) && (natural[i] ?? 0) > (min[i] ?? 0),
  )
  const floor = widths.map((width, i) => (can_shrink[i] ? (min[i] ?? width) : width))
  if (totalWidth(floor) > columns && names.length > 1) {
    return layout(names.slice(0, -1), natural.slice(0, -1), columns)
  }
  while (totalWidth(widths) > columns) {
    const widest = widths.reduce(
      (best, width, i) =>
        can_shrink[i] && width > Math.max(min[i] ?? 0, widths[best] ?? 0) ? i : best,
      can_shrink.indexOf(true),
    )
    if (widest < 0 || (widths[widest] ?? 0) <= 1) break
    widths[widest] = (widths[widest] ?? 0) - 1
  }
  return widths
}

/** Titles of columns whose name in the API is an abbreviation. */
const titles: Readonly<Record<string, string>> = {
  ts: "date",
  z: "z score",
  avg_z: "z score",
  obs_count: "values",
  schedule_repr: "schedule",
  return_30d: "30-day return",
  mcNumber: "MC number",
}

/** Column header; on a terminal in words and without units, which the values show. */
const headOf = (name: string, screen: Screen) => {
  const words = (titles[name] ?? name).replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ")
  const short = screen.columns === undefined ? name : words.replace(/(?<=\w)_(at|bytes)$/, "")
  return short.replaceAll(/[_.]/g, " ").toUpperCase()
}

/** Fields that at least one item has; the others get no column. */
export const presentColumns = (names: ReadonlyArray<string>, items: ReadonlyArray<Json>) =>
  items.length === 0
    ? names
    : names.filter((name) => items.some((item) => memberAt(item, name) !== undefined))

/** A table as text; every line ends with a newline. */
export interface Table {
  readonly head: string
  readonly rowsOf: (items: ReadonlyArray<Json>) => string
}

/**
 * A table of these fields, with column widths that fit the given items. Without a terminal nothing
 * is truncated; longer values of later items break the alignment.
 */
export const table = (
  items: ReadonlyArray<Json>,
  columns: ReadonlyArray<string>,
  screen: Screen,
): Table => {
  const cellsOf = (values: ReadonlyArray<Json | undefined>) =>
    values.map((value, i) =>
      screen.columns === undefined ? plain(value) : formatValue(columns[i] ?? "", value),
    )
  const valuesOf = (item: Json) => columns.map((name) => memberAt(item, name))
  const values = items.map(valuesOf)
  const rows = values.map(cellsOf)
  const heads = columns.map((name) => headOf(name, screen))
  const natural = heads.map((head, i) =>
    rows.reduce((widest, row) => Math.max(widest, widthOf(row[i] ?? "")), widthOf(head)),
  )
  const widths = layout(columns, natural, screen.columns)
  const isNumber = (value: Json | undefined) => typeof value === "number"
  const right = columns.map(
    (_, i) =>
      values.some((row) => isNumber(row[i])) &&
      values.every((row) => row[i] == null || isNumber(row[i])),
  )
  const is_right = (i: number) => right[i] ?? false
  const line = (cells: ReadonlyArray<string>, is_head: boolean) =>
    widths
      .map((width, i) => {
        const whole = cells[i] ?? ""
        const cell = screen.columns === undefined ? whole : truncated(whole, width)
        const is_last = i + 1 === widths.length && !is_right(i)
        const text = is_last ? cell : padded(cell, width, is_right(i))
        return coloured(screen, text, is_head ? "bold" : colourOf(cell))
      })
      .join(gap)
  const lineText = (text: string) => `${text.trimEnd()}\n`
  return {
    head: lineText(line(heads, true)),
    rowsOf: (items) => items.map((item) => lineText(line(cellsOf(valuesOf(item)), false))).join(""),
  }
}

/** Whether the value is a list of objects, which a page shows as a separate table. */
const isRows = (value: Json): value is ReadonlyArray<JsonObject> =>
  isList(value) && value.length > 0 && value.every(isObject)

const rowsTable = (name: string, rows: ReadonlyArray<JsonObject>, screen: Screen) => {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  const { head, rowsOf } = table(rows, columns, screen)
  return `\n${coloured(screen, name, "grey")}\n${head}${rowsOf(rows)}`
}

/**
 * One object: one line per field, or per requested field. On a terminal a list of objects is a
 * table after the fields, and other lists are truncated.
 */
export const fieldList = (
  object: JsonObject,
  names: ReadonlyArray<string> | undefined,
  screen: Screen,
) => {
  const all = flat(object)
  const rows = names?.map((name) => [name, memberAt(object, name) ?? null] as const) ?? all
  const { columns } = screen
  const inner = columns === undefined ? [] : rows.filter(([, value]) => isRows(value))
  const lines = rows.filter((row) => !inner.includes(row))
  const width = Math.max(0, ...lines.map(([name]) => name.length))
  const text = lines.map(([name, value]) => {
    const last = name.split(".").at(-1) ?? name
    const whole = columns === undefined ? plain(value) : formatValue(last, value)
    const room = Math.max(1, (columns ?? 0) - width - gap.length)
    const shown = columns !== undefined && isList(value) ? truncated(whole, room) : whole
    const label = coloured(screen, name.padEnd(width), "grey")
    return `${label}${gap}${coloured(screen, shown, colourOf(shown))}\n`
  })
  const tables = inner.map(([name, value]) => (isRows(value) ? rowsTable(name, value, screen) : ""))
  return [...text, ...tables].join("")
}
