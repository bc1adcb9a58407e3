/**
 * Whether caches may keep an answer, decided in one place by what its route needs.
 *
 * An answer to a caller who had to prove something is that caller's own: no cache keeps it, unless
 * it has an ETag, by which the caller's own cache may ask again. Errors are never kept. What is
 * public says for itself how long it may be kept.
 *
 * Source: RFC 9111 §3.5 and §5.2.2, RFC 9110 §12.5.5; decision 0179.
 */

/** Headers by their names in lower case. */
type Headers = Readonly<Record<string, string | undefined>>

/** What is added to an answer's own headers, or replaces them. */
interface Caching {
  readonly "cache-control"?: string
  readonly vary?: string
}

const no_store = "no-store"
/** The caller's own cache may keep it, and asks each time whether it still holds. */
const revalidated = "private, no-cache"

/** By what a caller is known, on each path. */
const credentials = "authorization, x-auth-token"

const errors_min = 400

/** Values of `Vary` with the credentials; all of them are this program's own, so they are few. */
const with_credentials = new Map<string, string>()

const joined = (...lists: ReadonlyArray<string | undefined>) => {
  const names = lists.flatMap((list = "") => list.toLowerCase().split(","))
  return [...new Set(names.map((name) => name.trim()).filter((name) => name !== ""))].join(", ")
}

const varied = (own = "") => {
  const known = with_credentials.get(own)
  if (known !== undefined) return known
  const all = joined(own, credentials)
  with_credentials.set(own, all)
  return all
}

/** For an answer with these headers; `is_private`: its route asks who the caller is. */
export const caching = (is_private: boolean, status: number, own: Headers): Caching => {
  if (!is_private) return status >= errors_min ? { "cache-control": no_store } : {}
  const { etag, "cache-control": kept } = own
  const is_revalidated = status < errors_min && etag !== undefined && kept !== no_store
  return { "cache-control": is_revalidated ? revalidated : no_store, vary: varied(own.vary) }
}

/** The headers that a visit adds to an answer: its own, and how it may be kept. */
export const visitHeaders = (
  of_visit: Readonly<Record<string, string>>,
  is_private: boolean,
  { status, headers }: { readonly status: number; readonly headers: Headers },
): Readonly<Record<string, string>> => {
  const vary = of_visit.vary === undefined ? headers.vary : joined(of_visit.vary, headers.vary)
  const own = { etag: headers.etag, "cache-control": headers["cache-control"], vary }
  return { ...of_visit, ...(vary !== undefined && { vary }), ...caching(is_private, status, own) }
}
