/** The OpenAPI document of all services. Source: DECISIONS of document 2, versions. */
import { Context, type Schema } from "effect"
import { HttpApi, type HttpApiEndpoint, OpenApi } from "effect/http-api"
import { type Access, Needs } from "#gateway/access.ts"
import { idempotency_key_length_max, KeyNotNeeded } from "#gateway/limits.ts"
import { type Example, Examples } from "#gateway/reference.ts"
import { named } from "#gateway/system/document/components.ts"
import { errorSchemas, responsesOf } from "#gateway/system/document/errors.ts"
import { exemplified } from "#gateway/system/document/examples.ts"
import { introduction } from "#gateway/system/document/introduction.ts"
import type { JsonObject, Operation, Parameter, Schemas } from "#gateway/system/document/json.ts"
import { complete, completeBody, tidy, writeInt64AsText } from "#gateway/system/document/schema.ts"
import type { Settings } from "#schemas/settings.ts"

const document_version = "0.1.0"

const schemes = {
  bearer: { type: "http", scheme: "bearer", description: "A static, issued or JWT token." },
  certificate: {
    type: "mutualTLS",
    description: "A client certificate that the configuration maps to scopes or roles.",
  },
  keystone: {
    type: "apiKey",
    in: "header",
    name: "X-Auth-Token",
    description: "A Keystone token, or any other token. The policy rule decides.",
  },
}

const security = (access: Access) => {
  if (access === "public") return []
  if (typeof access === "object" && "rule" in access) return [{ keystone: [] }, { bearer: [] }]
  const names =
    access === "authenticated" ? [] : [...(access.scopes ?? []), ...(access.roles ?? [])]
  return [{ bearer: names }, { certificate: names }]
}

/** The parameter for the header Idempotency-Key; `not_needed` says why a request needs none. */
const keyParameter = (not_needed: string | undefined): Parameter => ({
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description:
    not_needed === undefined
      ? "A key of your choice that makes a retry of this request safe. See Idempotency."
      : `Accepted and ignored, because a retry is safe without a key: ${not_needed}`,
  schema: {
    type: "string",
    pattern: `^[\\x20-\\x7e]{1,${idempotency_key_length_max}}$`,
  },
})

const toDocumentPath = (path: string) => path.replaceAll(/:(\w+)/g, "{$1}")

interface OperationNotes {
  readonly endpoint: HttpApiEndpoint.Top
  readonly successes: Bodies
  readonly access: Access
  readonly key_not_needed: string | undefined
  readonly example: Example | undefined
}

type Bodies = ReadonlyMap<number, ReadonlyArray<Schema.Top>>

/** The schemas and annotations of each operation, by its method and path in the document. */
const notesOf = (api: HttpApi.Top) => {
  const notes = new Map<string, OperationNotes>()
  HttpApi.reflect(api, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint, mergedAnnotations, successes }) => {
      const key = `${endpoint.method} ${toDocumentPath(endpoint.path)}`
      notes.set(key, {
        endpoint,
        successes,
        access: Context.get(mergedAnnotations, Needs),
        key_not_needed: Context.get(mergedAnnotations, KeyNotNeeded),
        example: Context.get(mergedAnnotations, Examples)[key],
      })
    },
  })
  return notes
}

type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>

/** Moves the description and example of a parameter from its schema to the parameter. */
const lifted = (parameter: Parameter): Parameter => {
  const { description, examples, ...schema } = parameter.schema
  const [example] = Array.isArray(examples) ? examples : []
  return {
    ...parameter,
    ...(description !== undefined && { description }),
    ...(example !== undefined && { example }),
    schema,
  }
}

/** Completes the schemas of the operation's parameters and bodies in place. */
const completeSchemas = (
  { endpoint, successes }: OperationNotes,
  { parameters = [], requestBody, responses }: Operation,
  components: Schemas,
) => {
  const request = { components, side: "request" } as const
  const response = { components, side: "response" } as const
  const places = { path: endpoint.params, query: endpoint.query, header: endpoint.headers }
  for (const [place, schema] of Object.entries(places)) {
    const own = parameters.filter((one) => one.in === place)
    const properties = Object.fromEntries(own.map((one) => [one.name, one.schema]))
    if (schema !== undefined) complete(schema.ast, { properties }, request)
  }
  const json = "application/json"
  const payloads = [...endpoint.payload.values()].flatMap((one) => [...one.schemas])
  completeBody(payloads, requestBody?.content[json]?.schema, request)
  for (const [status, schemas] of successes) {
    completeBody(schemas, responses[status]?.content?.[json]?.schema, response)
  }
}

interface Place {
  readonly path: string
  readonly method: string
  readonly schemas: Schemas
}

/** An operation with its key, access, error responses and examples. */
const completed = (
  { path, method, schemas }: Place,
  operation: Operation,
  { access, key_not_needed, example }: OperationNotes,
) => {
  const keys = method === "get" ? [] : [keyParameter(key_not_needed)]
  const has_key = method !== "get" && key_not_needed === undefined
  const parameters = [...(operation.parameters ?? []).map(lifted), ...keys]
  const responses = responsesOf(path, method, operation, { access, has_key, schemas })
  return exemplified({ ...operation, parameters, responses, security: security(access) }, example)
}

/** The generated document with everything that generation omits. */
const finished = (
  notes: ReadonlyMap<string, OperationNotes>,
  generated: JsonObject,
  int64: Settings["json"]["int64"],
) => {
  // Parts come from annotations of endpoints, which other documents use too.
  const document = structuredClone(generated)
  // The library's own document: operations by path and method, components by kind.
  const paths = document.paths as Paths
  const { schemas = {}, ...components } = document.components as { readonly schemas?: Schemas }
  const each = <A>(change: (path: string, method: string, operation: Operation) => A) =>
    Object.fromEntries(
      Object.entries(paths).map(([path, operations]) => [
        path,
        Object.fromEntries(
          Object.entries(operations).map(([method, operation]) => [
            method,
            change(path, method, operation),
          ]),
        ),
      ]),
    )
  tidy({ paths, schemas })
  const notesFor = (path: string, method: string) => notes.get(`${method.toUpperCase()} ${path}`)
  each((path, method, operation) => {
    const known = notesFor(path, method)
    if (known !== undefined) completeSchemas(known, operation, schemas)
  })
  if (int64 === "string") writeInt64AsText({ paths, schemas })
  const explained = each((path, method, operation) => {
    const known = notesFor(path, method)
    return known === undefined ? operation : completed({ path, method, schemas }, operation, known)
  })
  const operations = Object.values(explained).flatMap((one) => Object.values(one))
  return {
    ...document,
    paths: explained,
    components: {
      ...components,
      schemas: named(operations, { ...schemas, ...errorSchemas(schemas) }),
      securitySchemes: schemes,
    },
  }
}

/**
 * Combines the APIs into one, with the access of each operation and 64-bit integers in this format;
 * for documentation only.
 */
export const documented = (
  apis: ReadonlyArray<HttpApi.Constraint>,
  int64: Settings["json"]["int64"] = "number",
): HttpApi.Top => {
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
      description: introduction,
      license: { name: "Apache-2.0", url: "https://www.apache.org/licenses/LICENSE-2.0" },
      // The server that sent the document.
      servers: [{ url: "/" }],
      transform: (document) => finished(notes, document, int64),
    }),
  )
}
