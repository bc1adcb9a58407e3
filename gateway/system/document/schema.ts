/**
 * Improves the generated JSON schemas: descriptions that generation drops, one description instead
 * of nested ones, and patterns that Python reads as JavaScript does.
 */
import { Schema, SchemaAST } from "effect"
import { isObject, type JsonObject } from "#gateway/system/document/json.ts"

/** Component schemas by name. */
type Components = Readonly<Record<string, JsonObject | undefined>>

const reference = "#/components/schemas/"

const resolved = (schema: JsonObject, components: Components): JsonObject =>
  typeof schema.$ref === "string"
    ? (components[schema.$ref.slice(reference.length)] ?? schema)
    : schema

/** The schema of the encoded side, which the JSON schema was generated from. */
const encodedOf = (ast: SchemaAST.AST): SchemaAST.AST => {
  const last = ast.encoding?.at(-1)
  return last === undefined ? ast : encodedOf(last.to)
}

/** The JSON schema that replaces the generated one: annotation `documentedAs` of either side. */
const replacementOf = (ast: SchemaAST.AST) =>
  replacement(ast) ?? (ast.encoding === undefined ? undefined : replacement(encodedOf(ast)))
const replacement = SchemaAST.resolveAt<JsonObject>("documentedAs")

const keyDescriptionOf = ({ context }: SchemaAST.AST) => {
  const description = context?.annotations?.description
  return typeof description === "string" ? description : undefined
}

/** Replaces everything but the texts about a schema. */
const replace = (schema: JsonObject, by: JsonObject) => {
  for (const key of Object.keys(schema)) {
    if (key !== "description" && key !== "examples") delete schema[key]
  }
  Object.assign(schema, by)
}

/**
 * Completes a JSON schema from the schema that it was generated from. The generator reads the
 * encoded side only, but fields are described on the decoded side.
 */
export const complete = (
  ast: SchemaAST.AST,
  schema: JsonObject,
  components: Components,
  seen: Set<JsonObject> = new Set(),
): void => {
  const target = resolved(schema, components)
  const by = replacementOf(ast)
  if (by !== undefined) replace(target, by)
  const description = SchemaAST.resolveDescription(ast)
  if (description !== undefined) target.description ??= description
  if (by !== undefined) return
  if (seen.has(target)) return
  seen.add(target)
  const encoded = encodedOf(ast)
  const go = (part: SchemaAST.AST | undefined, json: unknown) => {
    if (part !== undefined && isObject(json)) complete(part, json, components, seen)
  }
  if (SchemaAST.isObjects(encoded)) {
    for (const { name, type } of encoded.propertySignatures) {
      const property = isObject(target.properties) ? target.properties[String(name)] : undefined
      if (!isObject(property)) continue
      go(type, property)
      property.description = keyDescriptionOf(type) ?? property.description
      if (property.description === undefined) delete property.description
    }
    go(encoded.indexSignatures[0]?.type, target.additionalProperties)
  } else if (SchemaAST.isArrays(encoded)) {
    go(encoded.rest[0], target.items)
  } else if (SchemaAST.isUnion(encoded)) {
    const { anyOf } = target
    const { types } = encoded
    if (!Array.isArray(anyOf) || anyOf.length !== types.length) return
    for (const [index, part] of types.entries()) go(part, anyOf[index])
  }
}

/** Completes the schema of a body, if the document has one for it. */
export const completeBody = (
  schemas: ReadonlyArray<Schema.Top>,
  schema: JsonObject | undefined,
  components: Components,
) => {
  if (schema === undefined) return
  const parts = schemas.length > 1 && Array.isArray(schema.anyOf) ? schema.anyOf : [schema]
  if (parts.length !== schemas.length) return
  for (const [index, { ast }] of schemas.entries()) complete(ast, parts[index], components)
}

const texts = new Set(["description", "examples", "default", "title"])

const isOnlyText = (part: unknown): part is JsonObject =>
  isObject(part) && Object.keys(part).every((key) => texts.has(key))

/** `allOf` that only adds texts becomes those texts. */
const withoutNesting = (schema: JsonObject) => {
  const { allOf } = schema
  if (!Array.isArray(allOf) || !allOf.every(isOnlyText)) return
  delete schema.allOf
  Object.assign(schema, ...allOf)
}

/** Character classes as both languages read them; Python's `\d` and `\w` are Unicode's. */
const classes: Readonly<Record<string, string>> = {
  "\\d": "0-9",
  "\\w": "A-Za-z0-9_",
  "\\p{Cc}": "\\x00-\\x1f\\x7f-\\x9f",
}

const tokens = /\\[Pp]\{\w+\}|\\.|[[\]]|./gs

/** A pattern with the same meaning in JavaScript and in Python. */
export const portable = (pattern: string) => {
  let is_in_class = false
  return pattern.replaceAll(tokens, (token) => {
    if (token === "[" && !is_in_class) is_in_class = true
    else if (token === "]") is_in_class = false
    if (token === "\\P{Cc}" && !is_in_class) return `[^${classes["\\p{Cc}"]}]`
    const range = classes[token]
    if (range === undefined) return token
    return is_in_class ? range : `[${range}]`
  })
}

/** Removes repeated alternatives, such as one error with two descriptions. */
const withoutRepeats = (schema: JsonObject) => {
  const { anyOf } = schema
  if (!Array.isArray(anyOf)) return
  const texts = anyOf.map((part) => JSON.stringify(part))
  const parts = anyOf.filter((_, index) => texts.indexOf(texts[index] ?? "") === index)
  if (parts.length > 1) schema.anyOf = parts
  else {
    delete schema.anyOf
    Object.assign(schema, parts[0])
  }
}

/** Applies these changes to every schema in this part of the document. */
export const tidy = (value: unknown): void => {
  if (Array.isArray(value)) for (const part of value) tidy(part)
  if (!isObject(value)) return
  for (const [key, part] of Object.entries(value)) if (key !== "example") tidy(part)
  withoutNesting(value)
  withoutRepeats(value)
  if (typeof value.pattern === "string") value.pattern = portable(value.pattern)
}

/** The JSON schema for a part of the document that no endpoint declares. */
export const jsonSchemaOf = (schema: Schema.Top): JsonObject => {
  // The library's own JSON schema, without references because none of these has an identifier.
  const json = Schema.toJsonSchemaDocument(schema).schema as JsonObject
  tidy(json)
  complete(schema.ast, json, {})
  return json
}
