/** Context of a command over HTTP: the server, the terminal, and the abort signal. */
import { failure } from "#cli/client/failure.ts"
import type { Http } from "#cli/client/http.ts"
import { isObject, type Json, memberAt, textAt, toJson } from "#cli/client/json.ts"
import type { Screen } from "#cli/client/screen.ts"
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
  if (found === undefined) throw failure("usage", "--quiet shows ids, and here are none")
  return found
}

/** Prints a list incrementally; call `end` after the last item. */
export interface Listing {
  readonly add: (items: ReadonlyArray<Json>) => void
  readonly end: () => void
}

/** Prints one JSON array incrementally. */
const jsonListing = ({ screen, output: { fields } }: Session): Listing => {
  let count = 0
  return {
    add: (items) => {
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

/** A list as a table of the requested or present fields, as ids, or as one JSON array. */
export const listing = (session: Session, columns: ReadonlyArray<string>): Listing => {
  const { screen, output } = session
  if (output.json && !output.quiet) return jsonListing(session)
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

/** Prints one object: one field per line, its id, or one JSON document. */
export const showOne = ({ screen, output: { json, fields, quiet } }: Session, one: Json) => {
  if (quiet) return screen.out(`${idOf(one)}\n`)
  if (json) return screen.out(`${toJson(pickFields(one, fields), indent)}\n`)
  if (isObject(one)) return screen.out(fieldList(one, fields, screen))
  if (one !== null) screen.out(`${toJson(one, indent)}\n`)
}
