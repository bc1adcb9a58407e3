/** Renders JSON schemas: a type in words, its limits, and the properties below it. */
import { type Child, h } from "../element.ts"
import type { OpenApi, Schema } from "./document.ts"
import { markdown } from "./markdown.ts"

export type Resolve = (schema: Schema) => Schema

const ref_prefix = "#/components/schemas/"

/** Follows `$ref` and merges `allOf`, one level deep; the schema's own members win. */
export const resolver = ({ components }: OpenApi): Resolve => {
  const resolve: Resolve = (schema) => {
    const { $ref, allOf, ...own } = schema
    if ($ref === undefined && allOf === undefined) return schema
    const target = components?.schemas?.[($ref ?? "").replace(ref_prefix, "")]
    const parts = [...(target === undefined ? [] : [target]), ...(allOf ?? [])].map(resolve)
    const properties = Object.assign({}, ...parts.map((part) => part.properties), own.properties)
    const required = [...parts, own].flatMap((part) => part.required ?? [])
    return Object.assign({}, ...parts, own, {
      ...(Object.keys(properties).length > 0 && { properties }),
      ...(required.length > 0 && { required }),
    })
  }
  return resolve
}

const json = (value: unknown) => JSON.stringify(value) ?? ""

const unique = (texts: readonly string[]) => [...new Set(texts)]

const alternativesOf = ({ anyOf, oneOf }: Schema) => anyOf ?? oneOf

const namesOf = (schema: Schema): readonly string[] =>
  typeof schema.type === "string" ? [schema.type] : (schema.type ?? [])

/**
 * Maximum nesting of arrays and maps with the types of their members; deeper ones show as "array"
 * or "map".
 */
const depth_max = 3

/** The type in words: "array of strings", "string or null". */
const typeText = (schema: Schema, resolve: Resolve, depth = 0): string => {
  const found = resolve(schema)
  const alternatives = alternativesOf(found)
  if (alternatives !== undefined) {
    return unique(alternatives.map((one) => typeText(one, resolve, depth))).join(" or ")
  }
  if (found.const !== undefined) return json(found.const)
  const names = namesOf(found).map((name) => {
    if (depth >= depth_max) return name
    if (name === "array" && found.items)
      return `array of ${typeText(found.items, resolve, depth + 1)}`
    const { additionalProperties: values } = found
    const is_map = name === "object" && found.properties === undefined && typeof values === "object"
    return is_map ? `map of ${typeText(values, resolve, depth + 1)}` : name
  })
  if (names.length > 0) return names.join(" or ")
  if (found.properties !== undefined) return "object"
  return found.enum === undefined ? "any value" : unique(found.enum.map((one) => typeof one)).join()
}

const range = (from: number | undefined, to: number | undefined, unit: string) => {
  const noun = unit === "" ? "" : ` ${unit}`
  if (from !== undefined && to !== undefined) {
    return from === to ? `exactly ${from}${noun}` : `${from} to ${to}${noun}`
  }
  if (to !== undefined) return `at most ${to}${noun}`
  return from === undefined || (from === 0 && unit !== "") ? "" : `at least ${from}${noun}`
}

/** The limits of a schema or of its single alternative that is not null. */
const limitsOf = (schema: Schema): readonly Child[] => {
  const { exclusiveMinimum: above, exclusiveMaximum: below, pattern, format } = schema
  const texts = [
    range(schema.minimum, schema.maximum, ""),
    above === undefined ? "" : `more than ${above}`,
    below === undefined ? "" : `less than ${below}`,
    range(schema.minLength, schema.maxLength, "characters"),
    range(schema.minItems, schema.maxItems, "items"),
    format ?? "",
  ].filter((text) => text !== "")
  return [
    ...texts.map((text) => h("span", { class: "limit" }, text)),
    pattern !== undefined && h("span", { class: "limit" }, "matches ", h("code", {}, pattern)),
    schema.default !== undefined &&
      h("span", { class: "limit" }, "default ", h("code", {}, json(schema.default))),
  ]
}

const valuesOf = ({ enum: values }: Schema) =>
  values !== undefined &&
  h(
    "p",
    { class: "values" },
    values.length === 1 ? "Value: " : "One of: ",
    values.map((value, index) => [
      index > 0 && ", ",
      h("code", {}, typeof value === "string" ? value : json(value)),
    ]),
  )

const isNull = (schema: Schema) => schema.type === "null"

