/** HTTP client of the console: adds the operator's token and turns errors into advice. */
import { sentence } from "../wording.ts"

export interface Problem {
  /** HTTP status; 0 without a response. */
  readonly status: number
  readonly title: string
  /** The server's error message, if any, and advice. */
  readonly text: string
}

export type Result<A> =
  | { readonly kind: "answer"; readonly body: A }
  | { readonly kind: "problem"; readonly problem: Problem }

/** Allows for a page of 1,000 events from a long log on a slow connection. */
const deadline_ms = 30_000
const kept_as = "almanac-console-token"

let token: string | undefined
try {
  token = sessionStorage.getItem(kept_as) ?? undefined
} catch {
  token = undefined
}

export const hasToken = (): boolean => token !== undefined

/**
 * Sets the token for all further requests and stores it until the tab is closed; undefined deletes
 * it.
 */
export const useToken = (given: string | undefined): void => {
  token = given
  try {
    if (given === undefined) sessionStorage.removeItem(kept_as)
    else sessionStorage.setItem(kept_as, given)
  } catch {
    // Storage is blocked: the token lasts until the page is closed.
  }
}

/** Headers of a request; the token never appears in a URL. */
export const requestHeaders = (accept: string): Record<string, string> => ({
  accept,
  ...(token !== undefined && { authorization: `Bearer ${token}` }),
})

let on_refused = () => {}

/** Sets the listener for 401 responses: the token is unknown or missing. */
export const onUnauthorized = (listener: () => void): void => {
  on_refused = listener
}
export const notifyUnauthorized = (): void => on_refused()

type Advices = Readonly<Record<number, readonly [title: string, what_to_do: string]>>

const advices: Advices = {
  0: [
    "The server cannot be reached",
    "Check that it runs (npm start) and that this machine has a way to it.",
  ],
  400: ["The server does not take this question", "Change what is asked for."],
  401: ["The server does not know this token", "Enter one that it issued."],
  403: ["This token may not see this", "It needs a role or a scope that it does not have."],
  404: ["There is no such thing here", "Its service may not be served by this process."],
  409: ["Its state does not allow this", "Look at how it stands now."],
  429: ["Too many questions at once", "Wait a moment: the page asks again by itself."],
  503: ["The server cannot answer this now", "Look at its log; the page asks again by itself."],
}

/** Advice on failed actions, which are not retried automatically. */
const advices_of_acts: Advices = {
  ...advices,
  0: ["No answer came", "It may have been done; try it again: it is done once."],
  403: ["This token may not do this", "It needs a role or a scope that it does not have."],
  429: ["Too much at once", "Wait a moment, then try it again."],
  503: ["The server cannot do this now", "Look at its log, then try it again."],
}
const unknown = ["The server could not answer", "Look at what it has logged."] as const
const unreadable: Problem = {
  status: 200,
  title: "The answer is not the API's",
  text: "Something between this page and the server may have answered instead of it.",
}

const textIn = (body: unknown): string => {
  if (typeof body !== "object" || body === null) return ""
  for (const name of ["detail", "message"]) {
    const said: unknown = Reflect.get(body, name)
    if (typeof said === "string" && said !== "") return sentence(said)
  }
  return textIn(Reflect.get(body, "error"))
}

/** The problem for a status; `body` may hold the server's error message. */
export const problemOf = (status: number, body: unknown, known = advices): Problem => {
  const [title, what_to_do] = known[status] ?? unknown
  return { status, title, text: `${textIn(body)} ${what_to_do}`.trim() }
}

const isObject = (body: unknown): body is object => typeof body === "object" && body !== null

