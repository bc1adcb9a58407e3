/** Asking the API: only what changed is sent again (ETag, 304), and failures say of which kind. */

export interface Problem {
  readonly kind: "offline" | "refused" | "server" | "unreadable"
  /** Of the HTTP answer; 0 where there was none. */
  readonly status: number
  /** When it is tried again, in milliseconds. */
  readonly retry_at: number
}

export type Answer<A> =
  | { readonly kind: "new"; readonly body: A }
  | { readonly kind: "same"; readonly body: A }
  | { readonly kind: "problem"; readonly problem: Omit<Problem, "retry_at"> }

/** An answer comes from memory on the server: one that takes longer hangs. */
const answer_deadline_ms = 20_000
const token_kept_as = "almanac-capital-token"

let token: string | null = null
try {
  token = sessionStorage.getItem(token_kept_as)
} catch {
  token = null
}

/** Sent with each request from now on, and kept until the tab is closed. */
export const useToken = (given: string): void => {
  token = given
  try {
    sessionStorage.setItem(token_kept_as, given)
  } catch {
    // It holds until the page is left.
  }
}

interface Known {
  readonly etag: string | null
  readonly body: unknown
}
const known = new Map<string, Known>()

const headersOf = (path: string): Record<string, string> => {
  const etag = known.get(path)?.etag
  return {
    accept: "application/json",
    ...(etag && { "if-none-match": etag }),
    ...(token && { authorization: `Bearer ${token}` }),
  }
}

const problem = (kind: Problem["kind"], status: number): Answer<never> => ({
  kind: "problem",
  problem: { kind, status },
})

/** The answers asked for last; older ones are let go, for a metric's detail is some 100 kB. */
const known_max = 32

const remember = (path: string, one: Known) => {
  known.delete(path)
  known.set(path, one)
  const [oldest] = known.keys()
  if (known.size > known_max && oldest !== undefined) known.delete(oldest)
}

/** GET. The server promises the shape (./api.ts); only that it is an object is checked. */
export const ask = async <A extends object>(path: string): Promise<Answer<A>> => {
  let response: Response
  try {
    response = await fetch(path, {
      headers: headersOf(path),
      cache: "no-store",
      signal: AbortSignal.timeout(answer_deadline_ms),
    })
  } catch {
    return problem("offline", 0)
  }
  const before = known.get(path)
  // What was stored under this path is what this path answered.
  if (response.status === 304 && before) {
    remember(path, before)
    return { kind: "same", body: before.body as A }
  }
  if (response.status === 401 || response.status === 403) return problem("refused", response.status)
  if (!response.ok) return problem("server", response.status)
  try {
    const body: unknown = await response.json()
    if (typeof body !== "object" || body === null) return problem("unreadable", response.status)
    remember(path, { etag: response.headers.get("etag"), body })
    // The one place where the server is taken at its word.
    return { kind: "new", body: body as A }
  } catch {
    return problem("unreadable", response.status)
  }
}
