/**
 * Resolves names of targets, policies and templates to ids: an argument that is not an id is
 * treated as a name. Names are not unique on the server.
 */
import { failure } from "#cli/client/failure.ts"
import { printable } from "#cli/client/format.ts"
import { isList, type Json, memberAt, textAt } from "#cli/client/json.ts"
import { needOf, type Operation } from "#cli/client/operation.ts"
import { addressOf, type FlagValue, type Input } from "#cli/client/request.ts"
import type { Session } from "#cli/client/session.ts"

interface Collection {
  readonly noun: string
  readonly path: string
  /** The operators' path for all projects. */
  readonly admin?: string
  readonly items: string
  /** Members that hold the name. */
  readonly names: ReadonlyArray<string>
  /** Fields of queries and bodies that refer to it by id. */
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

/** Dot segments of a URL, which pathOf rejects. */
const dot_segment = /^\.{0,2}$/

/** Maximum number of pages to search, of the server's default size of 100. */
const pages_max = 1000

type Query = ReadonlyArray<readonly [string, string]>

/** All resources with this name. ClientFailed beyond `pages_max`. */
const findByName = async (
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
  const found = await findByName(session, collection, query, name)
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

/** The collection as the caller sees it; an operator sees all projects. */
const collectionFor = (collection: Collection, is_operator: boolean): Collection =>
  is_operator && collection.admin !== undefined
    ? { ...collection, path: collection.admin }
    : collection

/** Replaces names with ids. ClientFailed if a name matches no resource or several. */
export const resolveNames = async <T extends Input>(
  session: Session,
  operation: Operation,
  input: T,
): Promise<T> => {
  const { path, for_operators } = operation
  const is_operator = input.for_operators === true && for_operators !== undefined
  const below = is_operator ? for_operators.path : path
  // For a query of the past, names resolve as of that time.
  const { as_of } = input.fields
  const query = typeof as_of === "string" ? [["as_of", as_of] as const] : []
  const resolved = async <V extends FlagValue | undefined>(
    collection: Collection | undefined,
    value: V,
  ): Promise<V | string> => {
    if (collection === undefined || typeof value !== "string") return value
    if (dot_segment.test(value) || id_form.test(value)) return value
    const of_all = below.startsWith("/v1/admin/")
    return await idOf(session, collectionFor(collection, of_all), query, value)
  }
  const own = collections.find(({ path, admin = path }) =>
    [path, admin].some((of) => below.startsWith(`${of}/{id}`)),
  )
  const id = await resolved(own, input.arguments.id)
  const fields: Record<string, FlagValue> = { ...input.fields }
  for (const [name, value] of Object.entries(input.fields)) {
    const of = collections.find(({ fields }) => fields.includes(name))
    fields[name] = await resolved(of, value)
  }
  const at = id === undefined ? input.arguments : { ...input.arguments, id }
  return { ...input, arguments: at, fields }
}
