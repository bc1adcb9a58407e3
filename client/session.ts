/** What a verb over HTTP works with: the server, the terminal, and whether it is told to stop. */
import { failure } from "#client/failure.ts"
import type { Http } from "#client/http.ts"
import { isObject, type Json, memberAt, textAt, toJson } from "#client/json.ts"
import type { Screen } from "#client/screen.ts"
import { known, page, table } from "#client/table.ts"

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

/** A list: a table of the fields that were asked for or are there, ids, or one JSON array. */
export const showItems = (
  { screen, output: { json, fields, quiet } }: Session,
  items: ReadonlyArray<Json>,
  columns: ReadonlyArray<string>,
) => {
  if (quiet) return screen.out(items.map((item) => `${idOf(item)}\n`).join(""))
  if (json) {
    const shown = items.map((item) => picked(item, fields))
    return screen.out(`${toJson(shown, indent)}\n`)
  }
  screen.out(table(items, fields ?? known(columns, items), screen))
}

/** One thing: its fields a line each, its id, or one JSON document. */
export const showOne = ({ screen, output: { json, fields, quiet } }: Session, one: Json) => {
  if (quiet) return screen.out(`${idOf(one)}\n`)
  if (json) return screen.out(`${toJson(picked(one, fields), indent)}\n`)
  if (isObject(one)) return screen.out(page(one, fields, screen))
  if (one !== null) screen.out(`${toJson(one, indent)}\n`)
}
