/**
 * What pages of other origins may do with the dashboard's paths: read them.
 *
 * Source: document 3 §1 A; decisions of document 3, dashboard auth; the Fetch standard, CORS.
 */
import { HttpServerResponse } from "effect/http"
import type { Incoming } from "#gateway/door/visit.ts"
import type { Found } from "#gateway/routes.ts"
import type { Settings } from "#schemas/settings.ts"

/** How long a browser need not ask again, in seconds. */
const preflight_kept_s = 600
/** What a page may send beside what each page may. */
const allowed_headers = "authorization, if-none-match, x-request-id, x-almanac-position"
/** What a page may see beside what each page may. */
const exposed_headers = "etag, retry-after, x-request-id, x-correlation-id"

/** The answer depends on these, and caches must know it of each. */
const varied = { vary: "origin, accept-encoding" }

/** Headers of every answer on the dashboard's paths. */
export const corsHeaders = (
  { headers: { origin } }: Pick<Incoming, "headers">,
  { capital: { cors_origins } }: Settings,
): Readonly<Record<string, string>> => {
  if (origin === undefined || !cors_origins.includes(origin)) return varied
  return {
    ...varied,
    "access-control-allow-origin": origin,
    "access-control-expose-headers": exposed_headers,
  }
}

/** The answer to a browser that asks what it may, where it may anything; else undefined. */
export const preflight = (
  { method, headers }: Pick<Incoming, "method" | "headers">,
  found: Found | undefined,
  answered: Readonly<Record<string, string>>,
): HttpServerResponse.HttpServerResponse | undefined => {
  const asked = headers["access-control-request-method"]
  if (method !== "OPTIONS" || asked === undefined) return undefined
  if (answered["access-control-allow-origin"] === undefined) return undefined
  if (found === undefined || !("allow" in found) || !found.allow.includes(asked)) return undefined
  return HttpServerResponse.empty({
    status: 204,
    headers: {
      "access-control-allow-methods": found.allow.join(", "),
      "access-control-allow-headers": allowed_headers,
      "access-control-max-age": String(preflight_kept_s),
    },
  })
}
