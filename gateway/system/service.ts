/**
 * The routes that belong to no service: documents and pages. Source: DECISIONS, all services, "/".
 */
import { Context, Effect, Layer } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder, OpenApi } from "effect/http-api"
import { Int64Form } from "#gateway/json.ts"
import { type Representation, represented } from "#gateway/representation.ts"
import { appOf, type Mounted } from "#gateway/routes.ts"
import { SystemApi } from "#gateway/system/apis/api.ts"
import { HealthApi } from "#gateway/system/apis/health.ts"
import { asyncApiOf } from "#gateway/system/asyncapi.ts"
import { documented } from "#gateway/system/document.ts"
import {
  assetOf,
  home,
  missingPage,
  type Pages,
  pageOf,
  prefersHtml,
  takesHtml,
} from "#gateway/system/pages.ts"
import type { PublishedTypes } from "#schemas/published.ts"
import type { Settings } from "#schemas/settings.ts"
import type { PagePath } from "#schemas/system/page.ts"
import { NotFound } from "#schemas/system/rejection.ts"
import { version, versions } from "#schemas/system/version.ts"

/** Documents change with the release only; caches revalidate them with the ETag. */
const of_document = { "cache-control": "no-cache" }

export interface SystemParts {
  /** The other services. */
  readonly services: ReadonlyArray<Mounted>
  /** The published types, by service. */
  readonly published?: ReadonlyArray<readonly [string, PublishedTypes]>
  /** The pages of these services, if they are built. */
  readonly pages?: Pages | undefined
  /** Compresses a document, so that it is sent compressed and with an ETag. */
  readonly compress: (bytes: Uint8Array) => Representation
}

const encoder = new TextEncoder()

interface Requested {
  readonly request: HttpServerRequest.HttpServerRequest
}

/** The service of documents and pages, to be mounted with the services that it documents. */
export const systemService = Effect.fnUntraced(function* (parts: SystemParts) {
  const { services, pages } = parts
  const apis = [...services.map((service) => service.api), HealthApi, SystemApi]
  /** Builds the document at the first request. */
  const documentOf = (build: (int64: Settings["json"]["int64"]) => unknown) =>
    Effect.map(
      Effect.cached(
        Effect.map(Int64Form, (int64) =>
          parts.compress(encoder.encode(JSON.stringify(build(int64)))),
        ),
      ),
      (representation) =>
        ({ request }: Requested) =>
          Effect.map(representation, (document) =>
            represented(request, document, "application/json", of_document),
          ),
    )
  const document = yield* documentOf((int64) => OpenApi.fromApi(documented(apis, int64)))
  const asyncapi = yield* documentOf(() => asyncApiOf(parts.published ?? []))
  const names = services.map(({ name }) => name)

  const homePage = (request: HttpServerRequest.HttpServerRequest) => {
    if (!prefersHtml(request.headers.accept)) {
      return HttpServerResponse.jsonUnsafe(versions, { status: 300, headers: { vary: "accept" } })
    }
    const built = new Set(pages?.html.keys())
    return pageOf(request, pages, "/") ?? home(names, built)
  }
  const page = (request: HttpServerRequest.HttpServerRequest, path: PagePath) => {
    const is_html_accepted = takesHtml(request.headers.accept)
    const found = is_html_accepted ? pageOf(request, pages, path) : undefined
    if (found !== undefined) return Effect.succeed(found)
    const detail = is_html_accepted
      ? missingPage(path, names)
      : `The page ${path} is available as text/html only.`
    return Effect.fail(new NotFound({ detail }))
  }
  const asset = (request: HttpServerRequest.HttpServerRequest, name: string) => {
    const found = assetOf(request, pages, name)
    const detail = `No page uses the file ${name}.`
    return found === undefined ? Effect.fail(new NotFound({ detail })) : Effect.succeed(found)
  }

  const open = HttpApiBuilder.group(SystemApi, "system", (handlers) =>
    handlers.handleAll({
      home: ({ request }) => Effect.sync(() => homePage(request)),
      carriers: ({ request }) => page(request, "/carriers"),
      plants: ({ request }) => page(request, "/plants"),
      console: ({ request }) => page(request, "/console"),
      asset: ({ request, params }) => asset(request, params.file),
      document,
      document_v1: document,
      asyncapi,
      docs: ({ request }) => page(request, "/docs"),
    }),
  )
  const closed = HttpApiBuilder.group(SystemApi, "operators", (handlers) =>
    handlers.handleAll({ version: () => Effect.succeed(version) }),
  )
  const layer = HttpApiBuilder.layer(SystemApi).pipe(Layer.provide([open, closed]))
  return { name: "system", api: SystemApi, routes: appOf(layer, Context.empty()) }
})
