/**
 * Gives the schemas of bodies names, so that generated clients have named types, and refers to a
 * schema by its name wherever it is repeated.
 */
import { error_suffix } from "#gateway/system/document/errors.ts"
import {
  type Content,
  isObject,
  type JsonObject,
  type Operation,
  referenceTo,
  referredName,
  type Schemas,
} from "#gateway/system/document/json.ts"

/** The content of a schema as text, without the description of its use. */
const contentOf = ({ description: _, ...content }: JsonObject) => JSON.stringify(content)

const isNameable = ({ properties, anyOf }: JsonObject) =>
  isObject(properties) || Array.isArray(anyOf)

/** `targets.list` becomes `TargetsList`. */
const typeName = (operation_id: unknown) =>
  String(operation_id).replaceAll(/(?:^|[._-])(\w)/g, (_, letter: string) => letter.toUpperCase())

/** Makes a component of each inline schema in the content. */
const nameBodies = (name: string, content: Content, schemas: Schemas) => {
  for (const [type, media] of Object.entries(content)) {
    const { schema } = media
    if (schema === undefined || !isNameable(schema)) continue
    const own = type === "application/x-ndjson" ? `${name}Line` : name
    schemas[own] = schema
    media.schema = referenceTo(own)
  }
}

/** Makes a component of each object with a title, as `respondedAs` may have: its name. */
const nameTitled = (part: unknown, schemas: Schemas): void => {
  if (Array.isArray(part)) for (const one of part) nameTitled(one, schemas)
  if (!isObject(part)) return
  const { title } = part
  if (typeof title === "string" && isObject(part.properties)) {
    delete part.title
    schemas[title] ??= { ...part }
  }
  for (const [key, one] of Object.entries(part)) if (key !== "example") nameTitled(one, schemas)
}

/** Renames the components of errors in the content. */
const nameErrors = (content: Content, schemas: Schemas) => {
  for (const media of Object.values(content)) {
    const name = referredName(media.schema ?? {})
    const schema = schemas[name ?? ""]
    if (name === undefined || schema === undefined || !error_suffix.test(name)) continue
    const own = name.replace(error_suffix, "Error")
    schemas[own] = schema
    media.schema = referenceTo(own)
  }
}

/** Replaces the objects in a schema that equal a component by references. */
const refer = (schema: JsonObject, names: ReadonlyMap<string, string>): void => {
  for (const [key, part] of Object.entries(schema)) {
    if (!isObject(part)) {
      if (Array.isArray(part)) schema[key] = part.map((one) => referred(one, names))
    } else schema[key] = referred(part, names)
  }
}

const referred = (part: unknown, names: ReadonlyMap<string, string>): unknown => {
  if (!isObject(part)) return part
  const name = isObject(part.properties) ? names.get(contentOf(part)) : undefined
  if (name === undefined) {
    refer(part, names)
    return part
  }
  const { description } = part
  return { ...referenceTo(name), ...(description !== undefined && { description }) }
}

const namesIn = (value: unknown) =>
  [...JSON.stringify(value).matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(
    ([, name = ""]) => name,
  )

/** The components that the operations use, also indirectly. */
const used = (operations: ReadonlyArray<Operation>, schemas: Schemas): Schemas => {
  const found = new Set<string>()
  const visit = (names: ReadonlyArray<string>) => {
    for (const name of names) {
      if (found.has(name)) continue
      found.add(name)
      visit(namesIn(schemas[name] ?? {}))
    }
  }
  visit(namesIn(operations))
  return Object.fromEntries(Object.entries(schemas).filter(([name]) => found.has(name)))
}

/** Names the bodies of the operations in place; returns all components that are in use. */
export const named = (operations: ReadonlyArray<Operation>, schemas: Schemas): Schemas => {
  const all = { ...schemas }
  for (const { operationId, requestBody, responses } of operations) {
    const name = typeName(operationId)
    if (requestBody !== undefined) nameBodies(`${name}Request`, requestBody.content, all)
    for (const [status, { content }] of Object.entries(responses)) {
      if (content === undefined) continue
      if (status < "400") nameBodies(`${name}Response`, content, all)
      else nameErrors(content, all)
    }
  }
  for (const schema of Object.values(all)) nameTitled(schema, all)
  const names = new Map(Object.entries(all).map(([name, schema]) => [contentOf(schema), name]))
  for (const schema of Object.values(all)) refer(schema, names)
  return used(operations, all)
}
