/** Finds what an API document does not explain. */
import { type HttpApi, OpenApi } from "effect/http-api"
import { documented } from "#gateway/system/document.ts"

export interface Json {
  readonly [key: string]: unknown
}

interface Parameter extends Json {
  readonly name: string
  readonly in: string
  readonly schema: Json
}

interface Body {
  readonly description?: string
  readonly content?: Readonly<
    Record<string, { readonly schema?: Json; readonly example?: unknown }>
  >
}

export interface Operation extends Json {
  readonly operationId: string
  readonly summary?: string
  readonly description?: string
  readonly tags: ReadonlyArray<string>
  readonly parameters: ReadonlyArray<Parameter>
  readonly requestBody?: Body
  readonly responses: Readonly<Record<string, Body>>
}

export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Json>> }
}

/** The document of these APIs, as a server with this `json.int64` sends it. */
export const documentOf = (
  apis: ReadonlyArray<HttpApi.Constraint>,
  int64: "number" | "string" = "number",
): Document =>
  // The library's own document.
  OpenApi.fromApi(documented(apis, int64)) as unknown as Document

/** A missing part of an operation, and its place. */
export interface Gap {
  readonly service: string
  readonly kind: Kind
  readonly place: string
}

export const kinds = [
  "summary",
  "description",
  "operation id",
  "parameter description",
  "parameter range",
  "property description",
  "error description",
  "request example",
  "response example",
] as const
type Kind = (typeof kinds)[number]

const services: ReadonlyArray<readonly [paths: RegExp, service: string]> = [
  [/^\/v1\/(blobs|cluster)/, "blob-storage"],
  [/^\/api\/search/, "carrier-search"],
  [/^\/(api|health)/, "capital-pressure"],
  [/^\/(predict|v2)/, "plant-disease"],
  [
    /^\/v1\/(events|webhooks|admin\/(audit|log|read-models|tokens|secrets|trusts|charts|webhooks))/,
    "system",
  ],
  [/^\/v1\/(?!openapi\.json)./, "share-protection"],
  [/^\//, "system"],
]

export const serviceOf = (path: string) =>
  services.find(([paths]) => paths.test(path))?.[1] ?? "system"

/** At least two words that end as a sentence does. */
const isSentence = (text: unknown) => typeof text === "string" && /\S \S[\s\S]*[.:)`]$/.test(text)

const is_plain_id = /^[a-z][a-z0-9-]*\.[a-z][a-z0-9_]*$/

/** Types of which any value is valid, so that a range or pattern is not needed. */
const limits = [
  "enum",
  "const",
  "pattern",
  "format",
  "minLength",
  "maxLength",
  "minimum",
  "maximum",
]

const isBounded = (schema: Json): boolean => {
  if (schema.type === "boolean" || typeof schema.$ref === "string") return true
  if (Array.isArray(schema.anyOf)) return schema.anyOf.every(isBounded)
  if (schema.type === "array") return isBounded(schema.items as Json)
  return limits.some((limit) => limit in schema)
}

const errorCauses = ({ responses }: Operation) =>
  Object.entries(responses).filter(([status]) => status >= "400")

/** The properties of a schema, also of its parts, without a description. */
const silentProperties = (
  document: Document,
  schema: Json | undefined,
  at: string,
  seen: Set<unknown> = new Set(),
): ReadonlyArray<string> => {
  if (schema === undefined || seen.has(schema)) return []
  seen.add(schema)
  const { $ref, properties, items, anyOf, additionalProperties } = schema
  const go = (part: unknown, place: string) =>
    typeof part === "object" ? silentProperties(document, part as Json, place, seen) : []
  if (typeof $ref === "string") {
    const name = $ref.split("/").at(-1) ?? ""
    return go(document.components.schemas[name], name)
  }
  const own = Object.entries((properties ?? {}) as Readonly<Record<string, Json>>)
  return [
    ...own.flatMap(([name, one]) => [
      ...(isSentence(one.description) || hasDescribedTarget(document, one)
        ? []
        : [`${at}.${name}`]),
      ...go(one, `${at}.${name}`),
    ]),
    ...go(items, `${at}[]`),
    ...go(additionalProperties, `${at}.*`),
    ...(Array.isArray(anyOf) ? anyOf.flatMap((part) => go(part, at)) : []),
  ]
}

/** A reference needs no description of its own if its schema has one. */
const hasDescribedTarget = ({ components }: Document, { $ref }: Json) =>
  typeof $ref === "string" &&
  isSentence(components.schemas[$ref.split("/").at(-1) ?? ""]?.description)

const hasExample = ({ content = {} }: Body) =>
  Object.values(content).some(({ example }) => example !== undefined)

/** Types of which an example would be bytes. */
const is_binary = /^(image\/|application\/octet-stream|multipart\/|text\/html|font\/)/

const needsExample = ({ content = {} }: Body) =>
  Object.keys(content).some((type) => !is_binary.test(type))

const isSuccess = (status: string) => status < "400"

/** All gaps of one operation. */
const gapsOf = (document: Document, name: string, operation: Operation) => {
  const { summary, description, operationId, parameters, requestBody, responses } = operation
  const found: Array<readonly [Kind, string]> = []
  const add = (is_there: boolean, kind: Kind, place = name) => {
    if (!is_there) found.push([kind, place])
  }
  add(/^[A-Z][^.]{2,60}$/.test(summary ?? ""), "summary")
  add(isSentence(description), "description")
  add(is_plain_id.test(operationId), "operation id")
  for (const parameter of parameters) {
    const place = `${name} ${parameter.name}`
    add(isSentence(parameter.description), "parameter description", place)
    add(isBounded(parameter.schema), "parameter range", place)
  }
  for (const [status, body] of errorCauses(operation)) {
    add(isSentence(body.description), "error description", `${name} ${status}`)
  }
  const seen = new Set<unknown>()
  for (const body of [requestBody ?? {}, ...Object.values(responses)]) {
    for (const { schema } of Object.values(body.content ?? {})) {
      for (const place of silentProperties(document, schema, name, seen)) {
        add(false, "property description", place)
      }
    }
  }
  if (requestBody !== undefined && needsExample(requestBody)) {
    add(hasExample(requestBody), "request example")
  }
  const answered = Object.entries(responses).filter(([status]) => isSuccess(status))
  const examples = answered.map(([, body]) => body).filter(needsExample)
  add(examples.length === 0 || examples.some(hasExample), "response example")
  return found
}

/** All gaps of a document, each place once. */
export const gapsIn = (document: Document): ReadonlyArray<Gap> => {
  const found = new Map<string, Gap>()
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const service = serviceOf(path)
      for (const [kind, place] of gapsOf(document, `${method.toUpperCase()} ${path}`, operation)) {
        found.set(`${kind} ${place}`, { service, kind, place })
      }
    }
  }
  return [...found.values()]
}