/** The schema whose limits and properties are shown: the only alternative apart from null. */
const shownOf = (schema: Schema, resolve: Resolve): Schema => {
  const found = resolve(schema)
  const others = alternativesOf(found)
    ?.map(resolve)
    .filter((one) => !isNull(one))
  const [only, ...rest] = others ?? []
  return only === undefined || rest.length > 0
    ? found
    : { ...shownOf(only, resolve), ...texts(found) }
}

const texts = ({ description, default: initial }: Schema): Schema => ({
  ...(description !== undefined && { description }),
  ...(initial !== undefined && { default: initial }),
})

/** The schemas below: properties of an object, or of the members of an array or a map. */
const innerOf = (schema: Schema, resolve: Resolve, depth = 0): Schema | undefined => {
  const found = shownOf(schema, resolve)
  if (found.properties !== undefined) return found
  const member = found.items ?? found.additionalProperties
  return typeof member === "object" && depth < depth_max
    ? innerOf(member, resolve, depth + 1)
    : undefined
}

/** Objects among several alternatives, which are shown one after the other. */
const variantsOf = (schema: Schema, resolve: Resolve): readonly Schema[] => {
  const found = shownOf(schema, resolve)
  const all = alternativesOf(found) ?? []
  return all.map((one) => shownOf(one, resolve)).filter((one) => one.properties !== undefined)
}

/**
 * Details whose content is rendered when they are first opened, because schemas may be recursive.
 */
const lazy = (label: string, render: () => readonly Child[]) => {
  let is_rendered = false
  const details = h(
    "details",
    {
      ontoggle: () => {
        if (is_rendered || !details.open) return
        is_rendered = true
        details.append(h("div", { class: "inner" }, render()))
      },
    },
    h("summary", {}, label),
  )
  return details
}

export const describe = (text: string | undefined): readonly Child[] =>
  text === undefined ? [] : markdown(text, { level: 5 }).nodes

interface Named {
  readonly name: string
  readonly schema: Schema
  readonly is_required: boolean
  /** Text that replaces the schema's own description. */
  readonly description?: string | undefined
  /** Where a parameter is sent. */
  readonly place?: string
}

/** One property or parameter. */
export const property = (
  { name, schema, is_required, description, place }: Named,
  resolve: Resolve,
): HTMLElement => {
  const shown = shownOf(schema, resolve)
  return h(
    "li",
    { class: "property" },
    h(
      "p",
      { class: "name" },
      h("code", {}, name),
      place !== undefined && h("span", { class: "place" }, place),
      h("span", { class: "type" }, typeText(schema, resolve)),
      limitsOf(shown),
      is_required && h("span", { class: "required" }, "required"),
    ),
    describe(description ?? resolve(schema).description ?? shown.description),
    valuesOf(shown),
    below(schema, resolve),
  )
}

const propertiesOf = ({ properties = {}, required = [] }: Schema, resolve: Resolve) =>
  h(
    "ul",
    { class: "properties" },
    Object.entries(properties).map(([name, schema]) =>
      property({ name, schema, is_required: required.includes(name) }, resolve),
    ),
  )

/** The properties below a schema, initially closed. */
const below = (schema: Schema, resolve: Resolve): Child => {
  const inner = innerOf(schema, resolve)
  if (inner !== undefined) return lazy("Properties", () => [propertiesOf(inner, resolve)])
  const variants = variantsOf(schema, resolve)
  if (variants.length === 0) return undefined
  return lazy("Variants", () => variantList(variants, resolve))
}

const variantList = (variants: readonly Schema[], resolve: Resolve) =>
  variants.map((variant, index) => [
    h("p", { class: "variant" }, `Variant ${index + 1} of ${variants.length}`),
    describe(variant.description),
    propertiesOf(variant, resolve),
  ])

/** A body's schema: its type, its text, and its properties. */
export const body = (schema: Schema, resolve: Resolve): readonly Child[] => {
  const inner = innerOf(schema, resolve)
  const variants = inner === undefined ? variantsOf(schema, resolve) : []
  const shown = shownOf(schema, resolve)
  return [
    h(
      "p",
      { class: "name" },
      h("span", { class: "type" }, typeText(schema, resolve)),
      limitsOf(shown),
    ),
    describe(shown.description),
    valuesOf(shown),
    inner !== undefined && propertiesOf(inner, resolve),
    variantList(variants, resolve),
  ]
}
