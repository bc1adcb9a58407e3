/**
 * The headers that the door adds to a response: request ids, CORS and caching.
 *
 * A response of a private route belongs to its caller: no cache stores it, unless it has an ETag
 * with which the caller's own cache revalidates it. Errors are never stored. A public response sets
 * its own caching headers. Pages of other origins may read the dashboard's paths.
 *
 * Source: RFC 9111 §3.5 and §5.2.2, RFC 9110 §12.5.5; decision 0179. Document 3 §1 A; decisions of
 * document 3, dashboard auth; the Fetch standard, CORS.
 */
import { HttpServerResponse } from "effect/http"
import { isPublic } from "#gateway/access.ts"
import type { DoorParts } from "#gateway/door/parts.ts"
import type { Incoming, Visit } from "#gateway/door/visit.ts"
import { type Found, isRoute } from "#gateway/routes.ts"
import type { Settings } from "#schemas/settings.ts"

/** How long a browser may cache the result of a preflight request, in seconds. */
const preflight_max_age_s = 600
/** Request headers that a page may send in addition to the CORS-safelisted ones. */
const allowed_headers = "authorization, if-none-match, x-request-id, x-almanac-position"
/** Response headers that a page may read in addition to the CORS-safelisted ones. */
const exposed_headers = "etag, retry-after, x-request-id, x-correlation-id"

const cors_vary = { vary: "origin, accept-encoding" }

/** The CORS headers of every response on the dashboard's paths. */
export const corsHeaders = (
  { headers: { origin } }: Pick<Incoming, "headers">,
  { capital: { cors_origins } }: Settings,
): Readonly<Record<string, string>> => {
  if (origin === undefined || !cors_origins.includes(origin)) return cors_vary
  return {
    ...cors_vary,
    "access-control-allow-origin": origin,
    "access-control-expose-headers": exposed_headers,
  }
}

/** The response to a CORS preflight request that is allowed; otherwise undefined. */
export const preflight = (
  { method, headers }: Pick<Incoming, "method" | "headers">,
  found: Found | undefined,
  response_headers: Readonly<Record<string, string>>,
): HttpServerResponse.HttpServerResponse | undefined => {
  const requested_method = headers["access-control-request-method"]
  if (method !== "OPTIONS" || requested_method === undefined) return undefined
  if (response_headers["access-control-allow-origin"] === undefined) return undefined
  if (found === undefined || isRoute(found) || !found.allow.includes(requested_method))
    return undefined
  return HttpServerResponse.empty({
    status: 204,
    headers: {
      "access-control-allow-methods": found.allow.join(", "),
      "access-control-allow-headers": allowed_headers,
      "access-control-max-age": String(preflight_max_age_s),
    },
  })
}

/** Headers by lower-case name. */
type Headers = Readonly<Record<string, string | undefined>>

const no_store = "no-store"
/** The caller's own cache may store it, and revalidates it before each use. */
const revalidated = "private, no-cache"

/** The request headers that identify a caller. */
const credentials = "authorization, x-auth-token"

const errors_min = 400

/**
 * Cache of `Vary` values with the credentials added. Only this program sets `Vary`, so there are
 * few.
 */
const with_credentials = new Map<string, string>()

const joined = (...lists: ReadonlyArray<string | undefined>) => {
  const names = lists.flatMap((list = "") => list.toLowerCase().split(","))
  return [...new Set(names.map((name) => name.trim()).filter((name) => name !== ""))].join(", ")
}

const withCredentials = (vary = "") => {
  const known = with_credentials.get(vary)
  if (known !== undefined) return known
  const all = joined(vary, credentials)
  with_credentials.set(vary, all)
  return all
}

/** The caching headers of a response with the headers `own`, which they replace. */
const caching = (is_private: boolean, status: number, own: Headers) => {
  if (!is_private) return status >= errors_min ? { "cache-control": no_store } : {}
  const { etag, "cache-control": stored } = own
  const is_revalidated = status < errors_min && etag !== undefined && stored !== no_store
  const vary = withCredentials(own.vary)
  return { "cache-control": is_revalidated ? revalidated : no_store, vary }
}

/** The headers that the door adds to a response; they replace the response's own. */
export const addedHeaders = (
  { settings }: Pick<DoorParts, "settings">,
  { found, headers: of_visit }: Pick<Visit, "found" | "headers">,
  { status, headers }: { readonly status: number; readonly headers: Headers },
): Readonly<Record<string, string>> => {
  const is_private = isRoute(found) && !isPublic(found.route, settings())
  const vary = of_visit.vary === undefined ? headers.vary : joined(of_visit.vary, headers.vary)
  const own = { etag: headers.etag, "cache-control": headers["cache-control"], vary }
  return { ...of_visit, ...(vary !== undefined && { vary }), ...caching(is_private, status, own) }
}
