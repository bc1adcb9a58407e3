/** HTTP client of the console: adds the operator's token and turns errors into advice. */
import { sentence } from "../format.ts"

export interface Problem {
  /** HTTP status; 0 without a response. */
  readonly status: number
  readonly title: string
  /** The server's error message, if any, and advice. */
  readonly text: string
}

export type Result<A> =
  | { readonly kind: "ok"; readonly body: A }
  | { readonly kind: "problem"; readonly problem: Problem }

/** Allows for a page of 1,000 events from a long log on a slow connection. */
const deadline_ms = 30_000
const storage_key = "almanac-console-token"

let token: string | undefined
try {
  token = sessionStorage.getItem(storage_key) ?? undefined
} catch {
  token = undefined
}

export const hasToken = (): boolean => token !== undefined

/**
 * Sets the token for all further requests and stores it until the tab is closed; undefined deletes
 * it.
 */
export const useToken = (new_token: string | undefined): void => {
  token = new_token
  try {
    if (new_token === undefined) sessionStorage.removeItem(storage_key)
    else sessionStorage.setItem(storage_key, new_token)
  } catch {
    // Storage is blocked: the token lasts until the page is closed.
  }
}

/** Headers of a request; the token never appears in a URL. */
export const requestHeaders = (accept: string): Record<string, string> => ({
  accept,
  ...(token !== undefined && { authorization: `Bearer ${token}` }),
})

let on_unauthorized = () => {}

/** Sets the listener for 401 responses: the token is unknown or missing. */
export const onUnauthorized = (listener: () => void): void => {
  on_unauthorized = listener
}
export const notifyUnauthorized = (): void => on_unauthorized()

type AdviceByStatus = Readonly<Record<number, readonly [title: string, what_to_do: string]>>

const advice_by_status: AdviceByStatus = {
  0: [
    "The server cannot be reached",
    "Check that it is running (npm start) and that your network reaches it.",
  ],
  400: ["The request is invalid", "Change the filters, then try again."],
  401: ["The token is not valid", "Sign in with a token that this server issued."],
  403: ["Access denied", "The token lacks the role or scope for this view."],
  404: ["Not found", "The service may be disabled on this server."],
  409: ["The current state does not allow this", "Check the state, then try again."],
  429: ["Too many requests", "The page retries automatically."],
  503: [
    "Service unavailable",
    "The page retries automatically. If this persists, check the server's log.",
  ],
}

/** Advice on failed actions, which are not retried automatically. */
const action_advice: AdviceByStatus = {
  ...advice_by_status,
  0: ["No response", "The action may have completed. Retrying is safe: it runs at most once."],
  403: ["Action not allowed", "The token lacks the role or scope for this action."],
  429: ["Too many requests", "Wait a moment, then try again."],
  503: ["Service unavailable", "Check the server's log, then try again."],
}
const unknown = ["The request failed", "Check the server's log."] as const
const unreadable: Problem = {
  status: 200,
  title: "Unexpected response",
  text: "A proxy between this page and the server may have sent it.",
}

const textIn = (body: unknown): string => {
  if (typeof body !== "object" || body === null) return ""
  for (const name of ["detail", "message"]) {
    const text: unknown = Reflect.get(body, name)
    if (typeof text === "string" && text !== "") return sentence(text)
  }
  return textIn(Reflect.get(body, "error"))
}

/** The problem for a status; `body` may hold the server's error message. */
export const problemOf = (status: number, body: unknown, advice = advice_by_status): Problem => {
  const [title, what_to_do] = advice[status] ?? unknown
  return { status, title, text: `${textIn(body)} ${what_to_do}`.trim() }
}

const isObject = (body: unknown): body is object => typeof body === "object" && body !== null

