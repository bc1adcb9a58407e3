/** Checks the columns that `-o` names, so that a misspelt name is an error, not an empty column. */
import { failure } from "#cli/client/failure.ts"
import { isObject, type Json, type JsonObject } from "#cli/client/json.ts"

/** Maximum number of columns to list in an error. */
const listed_max = 40

/** Members that an object may lack although the API has them: labels, and rules of a retention. */
const is_optional = /^(labels|retention|data)\./

const unknownColumns = (unknown: ReadonlyArray<string>, known: ReadonlyArray<string>) => {
  const names = unknown.map((name) => `'${name}'`).join(", ")
  const listed = known.slice(0, listed_max).join(", ")
  const more = known.length > listed_max ? ", ..." : ""
  return failure(
    "usage",
    `Unknown ${unknown.length === 1 ? "column" : "columns"} ${names}`,
    `use any of ${listed}${more}`,
  )
}

/** Fails if `fields` has a name that is neither in `known` nor below one of its leaves. */
export const requireColumns = (
  fields: ReadonlyArray<string> | undefined,
  known: ReadonlyArray<string>,
) => {
  const isParent = (name: string) => known.some((one) => one.startsWith(`${name}.`))
  const isBelow = (name: string) => known.some((one) => name.startsWith(`${one}.`))
  const unknown = (fields ?? []).filter(
    (name) => !known.includes(name) && !isParent(name) && !isBelow(name),
  )
  if (unknown.length > 0) throw unknownColumns(unknown, known)
}

/** Whether the item has the member at `a.b`; below null, every member may exist. */
const hasMember = (item: Json, path: string) => {
  let at: Json | undefined = item
  for (const name of path.split(".")) {
    if (at === null) return true
    if (!isObject(at)) return false
    at = at[name]
  }
  return at !== undefined
}

/** Flattens nested objects into paths; a list stays a value. */
export const flat = (
  object: JsonObject,
  before = "",
): ReadonlyArray<readonly [path: string, value: Json]> =>
  Object.entries(object).flatMap(([name, value]) =>
    isObject(value) && Object.keys(value).length > 0
      ? flat(value, `${before}${name}.`)
      : [[`${before}${name}`, value] as const],
  )

/** Fails if `fields` has a name that is neither in `columns` nor a member of any of the items. */
export const requireMembers = (
  fields: ReadonlyArray<string> | undefined,
  items: ReadonlyArray<Json>,
  columns: ReadonlyArray<string> = [],
) => {
  if (fields === undefined || items.length === 0) return
  const unknown = fields.filter(
    (name) =>
      !columns.includes(name) &&
      !is_optional.test(name) &&
      !items.some((item) => hasMember(item, name)),
  )
  if (unknown.length === 0) return
  const members = items.flatMap((item) => (isObject(item) ? flat(item).map(([name]) => name) : []))
  throw unknownColumns(unknown, [...new Set([...columns, ...members])])
}
