/** The OpenAPI document of every service together. Source: DECISIONS of document 2, versions. */
import { Context } from "effect"
import { HttpApi, OpenApi } from "effect/http-api"
import { type Access, Needs } from "#gateway/access.ts"

const document_version = "0.1.0"

const schemes = {
  bearer: { type: "http", scheme: "bearer", description: "A token, static or JWT." },
  certificate: { type: "mutualTLS", description: "A client certificate that settings name." },
}

const security = (access: Access) => {
  if (access === "public") return []
  const names =
    access === "authenticated" ? [] : [...(access.scopes ?? []), ...(access.roles ?? [])]
  return [{ bearer: names }, { certificate: names }]
}

const spelled = (path: string) => path.replaceAll(/:(\w+)/g, "{$1}")

/** What each operation needs, by method and path as the document spells them. */
const needsOf = (api: HttpApi.Top) => {
  const needs = new Map<string, Access>()
  HttpApi.reflect(api, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint, mergedAnnotations }) => {
      const { method, path } = endpoint
      needs.set(`${method} ${spelled(path)}`, Context.get(mergedAnnotations, Needs))
    },
  })
  return needs
}

type Operations = Readonly<Record<string, Readonly<Record<string, object>>>>

const secured = (needs: ReadonlyMap<string, Access>, paths: Operations) =>
  Object.fromEntries(
    Object.entries(paths).map(([path, operations]) => [
      path,
      Object.fromEntries(
        Object.entries(operations).map(([method, operation]) => {
          const access = needs.get(`${method.toUpperCase()} ${path}`) ?? "public"
          return [method, { ...operation, security: security(access) }]
        }),
      ),
    ]),
  )

/** One API of all these, with what each operation needs; it serves documentation only. */
export const documented = (apis: ReadonlyArray<HttpApi.Constraint>): HttpApi.Top => {
  // Groups are added below; the type knows those it was made with only.
  const empty = HttpApi.make("almanac") as HttpApi.Constraint as HttpApi.Top
  const all = apis.reduce(
    (merged: HttpApi.Top, api) => merged.addHttpApi(api as HttpApi.Top),
    empty,
  )
  const needs = needsOf(all)
  return all.annotateMerge(
    OpenApi.annotations({
      title: "Almanac",
      version: document_version,
      description: "Five services on one replayable log.",
      transform: (document) => ({
        ...document,
        // The library's own document: paths of operations, components by kind.
        paths: secured(needs, document.paths as Operations),
        components: { ...(document.components as object), securitySchemes: schemes },
      }),
    }),
  )
}
