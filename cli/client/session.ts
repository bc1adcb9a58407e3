/** Context of a command over HTTP: the server, the terminal, and the abort signal. */
import { requireMembers } from "#cli/client/columns.ts"
import { failure } from "#cli/client/failure.ts"
import type { Http } from "#cli/client/http.ts"
import { isObject, type Json, memberAt, textAt, toJson } from "#cli/client/json.ts"
import type { Section } from "#cli/client/operation.ts"
import { coloured, type Screen } from "#cli/client/screen.ts"
import { fieldList, presentColumns, table } from "#cli/client/table.ts"

export interface Output {
  readonly json: boolean
  /** Fields to show, in this order; undefined: the command's default. */
  readonly fields: ReadonlyArray<string> | undefined
  /** Ids only, one per line. */
  readonly quiet: boolean
}

export interface Session {
  readonly http: Http
  readonly screen: Screen
  readonly output: Output
  readonly signal: AbortSignal
}

const indent = 2

const pickFields = (item: Json, fields: ReadonlyArray<string> | undefined): Json => {
  if (fields === undefined || !isObject(item)) return item
  // Named by path, as on the command line; null if absent, so that all lines have the same fields.
  return Object.fromEntries(fields.map((name) => [name, memberAt(item, name) ?? null]))
}

const idOf = (item: Json) => {
  const names = ["id", "node_id", "share_id", "name", "metric_id"]
  const found = names.map((name) => textAt(item, name)).find((text) => text !== undefined)
  if (found === undefined) throw failure("usage", "--quiet prints ids, and this response has none")
  return found
}

/** Prints a list incrementally; call `end` after the last item. */
export interface Listing {
  readonly add: (items: ReadonlyArray<Json>) => void
  readonly end: () => void
}

/** Prints one JSON array incrementally. */
const jsonListing = (
  { screen, output: { fields } }: Session,
  columns: ReadonlyArray<string>,
): Listing => {
  let count = 0
  return {
    add: (items) => {
      if (count === 0) requireMembers(fields, items, columns)
      for (const item of items) {
        const text = toJson(pickFields(item, fields), indent).replaceAll(
          "\n",
          `\n${" ".repeat(indent)}`,
        )
        screen.out(`${count === 0 ? "[" : ","}\n${" ".repeat(indent)}${text}`)
        count++
      }
    },
    end: () => screen.out(count === 0 ? "[]\n" : "\n]\n"),
  }
}

/** A table whose column widths fit the first items. */
const tableListing = (
  { screen, output: { fields } }: Session,
  columns: ReadonlyArray<string>,
): Listing => {
  let rows: ReturnType<typeof table> | undefined
  return {
    add: (items) => {
      if (items.length === 0) return
      const is_first = rows === undefined
      if (is_first) requireMembers(fields, items, columns)
      rows ??= table(items, fields ?? presentColumns(columns, items), screen)
      screen.out((is_first ? rows.head : "") + rows.rowsOf(items))
    },
    end: () => {
      // An empty table prints its header only for programs, which read the columns from it.
      if (rows === undefined && screen.columns === undefined) {
        screen.out(table([], fields ?? columns, screen).head)
      }
    },
  }
}

/** A list as a table of the requested or the existing fields, as ids, or as one JSON array. */
export const listing = (session: Session, columns: ReadonlyArray<string>): Listing => {
  const { screen, output } = session
  if (output.json && !output.quiet) return jsonListing(session, columns)
  if (!output.quiet) return tableListing(session, columns)
  return {
    add: (items) => screen.out(items.map((item) => `${idOf(item)}\n`).join("")),
    end: () => undefined,
  }
}

/** Prints a complete list. */
export const showItems = (
  session: Session,
  items: ReadonlyArray<Json>,
  columns: ReadonlyArray<string>,
) => {
  const output = listing(session, columns)
  output.add(items)
  output.end()
}

/** Prints the parts of a page for people: fields, and tables with titles. */
export const showSections = ({ screen }: Session, sections: ReadonlyArray<Section>) => {
  for (const [i, { title, items, columns }] of sections.entries()) {
    const before = i === 0 ? "" : "\n"
    const heading = title === undefined ? "" : `${coloured(screen, title, "bold")}\n`
    screen.out(before + heading)
    if (columns !== undefined) {
      const { head, rowsOf } = table(items, columns, screen)
      screen.out(head + rowsOf(items))
      continue
    }
    for (const item of items) if (isObject(item)) screen.out(fieldList(item, undefined, screen))
  }
}

/**
 * Prints one object: one field per line, its id, or one JSON document. `is_checked`: whether the
 * requested fields are known to exist.
 */
export const showOne = (
  { screen, output: { json, fields, quiet } }: Session,
  one: Json,
  is_checked = false,
) => {
  if (quiet) return screen.out(`${idOf(one)}\n`)
  if (!is_checked) requireMembers(fields, [one])
  if (json) return screen.out(`${toJson(pickFields(one, fields), indent)}\n`)
  if (isObject(one)) return screen.out(fieldList(one, fields, screen))
  if (one !== null) screen.out(`${toJson(one, indent)}\n`)
}
