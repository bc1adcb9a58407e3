/**
 * The routes that belong to no service: documents and pages. Source: DECISIONS, all services, "/".
 */
import { Context, Effect, Layer, Scope } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { type HttpApi, HttpApiBuilder, HttpApiScalar, OpenApi } from "effect/http-api"
import { appOf, type Mounted } from "#gateway/routes.ts"
import { SystemApi } from "#gateway/system/apis/api.ts"
import { HealthApi } from "#gateway/system/apis/health.ts"
import { asyncApiOf } from "#gateway/system/asyncapi.ts"
import { documented } from "#gateway/system/document.ts"
import { assetOf, home, type Pages, pageOf, prefersHtml, takesHtml } from "#gateway/system/pages.ts"
import type { PublishedTypes } from "#schemas/published.ts"
import type { PagePath } from "#schemas/system/page.ts"
import { NotFound } from "#schemas/system/rejection.ts"
import { version, versions } from "#schemas/system/version.ts"

/** The documentation page loads no other files. */
const page_policy = {
  "content-security-policy":
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; " +
    "img-src 'self' data:; font-src data:; connect-src 'self'; worker-src blob:; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
}

const no_page =
  "This page's service is not served here, or the page is not built: npm start builds it."

/** The documentation page is large, so it is built at the first request. */
const docsOf = Effect.fnUntraced(function* (api: HttpApi.Top) {
  const scope = yield* Effect.scope
  const page = HttpApiScalar.layer(api, { path: "/docs", scalar: { withDefaultFonts: false } })
  // A separate memo map, because the page needs its own router.
  const routes = HttpRouter.toHttpEffect(page).pipe(
    Effect.provideService(Layer.CurrentMemoMap, Layer.makeMemoMapUnsafe()),
    Effect.provideService(Scope.Scope, scope),
  )
  return yield* Effect.cached(routes)
})

export interface SystemParts {
  /** The other services. */
  readonly services: ReadonlyArray<Mounted>
  /** The published types, by service. */
  readonly published?: ReadonlyArray<readonly [string, PublishedTypes]>
  /** The pages of these services, if they are built. */
  readonly pages?: Pages | undefined
}

/** The service of documents and pages, to be mounted with the services that it documents. */
export const systemService = Effect.fnUntraced(function* (parts: SystemParts) {
  const { services, pages } = parts
  const api = documented([...services.map((service) => service.api), HealthApi, SystemApi])
  const document = yield* Effect.cached(
    Effect.sync(() => HttpServerResponse.jsonUnsafe(OpenApi.fromApi(api))),
  )
  const asyncapi = yield* Effect.cached(
    Effect.sync(() => HttpServerResponse.jsonUnsafe(asyncApiOf(parts.published ?? []))),
  )
  const docs = yield* docsOf(api)
  const names = services.map(({ name }) => name)

  const homePage = (request: HttpServerRequest.HttpServerRequest) => {
    if (!prefersHtml(request.headers.accept)) {
      return HttpServerResponse.jsonUnsafe(versions, { status: 300, headers: { vary: "accept" } })
    }
    const built = new Set(pages?.html.keys())
    const headers = { ...page_policy, vary: "accept" }
    return (
      pageOf(request, pages, "/") ??
      HttpServerResponse.html(home(names, built)).pipe(HttpServerResponse.setHeaders(headers))
    )
  }
  const page = (request: HttpServerRequest.HttpServerRequest, path: PagePath) => {
    const is_html_accepted = takesHtml(request.headers.accept)
    const found = is_html_accepted ? pageOf(request, pages, path) : undefined
    return found === undefined
      ? Effect.fail(
          new NotFound({ detail: is_html_accepted ? no_page : "It is a page, in HTML only." }),
        )
      : Effect.succeed(found)
  }
  const asset = (request: HttpServerRequest.HttpServerRequest, name: string) => {
    const found = assetOf(request, pages, name)
    const detail = "The pages have no such file."
    return found === undefined ? Effect.fail(new NotFound({ detail })) : Effect.succeed(found)
  }

  const open = HttpApiBuilder.group(SystemApi, "system", (handlers) =>
    handlers.handleAll({
      home: ({ request }) => Effect.sync(() => homePage(request)),
      carriers: ({ request }) => page(request, "/carriers"),
      plants: ({ request }) => page(request, "/plants"),
      console: ({ request }) => page(request, "/console"),
      asset: ({ request, params }) => asset(request, params.file),
      document: () => document,
      document_v1: () => document,
      asyncapi: () => asyncapi,
      docs: () =>
        docs.pipe(
          Effect.flatten,
          Effect.map((html) => HttpServerResponse.setHeaders(html, page_policy)),
          Effect.orDie,
        ),
    }),
  )
  const closed = HttpApiBuilder.group(SystemApi, "operators", (handlers) =>
    handlers.handleAll({ version: () => Effect.succeed(version) }),
  )
  const layer = HttpApiBuilder.layer(SystemApi).pipe(Layer.provide([open, closed]))
  return { name: "system", api: SystemApi, routes: appOf(layer, Context.empty()) }
})
