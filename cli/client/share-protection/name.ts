/**
 * Names in place of ids: where the id of a target, a policy or a template is wanted and what was
 * typed is none, it is the name of the one that has it. Names are not unique on the server.
 */
import { failure } from "#cli/client/failure.ts"
import { isList, type Json, memberAt, textAt } from "#cli/client/json.ts"
import { needOf, type Operation } from "#cli/client/operation.ts"
import { addressOf, type Given, type Typed } from "#cli/client/request.ts"
import type { Session } from "#cli/client/session.ts"
import { printable } from "#cli/client/shown.ts"

interface Collection {
  readonly noun: string
  readonly path: string
  /** The same of all projects. */
  readonly admin?: string
  readonly items: string
  /** Which members are names. */
  readonly names: ReadonlyArray<string>
  /** Parts of queries and bodies that hold its ids. */
  readonly fields: ReadonlyArray<string>
}

const collections: ReadonlyArray<Collection> = [
  {
    noun: "target",
    path: "/v1/targets",
    admin: "/v1/admin/targets",
    items: "targets",
    names: ["name", "bucket_name"],
    fields: ["target_id", "target_bucket_id"],
  },
  {
    noun: "policy",
    path: "/v1/policies",
    items: "policies",
    names: ["name"],
    fields: ["policy_id"],
  },
  {
    noun: "template",
    path: "/v1/target-templates",
    admin: "/v1/admin/target-templates",
    items: "items",
    names: ["name"],
    fields: ["template_id", "target_template_id"],
  },
]

const id_form = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** What an address would be shortened by: it is refused where the path is made. */
const no_name = /^\.{0,2}$/

/** Pages that are looked through, as long as the server makes them by itself: 100 by default. */
const pages_max = 1000

type Query = ReadonlyArray<readonly [string, string]>

/** All of this name, by pages. ClientFailed where there are more pages than anybody should have. */
const havingName = async (
  { http, signal }: Session,
  { path, items, names, noun }: Collection,
  query: Query,
  name: string,
) => {
  const found: Array<Json> = []
  let marker: string | undefined
  for (let page = 0; page < pages_max; page++) {
    const at = addressOf(path, marker === undefined ? query : [...query, ["marker", marker]])
    const { body } = await http.json({
      method: "GET",
      path: at,
      need: needOf({ path }),
      signal,
    })
    const all = memberAt(body, items) ?? memberAt(body, "items")
    const having = (one: Json) => names.some((member) => textAt(one, member) === name)
    found.push(...(isList(all) ? all.filter(having) : []))
    marker = textAt(body, "pagination.next_marker")
    if (marker === undefined) return found
  }
  throw failure(
    "usage",
    `There are too many to look for the ${noun} ${printable(name)}`,
    "use its id",
  )
}

const idOf = async (session: Session, collection: Collection, query: Query, name: string) => {
  const found = await havingName(session, collection, query, name)
  const [one, other] = found
  const id = textAt(one, "id")
  const named = `${collection.noun} named ${printable(name)}`
  if (id === undefined) throw failure("not_found", `There is no ${named}`)
  if (other === undefined) return id
  const lines = found.map((one) => {
    const about = ["id", "project_id", "endpoint", "share_id", "created_at"]
    return `  ${about.flatMap((member) => printable(textAt(one, member) ?? "") || []).join("  ")}`
  })
  throw failure(
    "usage",
    `There is more than one ${named}:\n${lines.join("\n")}`,
    "use the id of one of them",
  )
}

/** As an operator, who sees those of all projects. */
const seenBy = (collection: Collection, is_operator: boolean): Collection =>
  is_operator && collection.admin !== undefined
    ? { ...collection, path: collection.admin }
    : collection

/** What was typed, with ids for names. ClientFailed where a name has none, or more than one. */
export const withIds = async <T extends Typed>(
  session: Session,
  operation: Operation,
  typed: T,
): Promise<T> => {
  const { path, for_operators } = operation
  const is_operator = typed.for_operators === true && for_operators !== undefined
  const below = is_operator ? for_operators.path : path
  // Of the past, the name is whose it was then.
  const { as_of } = typed.fields
  const query = typeof as_of === "string" ? [["as_of", as_of] as const] : []
  const resolved = async <V extends Given | undefined>(
    collection: Collection | undefined,
    value: V,
  ): Promise<V | string> => {
    if (collection === undefined || typeof value !== "string") return value
    if (no_name.test(value) || id_form.test(value)) return value
    const of_all = below.startsWith("/v1/admin/")
    return await idOf(session, seenBy(collection, of_all), query, value)
  }
  const own = collections.find(({ path, admin = path }) =>
    [path, admin].some((of) => below.startsWith(`${of}/{id}`)),
  )
  const id = await resolved(own, typed.arguments.id)
  const fields: Record<string, Given> = { ...typed.fields }
  for (const [name, value] of Object.entries(typed.fields)) {
    const of = collections.find(({ fields }) => fields.includes(name))
    fields[name] = await resolved(of, value)
  }
  const at = id === undefined ? typed.arguments : { ...typed.arguments, id }
  return { ...typed, arguments: at, fields }
}
