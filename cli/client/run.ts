/** Runs one operation, from the parsed command line to the output. */
import { requireColumns } from "#cli/client/columns.ts"
import { failure, isFailure } from "#cli/client/failure.ts"
import { columnsOf } from "#cli/client/fields.ts"
import { printable } from "#cli/client/format.ts"
import { jsonBody } from "#cli/client/http.ts"
import { isList, isObject, type Json, memberAt, textAt } from "#cli/client/json.ts"
import { needOf, type Operation } from "#cli/client/operation.ts"
import { addressOf, type Input, pathOf, type Request, requestOf } from "#cli/client/request.ts"
import { listing, type Session, showOne, showSections } from "#cli/client/session.ts"
import { resolveNames } from "#cli/client/share-protection/name.ts"
import { jobIn, watchJob } from "#cli/client/share-protection/watch.ts"

/** Maximum number of items per page. Source: document 2 §8. */
const page_limit_max = 1000

export interface RunInput extends Input {
  /** Maximum number of items; 0 for all. */
  readonly limit: number
  readonly wait: boolean
}

const itemsIn = (body: Json, name: string) => {
  const found = memberAt(body, name) ?? memberAt(body, "items")
  return isList(found) ? found : undefined
}

const markerIn = (body: Json) =>
  textAt(body, "pagination.next_marker") ?? textAt(body, "next_marker")

/** Parameters of a page: its size, or the server's default, and the marker before it. */
interface Page {
  readonly limit: number | undefined
  readonly marker: string | undefined
}

const pageQuery = ({ query }: Request, { limit, marker }: Page) => [
  ...query,
  ...(limit === undefined ? [] : [["limit", String(limit)] as const]),
  ...(marker === undefined ? [] : [["marker", marker] as const]),
]

/** Requests pages of the largest size that the server allows. */
const pages = ({ http, signal }: Session, operation: Operation, request: Request) => {
  const need = needOf({ ...operation, path: request.path })
  const body = request.body === undefined ? {} : jsonBody(request.body)
  const fetchPage = async (page: Page) => {
    const query = operation.is_paged === true ? pageQuery(request, page) : request.query
    const path = addressOf(request.path, query)
    return (await http.json({ method: request.method, path, need, signal, ...body })).body
  }
  let limit_max: number | undefined = page_limit_max
  return async (left: number, marker: string | undefined) => {
    const limit = limit_max === undefined ? undefined : Math.min(limit_max, left)
    return await fetchPage({ limit, marker }).catch(async (cause: unknown) => {
      const may_be_smaller = isFailure(cause) && cause.ending === "refused" && limit !== undefined
      if (!may_be_smaller || operation.is_paged !== true) throw cause
      // If `api.max_limit` is lower, use the server's default page size.
      const response = await fetchPage({ limit: undefined, marker })
      limit_max = undefined
      return response
    })
  }
}

const showList = async (session: Session, operation: Operation, input: RunInput) => {
  const request = requestOf(operation, input)
  const { screen, signal } = session
  const { items: name = "items", columns = ["id"], is_paged = false, computed } = operation
  const limit = input.limit === 0 ? Number.POSITIVE_INFINITY : input.limit
  const is_table = !session.output.json && !session.output.quiet
  const output = listing(session, columns)
  const next = pages(session, operation, request)
  let count = 0
  let is_cut = false
  let marker: string | undefined
  do {
    const response = await next(limit - count, marker)
    const found = itemsIn(response, name)
    // A response without a list, such as an aggregate's state, is shown as one object.
    if (found === undefined) return showOne(session, response)
    const items = found.slice(0, limit - count)
    count += items.length
    const is_operator = needOf({ path: request.path }) === "admin"
    const rows = is_table ? await computed?.add(session, items, is_operator) : undefined
    output.add(rows ?? items)
    // Backpressure: a list may be larger than memory, so wait for the reader.
    await screen.drained(signal)
    marker = is_paged ? markerIn(response) : undefined
    is_cut = found.length > items.length
  } while (marker !== undefined && count < limit)
  output.end()
  if (marker !== undefined || is_cut) screen.err("More results exist: --limit 0 shows all.\n")
  else if (count === 0 && is_table) screen.err("None.\n")
}

