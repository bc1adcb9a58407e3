/** What a verb over HTTP works with: the server, the terminal, and whether it is told to stop. */
import { failure } from "#cli/client/failure.ts"
import type { Http } from "#cli/client/http.ts"
import { isObject, type Json, memberAt, textAt, toJson } from "#cli/client/json.ts"
import type { Screen } from "#cli/client/screen.ts"
import { known, page, table } from "#cli/client/table.ts"

export interface Output {
  readonly json: boolean
  /** Fields to show, in this order; undefined: those of the verb. */
  readonly fields: ReadonlyArray<string> | undefined
  /** Ids only, a line each. */
  readonly quiet: boolean
}

export interface Session {
  readonly http: Http
  readonly screen: Screen
  readonly output: Output
  readonly signal: AbortSignal
}

const indent = 2

const picked = (item: Json, fields: ReadonlyArray<string> | undefined): Json => {
  if (fields === undefined || !isObject(item)) return item
  // By its path, since that is how it was asked for; absent as null, so that all lines are alike.
  return Object.fromEntries(fields.map((name) => [name, memberAt(item, name) ?? null]))
}

const idOf = (item: Json) => {
  const names = ["id", "node_id", "share_id", "name", "metric_id"]
  const found = names.map((name) => textAt(item, name)).find((text) => text !== undefined)
  if (found === undefined) throw failure("usage", "--quiet shows ids, and here are none")
  return found
}

/** Shows a list as it comes; `end` is due where none is missing. */
export interface Listing {
  readonly add: (items: ReadonlyArray<Json>) => void
  readonly end: () => void
}

/** One JSON array, as if it was written whole. */
const jsonListing = ({ screen, output: { fields } }: Session): Listing => {
  let count = 0
  return {
    add: (items) => {
      for (const item of items) {
        const text = toJson(picked(item, fields), indent).replaceAll(
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

/** A table, whose columns are as wide as the first items want them. */
const tableListing = (
  { screen, output: { fields } }: Session,
  columns: ReadonlyArray<string>,
): Listing => {
  let rows: ReturnType<typeof table> | undefined
  return {
    add: (items) => {
      if (items.length === 0) return
      const is_first = rows === undefined
      rows ??= table(items, fields ?? known(columns, items), screen)
      screen.out((is_first ? rows.head : "") + rows.of(items))
    },
    end: () => {
      // A head over nothing says nothing to a person; a program finds its columns.
      if (rows === undefined && screen.columns === undefined) {
        screen.out(table([], fields ?? columns, screen).head)
      }
    },
  }
}

/** A list: a table of the fields that were asked for or are there, ids, or one JSON array. */
export const listing = (session: Session, columns: ReadonlyArray<string>): Listing => {
  const { screen, output } = session
  if (output.json && !output.quiet) return jsonListing(session)
  if (!output.quiet) return tableListing(session, columns)
  return {
    add: (items) => screen.out(items.map((item) => `${idOf(item)}\n`).join("")),
    end: () => undefined,
  }
}

/** A list that is whole. */
export const showItems = (
  session: Session,
  items: ReadonlyArray<Json>,
  columns: ReadonlyArray<string>,
) => {
  const shown = listing(session, columns)
  shown.add(items)
  shown.end()
}

/** One thing: its fields a line each, its id, or one JSON document. */
export const showOne = ({ screen, output: { json, fields, quiet } }: Session, one: Json) => {
  if (quiet) return screen.out(`${idOf(one)}\n`)
  if (json) return screen.out(`${toJson(picked(one, fields), indent)}\n`)
  if (isObject(one)) return screen.out(page(one, fields, screen))
  if (one !== null) screen.out(`${toJson(one, indent)}\n`)
}
