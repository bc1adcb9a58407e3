/** The OpenAPI document of every service together. Source: DECISIONS of document 2, versions. */
import { Context, Predicate } from "effect"
import { HttpApi, OpenApi } from "effect/http-api"
import { type Access, Needs } from "#gateway/access.ts"

const document_version = "0.1.0"

const schemes = {
  bearer: { type: "http", scheme: "bearer", description: "A token, static or JWT." },
  certificate: { type: "mutualTLS", description: "A client certificate that settings name." },
  keystone: {
    type: "apiKey",
    in: "header",
    name: "X-Auth-Token",
    description: "A token of the identity service; a policy rule decides by its roles and scope.",
  },
}

const security = (access: Access) => {
  if (access === "public") return []
  if (typeof access === "object" && "rule" in access) return [{ keystone: [] }, { bearer: [] }]
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

/** The envelope of whatever has none of its own (DECISIONS, all services). */
const envelopes = {
  Refusal: {
    type: "object",
    properties: Object.fromEntries(
      ["code", "title", "detail", "category"].map((name) => [name, { type: "string" }]),
    ),
    required: ["code", "title", "detail", "category"],
  },
}

const refused = (description: string) => {
  const schema = { $ref: "#/components/schemas/Refusal" }
  return { description, content: { "application/json": { schema } } }
}

/** What the front door answers before an endpoint is asked, by status. */
const refusals = (access: Access, { requestBody }: Operation) => ({
  ...(requestBody && { 400: refused("No such body.") }),
  ...(access !== "public" && { 401: refused("No token that is known.") }),
  ...(typeof access !== "string" && { 403: refused("The caller may not do this.") }),
})

interface Operation {
  readonly requestBody?: object
  readonly responses?: object
}

type Operations = Readonly<Record<string, Readonly<Record<string, Operation>>>>

/** Each operation with what it needs, and with how it is refused where it says nothing. */
const guarded = (needs: ReadonlyMap<string, Access>, paths: Operations) =>
  Object.fromEntries(
    Object.entries(paths).map(([path, operations]) => [
      path,
      Object.fromEntries(
        Object.entries(operations).map(([method, operation]) => {
          const access = needs.get(`${method.toUpperCase()} ${path}`) ?? "public"
          const responses = { ...refusals(access, operation), ...operation.responses }
          return [method, { ...operation, responses, security: security(access) }]
        }),
      ),
    ]),
  )

const schemasOf = (components: unknown) =>
  Predicate.hasProperty(components, "schemas") ? (components.schemas as object) : {}

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
      license: { name: "Apache-2.0", url: "https://www.apache.org/licenses/LICENSE-2.0" },
      // Where the document came from.
      servers: [{ url: "/" }],
      transform: (document) => ({
        ...document,
        // The library's own document: paths of operations, components by kind.
        paths: guarded(needs, document.paths as Operations),
        components: {
          ...(document.components as object),
          schemas: { ...schemasOf(document.components), ...envelopes },
          securitySchemes: schemes,
        },
      }),
    }),
  )
}