/** Waits for the job and returns its resource, or the job itself for operators. */
const finishedResource = async (
  session: Session,
  { created: made }: Operation,
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
 * Fills in the members of a nested object that the command line leaves out, because a PATCH
 * replaces the whole object: `--keep-daily 14` alone would remove the weekly retention.
 */
const mergedOverCurrent = async (
  { http, signal }: Session,
  operation: Operation,
  input: RunInput,
) => {
  const { method, path, base_path: over = method === "PATCH" ? path : undefined } = operation
  const { arguments: at, fields, body = {} } = input
  const objects = Object.keys(fields).flatMap((name) =>
    name.includes(".") ? name.slice(0, name.indexOf(".")) : [],
  )
  if (over === undefined || objects.length === 0 || !isObject(body)) return input
  const request = { method: "GET", path: pathOf(over, at), need: needOf({ path: over }) } as const
  const current = await http.json({ ...request, signal }).catch((cause: unknown) => {
    // A domain without settings.
    if (isFailure(cause) && cause.ending === "not_found") return { body: null }
    throw cause
  })
  const known = objects.flatMap((name) => {
    const object = memberAt(current.body, name)
    return isObject(object) ? [[name, object] as const] : []
  })
  return { ...input, body: { ...Object.fromEntries(known), ...body } }
}

/**
 * Checks the requested columns before anything is sent, if the operation declares its resource.
 * Returns whether the response needs no other check: after a change, an error about the output
 * would hide that the change was made.
 */
const checkColumns = ({ output }: Session, operation: Operation) => {
  const { resource, created, computed, method } = operation
  const is_whole = output.json && created !== undefined
  if (resource === undefined || is_whole) return method !== "GET"
  const extra = output.json ? [] : (computed?.columns ?? [])
  if (output.fields !== undefined) {
    requireColumns(output.fields, [...columnsOf(resource), ...extra])
  }
  return true
}

/** Runs the operation and shows the result. ClientFailed if the server or its job fails. */
export const runOperation = async (session: Session, operation: Operation, typed: RunInput) => {
  const is_checked = checkColumns(session, operation)
  const input = await mergedOverCurrent(
    session,
    operation,
    await resolveNames(session, operation, typed),
  )
  if (operation.items !== undefined) return await showList(session, operation, input)
  const { http, screen, signal, output } = session
  const { method, path, query, body } = requestOf(operation, input)
  const need = needOf({ ...operation, path })
  const sent = body === undefined ? {} : jsonBody(body)
  const lines = operation.is_long === true ? { headers: { accept: "application/x-ndjson" } } : {}
  const request = { method, path: addressOf(path, query), need, signal }
  const response = await http.json({ ...request, ...sent, ...lines })
  const error = operation.is_long === true ? textAt(response.body, "error.detail") : undefined
  if (error !== undefined) throw failure("failed", printable(error))
  const job_id =
    operation.has_job === true ? jobIn(response.body, response.headers.location) : undefined
  if (input.wait && job_id !== undefined) {
    // Printed first, so that an interrupted user can find the job again.
    screen.err(`Job ${job_id}\n`)
    const is_operator = need === "admin"
    return showOne(
      session,
      await finishedResource(session, operation, is_operator, response.body, job_id),
      is_checked,
    )
  }
  if (response.body === null) {
    if (operation.done !== undefined && !output.json && !output.quiet) {
      screen.err(`${operation.done}\n`)
    }
    return
  }
  const { created: made, sections } = operation
  if (sections !== undefined && !output.json && !output.quiet && output.fields === undefined) {
    return showSections(session, sections(response.body))
  }
  const resource = made === undefined ? undefined : memberAt(response.body, made)
  showOne(session, output.json || !isObject(resource) ? response.body : resource, is_checked)
  const is_job_itself = textAt(response.body, "job_type") !== undefined
  if (job_id !== undefined && !is_job_itself && !output.json && !output.quiet) {
    screen.err(`Watch its job: almanac jobs watch ${job_id}\n`)
  }
}
