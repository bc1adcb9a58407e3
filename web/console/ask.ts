/** Asking the API with the operator's token: answers as they are, or what is wrong. */
import { sentence } from "../wording.ts"

export interface Problem {
  /** Of the HTTP answer; 0 where there was none. */
  readonly status: number
  readonly title: string
  /** The server's own words, where it had some, and what to do. */
  readonly text: string
}

export type Answer<A> =
  | { readonly kind: "answer"; readonly body: A }
  | { readonly kind: "problem"; readonly problem: Problem }

/** A page of 1,000 events out of a long log, over a slow line. */
const deadline_ms = 30_000
const kept_as = "almanac-console-token"

let token: string | undefined
try {
  token = sessionStorage.getItem(kept_as) ?? undefined
} catch {
  token = undefined
}

export const hasToken = (): boolean => token !== undefined

/** Sent with each request from now on, and kept until the tab is closed; undefined forgets it. */
export const useToken = (given: string | undefined): void => {
  token = given
  try {
    if (given === undefined) sessionStorage.removeItem(kept_as)
    else sessionStorage.setItem(kept_as, given)
  } catch {
    // It holds until the page is left.
  }
}

/** What a request carries; the token stands in no address. */
export const authorized = (accept: string): Record<string, string> => ({
  accept,
  ...(token !== undefined && { authorization: `Bearer ${token}` }),
})

let on_refused = () => {}

/** Called whenever the server does not know the token, or wants one. */
export const onRefused = (listener: () => void): void => {
  on_refused = listener
}
export const tellRefused = (): void => on_refused()

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

/** Where something was to be done, which nobody tries again by itself. */
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

/** What to say of an answer of this status; `body` may hold the server's own words. */
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
): Promise<Answer<A>> => {
  let response: Response
  try {
    const signal = AbortSignal.timeout(deadline_ms)
    response = await fetch(path, { ...request, cache: "no-store", signal })
  } catch {
    return { kind: "problem", problem: problemOf(0, undefined, known) }
  }
  const body: unknown = await response.json().catch(() => undefined)
  if (!response.ok) {
    if (response.status === 401 && whose === "ours") tellRefused()
    return { kind: "problem", problem: problemOf(response.status, body, known) }
  }
  // The one place where the server is taken at its word.
  return isObject(body)
    ? { kind: "answer", body: body as A }
    : { kind: "problem", problem: unreadable }
}

/**
 * GET. The shape is the server's promise (api.ts); that it is an object is looked at. Paths of
 * "others" have tokens of their own: that they refuse ours says nothing of it.
 */
export const ask = <A extends object>(path: string, whose: "ours" | "others" = "ours") =>
  answerOf<A>(path, { headers: authorized("application/json") }, whose)

/** POST without a body. `key` is the same for all tries of one wish, which is done once. */
export const act = (path: string, key: string): Promise<Answer<object>> => {
  const headers = { ...authorized("application/json"), "idempotency-key": key }
  return answerOf(path, { method: "POST", headers }, "ours", advices_of_acts)
}

/** Rows of a list that is shown whole; document 2 §8 has no larger page. */
export const rows_max = 1000

export interface Rows<Item> {
  readonly rows: readonly Item[]
  readonly next_marker: string | null
}

/** A page of a list of share protection: under its noun, or `items` in the other shape. */
const askPage = async <Item>(path: string, noun: string): Promise<Answer<Rows<Item>>> => {
  const answer = await ask<{ readonly pagination?: { readonly next_marker?: string | null } }>(path)
  if (answer.kind === "problem") return answer
  const rows: unknown = Reflect.get(answer.body, noun) ?? Reflect.get(answer.body, "items")
  if (!Array.isArray(rows)) return { kind: "problem", problem: unreadable }
  const next_marker = answer.body.pagination?.next_marker ?? null
  // As above: the items are the server's promise.
  return { kind: "answer", body: { rows: rows as Item[], next_marker } }
}

/** The path with this in its query as well, or instead. */
const asking = (path: string, name: string, value: string) => {
  const [place = "", query = ""] = path.split("?")
  const parameters = new URLSearchParams(query)
  parameters.set(name, value)
  return `${place}?${parameters}`
}

/**
 * A list of share protection. One that has pages gives so many rows, where it has them, in one page
 * or, where the server's `api.max_limit` is less, in pages of the size that it chooses.
 */
export const askRows = async <Item>(
  path: string,
  noun: string,
  rows_wanted?: number,
): Promise<Answer<Rows<Item>>> => {
  if (rows_wanted === undefined) return await askPage(path, noun)
  const whole = await askPage<Item>(asking(path, "limit", String(rows_wanted)), noun)
  if (whole.kind === "answer" || whole.problem.status !== 400) return whole
  const rows: Item[] = []
  let next_marker: string | null = null
  do {
    const at: string = next_marker === null ? path : asking(path, "marker", next_marker)
    const page: Answer<Rows<Item>> = await askPage(at, noun)
    if (page.kind === "problem") return page
    rows.push(...page.body.rows)
    next_marker = page.body.next_marker
  } while (next_marker !== null && rows.length < rows_wanted)
  return { kind: "answer", body: { rows, next_marker } }
}

/** The lines of `/readyz`, whatever its status: 503 says which service is not ready. */
export const askReadiness = async (): Promise<Answer<{ readonly lines: readonly string[] }>> => {
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
