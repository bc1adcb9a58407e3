/**
 * Improves the generated JSON schemas: descriptions that generation drops, one description instead
 * of nested ones, and patterns that Python reads as JavaScript does.
 */
import { Schema, SchemaAST } from "effect"
import { isObject, type JsonObject, resolved, type Schemas } from "#gateway/system/document/json.ts"

/** Where a schema is, and the components that it may refer to. */
interface Place {
  readonly components: Schemas
  readonly side: Side
}

/** The schema of the encoded side, which the JSON schema was generated from. */
const encodedOf = (ast: SchemaAST.AST): SchemaAST.AST => {
  const last = ast.encoding?.at(-1)
  return last === undefined ? ast : encodedOf(last.to)
}

/** Whether a schema describes what the server accepts or what it sends. */
export type Side = "request" | "response"

const annotations = {
  request: [SchemaAST.resolveAt<JsonObject>("documentedAs")],
  response: [
    SchemaAST.resolveAt<JsonObject>("respondedAs"),
    SchemaAST.resolveAt<JsonObject>("documentedAs"),
  ],
}

/**
 * The JSON schema that replaces the generated one: annotation `documentedAs` of the decoded or the
 * encoded side. `respondedAs` overrides it where responses are stricter than requests.
 */
const replacementOf = (ast: SchemaAST.AST, side: Side) => {
  const sides = ast.encoding === undefined ? [ast] : [ast, encodedOf(ast)]
  const found = annotations[side].flatMap((resolve) => sides.map((one) => resolve(one)))
  return found.find((one) => one !== undefined)
}

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
  { components, side }: Place,
  seen: Set<JsonObject> = new Set(),
): void => {
  const target = resolved(schema, components)
  const by = replacementOf(ast, side)
  if (by !== undefined) replace(target, by)
  const description = SchemaAST.resolveDescription(ast)
  if (description !== undefined) target.description ??= description
  if (by !== undefined) return
  if (seen.has(target)) return
  seen.add(target)
  const encoded = encodedOf(ast)
  const go = (part: SchemaAST.AST | undefined, json: unknown) => {
    if (part !== undefined && isObject(json)) complete(part, json, { components, side }, seen)
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
  place: Place,
) => {
  if (schema === undefined) return
  const parts = schemas.length > 1 && Array.isArray(schema.anyOf) ? schema.anyOf : [schema]
  if (parts.length !== schemas.length) return
  for (const [index, { ast }] of schemas.entries()) complete(ast, parts[index], place)
}

const text_keys = new Set(["description", "examples", "default", "title"])

const isOnlyText = (part: unknown): part is JsonObject =>
  isObject(part) && Object.keys(part).every((key) => text_keys.has(key))

/** Moves the parts of `allOf` that only add texts, or a reference, into the schema itself. */
const withoutNesting = (schema: JsonObject) => {
  const { allOf } = schema
  if (!Array.isArray(allOf)) return
  const texts = allOf.filter(isOnlyText)
  const others = allOf.filter((part) => !isOnlyText(part))
  delete schema.allOf
  if (others.length === 1 && typeof others[0].$ref === "string") Object.assign(schema, others[0])
  else if (others.length > 0) schema.allOf = others
  Object.assign(schema, ...texts)
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

/** Adds the members of an array of any values, which some generators of clients require. */
const withItems = (schema: JsonObject) => {
  if (schema.type === "array" && !("prefixItems" in schema)) schema.items ??= {}
}

/** Applies these changes to every schema in this part of the document. */
export const tidy = (value: unknown): void => {
  if (Array.isArray(value)) for (const part of value) tidy(part)
  if (!isObject(value)) return
  for (const [key, part] of Object.entries(value)) if (key !== "example") tidy(part)
  withoutNesting(value)
  withoutRepeats(value)
  withItems(value)
  if (typeof value.pattern === "string") value.pattern = portable(value.pattern)
}

/** Makes the 64-bit integers in this part of the document strings, for `json.int64 = "string"`. */
export const writeInt64AsText = (value: unknown): void => {
  if (Array.isArray(value)) for (const part of value) writeInt64AsText(part)
  if (!isObject(value)) return
  if (value.format === "int64") {
    replace(value, { type: "string", format: "int64", pattern: "^-?[0-9]{1,20}$" })
  }
  for (const part of Object.values(value)) writeInt64AsText(part)
}

/** Replaces references in a schema with their targets. */
const inlined = (schema: JsonObject, definitions: Schemas): JsonObject => {
  const inline = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(inline)
    return isObject(part) ? inlined(part, definitions) : part
  }
  const { $ref, ...rest } = schema
  if (typeof $ref === "string") {
    const name = $ref.slice($ref.lastIndexOf("/") + 1)
    return { ...inlined(definitions[name] ?? {}, definitions), ...rest }
  }
  return Object.fromEntries(Object.entries(schema).map(([key, part]) => [key, inline(part)]))
}

/** The JSON schema for a part of the document that no endpoint declares. */
export const jsonSchemaOf = (schema: Schema.Top, side: Side): JsonObject => {
  const { schema: generated, definitions } = Schema.toJsonSchemaDocument(schema)
  // The library's own JSON schemas, which are objects.
  const json = inlined(generated as JsonObject, definitions as Schemas)
  tidy(json)
  complete(schema.ast, json, { components: {}, side })
  return json
}
