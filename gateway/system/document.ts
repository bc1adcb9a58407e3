/** The OpenAPI document of all services. Source: DECISIONS of document 2, versions. */
import { Context, Predicate } from "effect"
import { HttpApi, OpenApi } from "effect/http-api"
import { type Access, Needs } from "#gateway/access.ts"
import { idempotency_key_length_max, KeyNotNeeded } from "#gateway/limits.ts"

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

/** The description of the header Idempotency-Key. Source: decisions 0167, 0180 and 0181. */
const key_description =
  "Names this request. Sent again under the same key, by the same caller, it is carried out once " +
  "and the retry gets the answer of what was done; with another body or query it is 422. A key " +
  "counts for as long as the log keeps the resource's last 64 commands, and for a credential as " +
  "long as it is kept; a request that was refused leaves its key free. Use a fresh UUID for each " +
  "request."

/** The parameter for the header Idempotency-Key; `not_needed` says why a request needs none. */
const keyParameter = (not_needed: string | undefined) => ({
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description:
    not_needed === undefined ? key_description : `Accepted, and not needed: ${not_needed}`,
  schema: {
    type: "string",
    pattern: `^[\\x20-\\x7e]{1,${idempotency_key_length_max}}$`,
  },
})

const toDocumentPath = (path: string) => path.replaceAll(/:(\w+)/g, "{$1}")

interface OperationNotes {
  readonly access: Access
  readonly key_not_needed: string | undefined
}

/** The annotations of each operation, by its method and path in the document. */
const notesOf = (api: HttpApi.Top) => {
  const notes = new Map<string, OperationNotes>()
  HttpApi.reflect(api, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint, mergedAnnotations }) => {
      const { method, path } = endpoint
      notes.set(`${method} ${toDocumentPath(path)}`, {
        access: Context.get(mergedAnnotations, Needs),
        key_not_needed: Context.get(mergedAnnotations, KeyNotNeeded),
      })
    },
  })
  return notes
}

/** The default envelope (DECISIONS, all services). */
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

/** The door's own responses, by status. */
const refusals = (access: Access, { requestBody }: Operation) => ({
  ...(requestBody && { 400: refused("No such body.") }),
  ...(access !== "public" && { 401: refused("No token that is known.") }),
  ...(typeof access !== "string" && { 403: refused("The caller may not do this.") }),
})

interface Operation {
  readonly parameters?: ReadonlyArray<object>
  readonly requestBody?: object
  readonly responses?: object
}

type Operations = Readonly<Record<string, Readonly<Record<string, Operation>>>>

/** Adds the key, the required access and the missing error responses to each operation. */
const withAccess = (notes: ReadonlyMap<string, OperationNotes>, paths: Operations) =>
  Object.fromEntries(
    Object.entries(paths).map(([path, operations]) => [
      path,
      Object.fromEntries(
        Object.entries(operations).map(([method, operation]) => {
          const operation_notes = notes.get(`${method.toUpperCase()} ${path}`)
          const { access = "public", key_not_needed } = operation_notes ?? {}
          const responses = { ...refusals(access, operation), ...operation.responses }
          const { parameters = [] } = operation
          const key = method === "get" ? [] : [keyParameter(key_not_needed)]
          const with_key = { parameters: [...parameters, ...key] }
          return [method, { ...operation, ...with_key, responses, security: security(access) }]
        }),
      ),
    ]),
  )

const schemasOf = (components: unknown) =>
  Predicate.hasProperty(components, "schemas") ? (components.schemas as object) : {}

/** Combines the APIs into one, with the access of each operation; for documentation only. */
export const documented = (apis: ReadonlyArray<HttpApi.Constraint>): HttpApi.Top => {
  // Groups are added below, but the type only has those from its creation.
  const empty = HttpApi.make("almanac") as HttpApi.Constraint as HttpApi.Top
  const all = apis.reduce(
    (merged: HttpApi.Top, api) => merged.addHttpApi(api as HttpApi.Top),
    empty,
  )
  const notes = notesOf(all)
  return all.annotateMerge(
    OpenApi.annotations({
      title: "Almanac",
      version: document_version,
      description: "Five services on one replayable log.",
      license: { name: "Apache-2.0", url: "https://www.apache.org/licenses/LICENSE-2.0" },
      // The server that sent the document.
      servers: [{ url: "/" }],
      transform: (document) => ({
        ...document,
        // The library's own document: paths of operations, components by kind.
        paths: withAccess(notes, document.paths as Operations),
        components: {
          ...(document.components as object),
          schemas: { ...schemasOf(document.components), ...envelopes },
          securitySchemes: schemes,
        },
      }),
    }),
  )
}
