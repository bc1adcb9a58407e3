/** HTTP client of the dashboard: revalidates with ETags, and classifies errors. */

export interface Problem {
  readonly kind: "offline" | "refused" | "server" | "unreadable"
  /** HTTP status; 0 without a response. */
  readonly status: number
  /** Time of the next attempt, in epoch milliseconds. */
  readonly retry_at: number
}

export type Result<A> =
  | { readonly kind: "new"; readonly body: A }
  | { readonly kind: "same"; readonly body: A }
  | { readonly kind: "problem"; readonly problem: Omit<Problem, "retry_at"> }

/** The server responds from memory, so a slower response means that it hangs. */
const timeout_ms = 20_000
const token_key = "almanac-capital-token"

let token: string | null = null
try {
  token = sessionStorage.getItem(token_key)
} catch {
  token = null
}

/** Sets the token for all further requests and stores it until the tab is closed. */
export const useToken = (new_token: string): void => {
  token = new_token
  try {
    sessionStorage.setItem(token_key, new_token)
  } catch {
    // Storage is blocked: the token lasts until the page is closed.
  }
}

interface CacheEntry {
  readonly etag: string | null
  readonly body: unknown
}
const cache = new Map<string, CacheEntry>()

const headersOf = (path: string): Record<string, string> => {
  const etag = cache.get(path)?.etag
  return {
    accept: "application/json",
    ...(etag && { "if-none-match": etag }),
    ...(token && { authorization: `Bearer ${token}` }),
  }
}

const problem = (kind: Problem["kind"], status: number): Result<never> => ({
  kind: "problem",
  problem: { kind, status },
})

/** Maximum number of cached responses; the details of a metric take about 100 kB. */
const cache_size_max = 32

const remember = (path: string, entry: CacheEntry) => {
  cache.delete(path)
  cache.set(path, entry)
  const [oldest] = cache.keys()
  if (cache.size > cache_size_max && oldest !== undefined) cache.delete(oldest)
}

/**
 * Sends a GET request. Checks only that the body is an object; the server is trusted with its type.
 */
export const get = async <A extends object>(path: string): Promise<Result<A>> => {
  let response: Response
  try {
    response = await fetch(path, {
      headers: headersOf(path),
      cache: "no-store",
      signal: AbortSignal.timeout(timeout_ms),
    })
  } catch {
    return problem("offline", 0)
  }
  const cached = cache.get(path)
  // The cache holds only responses to this path.
  if (response.status === 304 && cached) {
    remember(path, cached)
    return { kind: "same", body: cached.body as A }
  }
  if (response.status === 401 || response.status === 403) return problem("refused", response.status)
  if (!response.ok) return problem("server", response.status)
  try {
    const body: unknown = await response.json()
    if (typeof body !== "object" || body === null) return problem("unreadable", response.status)
    remember(path, { etag: response.headers.get("etag"), body })
    // The cast trusts the server.
    return { kind: "new", body: body as A }
  } catch {
    return problem("unreadable", response.status)
  }
}