const answerOf = async <A extends object>(
  path: string,
  request: RequestInit,
  whose: "ours" | "others",
  known = advices,
): Promise<Result<A>> => {
  let response: Response
  try {
    const signal = AbortSignal.timeout(deadline_ms)
    response = await fetch(path, { ...request, cache: "no-store", signal })
  } catch {
    return { kind: "problem", problem: problemOf(0, undefined, known) }
  }
  const body: unknown = await response.json().catch(() => undefined)
  if (!response.ok) {
    if (response.status === 401 && whose === "ours") notifyUnauthorized()
    return { kind: "problem", problem: problemOf(response.status, body, known) }
  }
  // The cast trusts the server.
  return isObject(body)
    ? { kind: "answer", body: body as A }
    : { kind: "problem", problem: unreadable }
}

/**
 * Sends a GET request. Checks only that the body is an object; its type is the server's promise
 * (api.ts). Paths of "others" take other tokens, so their 401 says nothing about ours.
 */
export const get = <A extends object>(path: string, whose: "ours" | "others" = "ours") =>
  answerOf<A>(path, { headers: requestHeaders("application/json") }, whose)

/**
 * Sends a POST request without a body. All attempts of one action share `key`, so that a retry
 * repeats no work.
 */
export const post = (path: string, key: string): Promise<Result<object>> => {
  const headers = { ...requestHeaders("application/json"), "idempotency-key": key }
  return answerOf(path, { method: "POST", headers }, "ours", advices_of_acts)
}

/** Maximum number of rows of an unpaged list, which is the largest page of document 2 §8. */
export const rows_max = 1000

export interface Rows<Item> {
  readonly rows: readonly Item[]
  readonly next_marker: string | null
}

/** Requests a page of a list, which is in the member `noun`, or in `items` in the other shape. */
const askPage = async <Item>(path: string, noun: string): Promise<Result<Rows<Item>>> => {
  const answer = await get<{ readonly pagination?: { readonly next_marker?: string | null } }>(path)
  if (answer.kind === "problem") return answer
  const rows: unknown = Reflect.get(answer.body, noun) ?? Reflect.get(answer.body, "items")
  if (!Array.isArray(rows)) return { kind: "problem", problem: unreadable }
  const next_marker = answer.body.pagination?.next_marker ?? null
  // As above, the cast trusts the server.
  return { kind: "answer", body: { rows: rows as Item[], next_marker } }
}

/** The path with this query parameter set. */
const asking = (path: string, name: string, value: string) => {
  const [place = "", query = ""] = path.split("?")
  const parameters = new URLSearchParams(query)
  parameters.set(name, value)
  return `${place}?${parameters}`
}

/**
 * Requests a list of share protection, up to `rows_wanted` rows if it is paged: in one page, or in
 * pages of the default size if the server's `api.max_limit` is lower.
 */
export const getRows = async <Item>(
  path: string,
  noun: string,
  rows_wanted?: number,
): Promise<Result<Rows<Item>>> => {
  if (rows_wanted === undefined) return await askPage(path, noun)
  const whole = await askPage<Item>(asking(path, "limit", String(rows_wanted)), noun)
  if (whole.kind === "answer" || whole.problem.status !== 400) return whole
  const rows: Item[] = []
  let next_marker: string | null = null
  do {
    const at: string = next_marker === null ? path : asking(path, "marker", next_marker)
    const page: Result<Rows<Item>> = await askPage(at, noun)
    if (page.kind === "problem") return page
    rows.push(...page.body.rows)
    next_marker = page.body.next_marker
  } while (next_marker !== null && rows.length < rows_wanted)
  return { kind: "answer", body: { rows, next_marker } }
}

/** Requests the lines of `/readyz`; a 503 has them too. */
export const getReadiness = async (): Promise<Result<{ readonly lines: readonly string[] }>> => {
  try {
    const signal = AbortSignal.timeout(deadline_ms)
    const response = await fetch("/readyz", { cache: "no-store", signal })
    const text = await response.text()
    if (response.status !== 200 && response.status !== 503) {
      return { kind: "problem", problem: problemOf(response.status, undefined) }
    }
    return { kind: "answer", body: { lines: text.split("\n").filter((line) => line !== "") } }
  } catch {
    return { kind: "problem", problem: problemOf(0, undefined) }
  }
}
