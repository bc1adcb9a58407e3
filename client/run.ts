/** One operation, from what was typed to what is shown. */
import { failure } from "#client/failure.ts"
import { jsonBody } from "#client/http.ts"
import { isList, isObject, type Json, memberAt, textAt } from "#client/json.ts"
import { needOf, type Operation } from "#client/operation.ts"
import { addressOf, type Request, requestOf, type Typed } from "#client/request.ts"
import { listing, type Session, showOne } from "#client/session.ts"
import { withIds } from "#client/share-protection/name.ts"
import { jobIn, watchJob } from "#client/share-protection/watch.ts"
import { printable } from "#client/shown.ts"

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

/** The next page's query, with what the server names as its beginning. */
const pageQuery = ({ query }: Request, left: number, marker: string | undefined) => [
  ...query,
  ["limit", String(Math.min(page_limit_max, left))] as const,
  ...(marker === undefined ? [] : [["marker", marker] as const]),
]

const listed = async (session: Session, operation: Operation, wanted: Wanted) => {
  const request = requestOf(operation, wanted)
  const { http, screen, signal } = session
  const { items: name = "items", columns = ["id"], is_paged = false } = operation
  const need = needOf({ ...operation, path: request.path })
  const limit = wanted.limit === 0 ? Number.POSITIVE_INFINITY : wanted.limit
  const shown = listing(session, columns)
  let count = 0
  let marker: string | undefined
  do {
    const query = is_paged ? pageQuery(request, limit - count, marker) : request.query
    const path = addressOf(request.path, query)
    const body = request.body === undefined ? {} : jsonBody(request.body)
    const answer = await http.json({ method: request.method, path, need, signal, ...body })
    const found = itemsIn(answer.body, name)
    // What is no list after all, an aggregate's state for example, is shown as what it is.
    if (found === undefined) return showOne(session, answer.body)
    const items = found.slice(0, limit - count)
    count += items.length
    shown.add(items)
    // A list that is longer than the memory goes out as it comes, no faster than it is read.
    await screen.taken(signal)
    marker = is_paged ? markerIn(answer.body) : undefined
  } while (marker !== undefined && count < limit)
  shown.end()
  const is_table = !session.output.json && !session.output.quiet
  if (marker !== undefined) screen.err(`There are more: --limit 0 shows all.\n`)
  else if (count === 0 && is_table) screen.err("None.\n")
}

/** The resource once its job has ended, read again where it can be. */
const finished = async (
  session: Session,
  { made }: Operation,
  body: Json,
  job_id: string,
): Promise<Json> => {
  const { http, signal } = session
  const need = "tenant" as const
  const job = await watchJob(session, job_id, need)
  const id = made === undefined ? undefined : (textAt(body, `${made}.id`) ?? textAt(body, "id"))
  if (id === undefined) return job
  return (await http.json({ method: "GET", path: `/v1/${made}s/${id}`, need, signal })).body
}

/** Does it and shows the answer. ClientFailed where it is refused or its job fails. */
export const runOperation = async (session: Session, operation: Operation, typed: Wanted) => {
  const wanted = await withIds(session, operation, typed)
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
    return showOne(session, await finished(session, operation, answer.body, job_id))
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
