/**
 * The OpenAPI document for the security tests: every operation, what it requires, and whether it
 * documents a response.
 */
import { Ajv2020 } from "ajv/dist/2020.js"

export interface JsonSchema {
  readonly $ref?: string
  readonly type?: string | ReadonlyArray<string>
  readonly enum?: ReadonlyArray<unknown>
  readonly const?: unknown
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly oneOf?: ReadonlyArray<JsonSchema>
  readonly allOf?: ReadonlyArray<JsonSchema>
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: ReadonlyArray<string>
  readonly items?: JsonSchema
  readonly pattern?: string
  readonly format?: string
  readonly minimum?: number
  readonly maximum?: number
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema?: JsonSchema }>>
}

interface Parameter {
  readonly name: string
  readonly in: "path" | "query" | "header"
  readonly required?: boolean
  readonly schema: JsonSchema
}

interface Described {
  readonly parameters?: ReadonlyArray<Parameter>
  readonly security: ReadonlyArray<Readonly<Record<string, ReadonlyArray<string>>>>
  readonly requestBody?: Content
  readonly responses: Readonly<Record<string, Content>>
}

export interface Operation extends Described {
  readonly method: string
  readonly path: string
}

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> }
}

/** Statuses that any path may return, whether or not its operation documents them. */
const of_the_door = new Set([
  304, 400, 401, 403, 404, 405, 408, 413, 414, 415, 422, 429, 501, 503, 504,
])

/** The fields of an error's body, by path prefix. Source: decisions of all services. */
const envelopes: ReadonlyArray<readonly [prefix: RegExp, keys: ReadonlyArray<string>]> = [
  [/^\/v1\/(blobs|cluster)(\/|$)/, ["code", "message", "detail", "request_id"]],
  [/^\/api\/search(\/|$)/, ["error"]],
  [/^\/(api(\/|$)|health$)/, ["detail"]],
  [/^\/(predict|v2)(\/|$)/, ["error"]],
  [/^\//, ["code", "title", "detail", "category"]],
]

/** The problem with an error's body on this path, if any. */
export const wrongEnvelope = (path: string, body: unknown) => {
  const keys = envelopes.find(([prefix]) => prefix.test(path))?.[1] ?? []
  if (typeof body !== "object" || body === null) return "the error is no object"
  const wrong = keys.filter((key) => typeof Reflect.get(body, key) !== "string")
  return wrong.length === 0 ? undefined : `the error has no text ${wrong.join(", ")}`
}

const pointer = (...steps: ReadonlyArray<string>) =>
  steps
    .map((step) => encodeURIComponent(step.replaceAll("~", "~0").replaceAll("/", "~1")))
    .join("/")

export interface Answered {
  readonly status: number
  readonly type: string
  readonly text: string
}

const parsed = (text: string): { readonly value?: unknown; readonly problem?: string } => {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return { problem: "the answer calls itself JSON and is none" }
  }
}

/** Parses the document of a running server. */
export const apiDocument = (text: string) => {
  const document: OpenApi = JSON.parse(text)
  const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false })
  ajv.addSchema({ ...document, $id: "almanac" })
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, described]): Operation => ({ ...described, method: method.toUpperCase(), path }),
    ),
  )
  const resolved = (schema: JsonSchema): JsonSchema => {
    const name = schema.$ref?.split("/").at(-1)
    return name === undefined ? schema : (document.components.schemas[name] ?? {})
  }

  /** The part of a response that its operation does not document; undefined if there is none. */
  const misfit = (operation: Operation, { status, type, text }: Answered): string | undefined => {
    const documented = operation.responses[status]
    if (documented === undefined && !of_the_door.has(status)) return `${status} is not documented`
    if (status === 204 || status === 304) return text === "" ? undefined : `${status} has a body`
    const is_json = type.startsWith("application/json")
    if (
      status >= 400 &&
      !is_json &&
      documented?.content?.[type.split(";")[0] ?? ""] === undefined
    ) {
      return `an error of the type ${type}`
    }
    if (!is_json) return undefined
    const { value, problem } = parsed(text)
    if (problem !== undefined) return problem
    const envelope = status >= 400 ? wrongEnvelope(operation.path, value) : undefined
    if (envelope !== undefined) return envelope
    if (documented?.content?.["application/json"] === undefined) return undefined
    const { method, path } = operation
    const at = ["paths", path, method.toLowerCase(), "responses", String(status), "content"]
    const isValid = ajv.getSchema(`almanac#/${pointer(...at, "application/json", "schema")}`)
    if (isValid === undefined) return "its schema is not found"
    return isValid(value) ? undefined : ajv.errorsText(isValid.errors)
  }
  return { operations, resolved, misfit }
}

export type ApiDocument = ReturnType<typeof apiDocument>
