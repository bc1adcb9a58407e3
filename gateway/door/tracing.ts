/** Tracing: the span of a request has its route and status, but none of its contents. */
import { Effect } from "effect"
import { HttpMiddleware } from "effect/http"
import { spanned, spanOf } from "#events/trace.ts"
import type { Visit } from "#gateway/door/visit.ts"
import { isRoute } from "#gateway/routes.ts"

/** Disables Effect's own spans of requests, which would contain headers and queries. */
export const { TracerDisabledWhen } = HttpMiddleware

/** Probes poll these every few seconds, and their spans are useless. */
const untraced = new Set(["/livez", "/readyz", "/metrics"])

/** Continues the caller's trace, if it sends a `traceparent`. */
export const inSpan = <A extends { readonly status: number }, E, R>(
  { request, found, edge }: Visit,
  answer: Effect.Effect<A, E, R>,
) => {
  const route = isRoute(found) ? found.route.path : "none"
  if (untraced.has(route)) return answer
  const { traceparent } = request.headers
  const parent = spanOf(traceparent) === undefined ? undefined : traceparent
  return answer.pipe(
    Effect.tap(({ status }) => Effect.annotateCurrentSpan("http.response.status_code", status)),
    spanned(`${request.method} ${route}`, {
      kind: "server",
      parent,
      attributes: () => ({
        "http.request.method": request.method,
        "http.route": route,
        "almanac.request_id": edge.request_id,
      }),
    }),
  )
}
