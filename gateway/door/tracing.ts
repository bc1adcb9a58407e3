/** A request's span: its route and its status, and none of its contents. */
import { Effect } from "effect"
import { HttpMiddleware } from "effect/http"
import { spanned, spanOf } from "#events/trace.ts"
import type { Visit } from "#gateway/door/visit.ts"
import { isRoute } from "#gateway/routes.ts"

/** Effect's own spans of requests would hold headers and queries: none of them are made. */
export const { TracerDisabledWhen } = HttpMiddleware

/** Probes poll these every few seconds: their spans would say nothing. */
const untraced = new Set(["/livez", "/readyz", "/metrics"])

/** Goes on in the caller's trace, if it names one by `traceparent`. */
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
