/** The parts of an OpenAPI document, as JSON that is changed in place before it is sent. */

/** A JSON schema, a response or another object of the document. */
export type JsonObject = { [key: string]: unknown }

/** Component schemas by name. */
export type Schemas = Record<string, JsonObject>

export interface Parameter extends JsonObject {
  readonly name: string
  readonly in: string
  schema: JsonObject
}

export interface MediaType extends JsonObject {
  schema?: JsonObject
  example?: unknown
}

export interface Content {
  [type: string]: MediaType
}

export interface Response extends JsonObject {
  description: string
  content?: Content
}

export interface Operation extends JsonObject {
  parameters?: Array<Parameter>
  requestBody?: JsonObject & { content: Content }
  responses: { [status: string]: Response }
}

const reference = "#/components/schemas/"

export const referenceTo = (name: string) => ({ $ref: `${reference}${name}` })

/** The name that a reference has. */
export const referredName = ({ $ref }: JsonObject) =>
  typeof $ref === "string" ? $ref.slice(reference.length) : undefined

/** The schema itself, or the component that it refers to. */
export const resolved = (schema: JsonObject, schemas: Schemas): JsonObject =>
  schemas[referredName(schema) ?? ""] ?? schema

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)