const send = async <A extends object>(
  path: string,
  request: RequestInit,
  owner: "ours" | "others",
  advice = advice_by_status,
): Promise<Result<A>> => {
  let response: Response
  try {
    const signal = AbortSignal.timeout(deadline_ms)
    response = await fetch(path, { ...request, cache: "no-store", signal })
  } catch {
    return { kind: "problem", problem: problemOf(0, undefined, advice) }
  }
  const body: unknown = await response.json().catch(() => undefined)
  if (!response.ok) {
    if (response.status === 401 && owner === "ours") notifyUnauthorized()
    return { kind: "problem", problem: problemOf(response.status, body, advice) }
  }
  // The cast trusts the server.
  return isObject(body) ? { kind: "ok", body: body as A } : { kind: "problem", problem: unreadable }
}

/**
 * Sends a GET request. Checks only that the body is an object; the server is trusted with its type
 * (api.ts). Paths of "others" require other tokens, so a 401 from them does not mean that ours is
 * invalid.
 */
export const get = <A extends object>(path: string, owner: "ours" | "others" = "ours") =>
  send<A>(path, { headers: requestHeaders("application/json") }, owner)

/**
 * Sends a POST request without a body. All attempts of one action share `key`, so that a retry
 * repeats no work.
 */
export const post = (path: string, key: string): Promise<Result<object>> => {
  const headers = { ...requestHeaders("application/json"), "idempotency-key": key }
  return send(path, { method: "POST", headers }, "ours", action_advice)
}

/** Maximum number of rows of an unpaged list, which is the largest page of document 2 §8. */
export const rows_max = 1000

export interface Rows<Item> {
  readonly rows: readonly Item[]
  readonly next_marker: string | null
}

/**
 * Requests a page of a list. The rows are in the member `noun` or `items`, depending on the API.
 */
const getPage = async <Item>(path: string, noun: string): Promise<Result<Rows<Item>>> => {
  const result = await get<{ readonly pagination?: { readonly next_marker?: string | null } }>(path)
  if (result.kind === "problem") return result
  const rows: unknown = Reflect.get(result.body, noun) ?? Reflect.get(result.body, "items")
  if (!Array.isArray(rows)) return { kind: "problem", problem: unreadable }
  const next_marker = result.body.pagination?.next_marker ?? null
  // As above, the cast trusts the server.
  return { kind: "ok", body: { rows: rows as Item[], next_marker } }
}

/** The path with this query parameter set. */
const withParameter = (path: string, name: string, value: string) => {
  const [place = "", query = ""] = path.split("?")
  const parameters = new URLSearchParams(query)
  parameters.set(name, value)
  return `${place}?${parameters}`
}

/**
 * Requests a list of share protection, up to `count` rows if it is paged: in one page, or in
 * pages of the default size if the server's `api.max_limit` is lower.
 */
export const getRows = async <Item>(
  path: string,
  noun: string,
  count?: number,
): Promise<Result<Rows<Item>>> => {
  if (count === undefined) return await getPage(path, noun)
  const single_page = await getPage<Item>(withParameter(path, "limit", String(count)), noun)
  if (single_page.kind === "ok" || single_page.problem.status !== 400) return single_page
  const rows: Item[] = []
  let next_marker: string | null = null
  do {
    const page_path: string =
      next_marker === null ? path : withParameter(path, "marker", next_marker)
    const page: Result<Rows<Item>> = await getPage(page_path, noun)
    if (page.kind === "problem") return page
    rows.push(...page.body.rows)
    next_marker = page.body.next_marker
  } while (next_marker !== null && rows.length < count)
  return { kind: "ok", body: { rows, next_marker } }
}

/** Requests the lines of `/readyz`; a 503 response contains them too. */
export const getReadiness = async (): Promise<Result<{ readonly lines: readonly string[] }>> => {
  try {
    const signal = AbortSignal.timeout(deadline_ms)
    const response = await fetch("/readyz", { cache: "no-store", signal })
    const text = await response.text()
    if (response.status !== 200 && response.status !== 503) {
      return { kind: "problem", problem: problemOf(response.status, undefined) }
    }
    return { kind: "ok", body: { lines: text.split("\n").filter((line) => line !== "") } }
  } catch {
    return { kind: "problem", problem: problemOf(0, undefined) }
  }
}
