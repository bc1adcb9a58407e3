/** One operation, from what was typed to what is shown. */
import { failure, isFailure } from "#cli/client/failure.ts"
import { jsonBody } from "#cli/client/http.ts"
import { isList, isObject, type Json, memberAt, textAt } from "#cli/client/json.ts"
import { needOf, type Operation } from "#cli/client/operation.ts"
import { addressOf, pathOf, type Request, requestOf, type Typed } from "#cli/client/request.ts"
import { listing, type Session, showOne } from "#cli/client/session.ts"
import { withIds } from "#cli/client/share-protection/name.ts"
import { jobIn, watchJob } from "#cli/client/share-protection/watch.ts"
import { printable } from "#cli/client/shown.ts"

/** Items on a page at most. Source: document 2 §8. */
const page_limit_max = 1000

export interface Wanted extends Typed {
  /** Items at most; 0 for all. */
  readonly limit: number
  readonly wait: boolean
}

const itemsIn = (body: Json, name: string) => {
  const found = memberAt(body, name) ?? memberAt(body, "items")
  return isList(found) ? found : undefined
}

const markerIn = (body: Json) =>
  textAt(body, "pagination.next_marker") ?? textAt(body, "next_marker")

/** What a page is asked for by: how many items, where that is said, and after which. */
interface Page {
  readonly limit: number | undefined
  readonly marker: string | undefined
}

const pageQuery = ({ query }: Request, { limit, marker }: Page) => [
  ...query,
  ...(limit === undefined ? [] : [["limit", String(limit)] as const]),
  ...(marker === undefined ? [] : [["marker", marker] as const]),
]

/** Asks for pages as large as the server gives them. */
const pages = ({ http, signal }: Session, operation: Operation, request: Request) => {
  const need = needOf({ ...operation, path: request.path })
  const body = request.body === undefined ? {} : jsonBody(request.body)
  const ask = async (page: Page) => {
    const query = operation.is_paged === true ? pageQuery(request, page) : request.query
    const path = addressOf(request.path, query)
    return (await http.json({ method: request.method, path, need, signal, ...body })).body
  }
  let limit_max: number | undefined = page_limit_max
  return async (left: number, marker: string | undefined) => {
    const limit = limit_max === undefined ? undefined : Math.min(limit_max, left)
    return await ask({ limit, marker }).catch(async (cause: unknown) => {
      const may_be_smaller = isFailure(cause) && cause.ending === "refused" && limit !== undefined
      if (!may_be_smaller || operation.is_paged !== true) throw cause
      // Where `api.max_limit` is less, pages are as large as the server makes them unasked.
      const answer = await ask({ limit: undefined, marker })
      limit_max = undefined
      return answer
    })
  }
}

const listed = async (session: Session, operation: Operation, wanted: Wanted) => {
  const request = requestOf(operation, wanted)
  const { screen, signal } = session
  const { items: name = "items", columns = ["id"], is_paged = false } = operation
  const limit = wanted.limit === 0 ? Number.POSITIVE_INFINITY : wanted.limit
  const shown = listing(session, columns)
  const next = pages(session, operation, request)
  let count = 0
  let is_cut = false
  let marker: string | undefined
  do {
    const answer = await next(limit - count, marker)
    const found = itemsIn(answer, name)
    // What is no list after all, an aggregate's state for example, is shown as what it is.
    if (found === undefined) return showOne(session, answer)
    const items = found.slice(0, limit - count)
    count += items.length
    shown.add(items)
    // A list that is longer than the memory goes out as it comes, no faster than it is read.
    await screen.taken(signal)
    marker = is_paged ? markerIn(answer) : undefined
    is_cut = found.length > items.length
  } while (marker !== undefined && count < limit)
  shown.end()
  const is_table = !session.output.json && !session.output.quiet
  if (marker !== undefined || is_cut) screen.err(`There are more: --limit 0 shows all.\n`)
  else if (count === 0 && is_table) screen.err("None.\n")
}

/** The resource once its job has ended, read again where it can be: an operator's job is all. */
const finished = async (
  session: Session,
  { made }: Operation,
  is_operator: boolean,
  body: Json,
  job_id: string,
): Promise<Json> => {
  const { http, signal } = session
  const need = "tenant" as const
  const job = await watchJob(session, job_id, is_operator)
  const id = made === undefined ? undefined : (textAt(body, `${made}.id`) ?? textAt(body, "id"))
  if (id === undefined || is_operator) return job
  return (await http.json({ method: "GET", path: `/v1/${made}s/${id}`, need, signal })).body
}

/**
 * The server puts an object of a body in the present one's place: so the members of it that were
 * not typed come from there. `--keep-daily 14` alone would end what the weekly rule keeps.
 */
const laidOver = async ({ http, signal }: Session, operation: Operation, typed: Wanted) => {
  const { method, path, over = method === "PATCH" ? path : undefined } = operation
  const { arguments: at, fields, body = {} } = typed
  const objects = Object.keys(fields).flatMap((name) =>
    name.includes(".") ? name.slice(0, name.indexOf(".")) : [],
  )
  if (over === undefined || objects.length === 0 || !isObject(body)) return typed
  const asked = { method: "GET", path: pathOf(over, at), need: needOf({ path: over }) } as const
  const present = await http.json({ ...asked, signal }).catch((cause: unknown) => {
    // A domain of which nothing was set yet.
    if (isFailure(cause) && cause.ending === "not_found") return { body: null }
    throw cause
  })
  const known = objects.flatMap((name) => {
    const object = memberAt(present.body, name)
    return isObject(object) ? [[name, object] as const] : []
  })
  return { ...typed, body: { ...Object.fromEntries(known), ...body } }
}

/** Does it and shows the answer. ClientFailed where it is refused or its job fails. */
export const runOperation = async (session: Session, operation: Operation, typed: Wanted) => {
  const wanted = await laidOver(session, operation, await withIds(session, operation, typed))
  if (operation.items !== undefined) return await listed(session, operation, wanted)
  const { http, screen, signal, output } = session
  const { method, path, query, body } = requestOf(operation, wanted)
  const need = needOf({ ...operation, path })
  const sent = body === undefined ? {} : jsonBody(body)
  const lines = operation.is_long === true ? { headers: { accept: "application/x-ndjson" } } : {}
  const asked = { method, path: addressOf(path, query), need, signal }
  const answer = await http.json({ ...asked, ...sent, ...lines })
  const error = operation.is_long === true ? textAt(answer.body, "error.detail") : undefined
  if (error !== undefined) throw failure("failed", printable(error))
  const job_id =
    operation.has_job === true ? jobIn(answer.body, answer.headers.location) : undefined
  if (wanted.wait && job_id !== undefined) {
    // Whoever stops the waiting can find it again.
    screen.err(`Job ${job_id}\n`)
    const is_operator = need === "admin"
    return showOne(session, await finished(session, operation, is_operator, answer.body, job_id))
  }
  if (answer.body === null) {
    if (operation.done !== undefined && !output.json && !output.quiet) {
      screen.err(`${operation.done}\n`)
    }
    return
  }
  const { made } = operation
  const resource = made === undefined ? undefined : memberAt(answer.body, made)
  showOne(session, output.json || !isObject(resource) ? answer.body : resource)
  const is_job_itself = textAt(answer.body, "job_type") !== undefined
  if (job_id !== undefined && !is_job_itself && !output.json && !output.quiet) {
    screen.err(`Its job: almanac jobs watch ${job_id}\n`)
  }
}
