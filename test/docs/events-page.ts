/** The published types as they appear in docs/events.md and docs/events.schema.json. */
import { readdirSync } from "node:fs"
import { Predicate, Schema } from "effect"
import type { PublishedTypes } from "#schemas/published.ts"

/** Each service with its types: every service that has a published.ts. */
export const services = async (): Promise<ReadonlyArray<readonly [string, PublishedTypes]>> => {
  const folders = readdirSync("schemas", { withFileTypes: true }).filter((entry) =>
    entry.isDirectory(),
  )
  const found = folders.flatMap(({ name }) =>
    readdirSync(`schemas/${name}`).includes("published.ts") ? [name] : [],
  )
  return await Promise.all(
    found.map(async (name) => {
      const { published } = await import(`../../schemas/${name}/published.ts`)
      return [name, published] as const
    }),
  )
}

/** The subset of JSON Schema that the data of events uses. */
export interface Shape {
  readonly pattern?: string
  readonly type?: string
  readonly enum?: ReadonlyArray<string>
  readonly description?: string
  readonly items?: Shape
  readonly anyOf?: ReadonlyArray<Shape>
  readonly allOf?: ReadonlyArray<Shape>
  readonly properties?: Readonly<Record<string, Shape>>
  readonly required?: ReadonlyArray<string>
  readonly additionalProperties?: unknown
}

/** One published type with its guarantees. */
export interface Promised {
  readonly source: string
  readonly data: Shape
}

export const promisedOf = (
  all: ReadonlyArray<readonly [string, PublishedTypes]>,
): Readonly<Record<string, Promised>> =>
  Object.fromEntries(
    all.flatMap(([service, types]) =>
      Object.entries(types).map(([type, { aggregate, data }]) => [
        `events.${service}.${aggregate}.${type}`,
        {
          source: `/almanac/${service}/${aggregate}`,
          // The library's type covers any JSON Schema.
          data: Schema.toJsonSchemaDocument(data).schema as Shape,
        },
      ]),
    ),
  )

const described = (shape: Shape): string =>
  shape.allOf?.map(described).find((text) => text !== "") ?? shape.description ?? ""

/** The same shape without descriptions, which may change. */
export const bare = (shape: Shape): unknown =>
  JSON.parse(JSON.stringify(shape), (key, value: unknown) => {
    if (key === "description") return undefined
    if (key !== "allOf" || !Array.isArray(value)) return value
    const others = value.filter((part: object) => Object.keys(part).length > 0)
    return others.length > 0 ? others : undefined
  })

/** The shape without patterns: a pattern that is added only describes the existing values. */
const anyText = (shape: Shape): Shape =>
  JSON.parse(JSON.stringify(shape), (key, value: unknown) =>
    key === "pattern" ? undefined : value,
  )

/** Whether the shape is unchanged, or an enum that still has all its values. */
const grown = (before: unknown, after: unknown) => {
  const [had, has] = [valuesOf(before), valuesOf(after)]
  if (had === undefined || has === undefined) {
    return JSON.stringify(before) === JSON.stringify(after)
  }
  return had.every((value) => has.includes(value))
}

/** The values of an enum; undefined for any other shape. */
const valuesOf = (shape: unknown): ReadonlyArray<unknown> | undefined => {
  const values = Predicate.hasProperty(shape, "enum") ? shape.enum : undefined
  return Array.isArray(values) ? values : undefined
}

/** Breaking changes for subscribers from `before` to `after`; empty if `after` only adds. */
export const broken = (
  before: Readonly<Record<string, Promised>>,
  after: Readonly<Record<string, Promised>>,
): ReadonlyArray<string> =>
  Object.entries(before).flatMap(([subject, { source, data }]) => {
    const now = after[subject]
    if (now === undefined) return [`${subject} is gone`]
    const moved = now.source === source ? [] : [`${subject} has another source`]
    const fields = Object.entries(data.properties ?? {}).flatMap(([field, shape]) => {
      const there = now.data.properties?.[field]
      if (there === undefined) return [`${subject} lost ${field}`]
      const was_required = data.required?.includes(field) === true
      if (was_required && now.data.required?.includes(field) !== true) {
        return [`${subject} no longer always has ${field}`]
      }
      const same = grown(bare(shape), bare(there)) || grown(bare(shape), bare(anyText(there)))
      return same ? [] : [`${subject} changed ${field}`]
    })
    return [...moved, ...fields]
  })

/** Line width, as for all files. */
const columns_max = 100

/** JSON as the formatter writes it: an array of strings on one line if it fits. */
export const formatted = (value: unknown) =>
  `${JSON.stringify(value, undefined, 2)}\n`.replaceAll(
    /^( *"\w+": )\[\n([^[\]{}]*)\n *\](,?)$/gm,
    (whole, name: string, items: string, comma: string) => {
      const line = `${name}[${items.trim().replaceAll(/\n */g, " ")}]${comma}`
      return line.length <= columns_max ? line : whole
    },
  )

const typeOf = (shape: Shape): string => {
  const { type = "", enum: values, items, anyOf, additionalProperties } = shape
  if (values !== undefined) return values.map((value) => `\`${value}\``).join(", ")
  if (anyOf !== undefined) return anyOf.map(typeOf).join(" or ")
  if (items !== undefined) return `array of ${typeOf(items)}s`
  return type === "object" && additionalProperties ? "object of strings" : type
}

/** The section of the page that is generated from the schemas. */
export const typesSection = (all: ReadonlyArray<readonly [string, PublishedTypes]>) =>
  all
    .map(([service, types]) => {
      const sections = Object.entries(types).map(([type, { aggregate, subject, when, data }]) => {
        // The library's type covers any JSON Schema.
        const { properties = {}, required = [] } = Schema.toJsonSchemaDocument(data).schema as Shape
        const fields = Object.entries(properties).map(([field, shape]) => {
          const absent = required.includes(field) ? "" : ", may be absent"
          return `- \`${field}\` (${typeOf(shape)}${absent}): ${described(shape)}`
        })
        const bus = `events.${service}.${aggregate}.${type}`
        const where = `\`${bus}\`; the event's \`subject\` is ${subject}.`
        return [`#### ${type}`, "", when, `NATS subject: ${where}`, "", ...fields, ""].join("\n")
      })
      return [`### ${service}`, "", ...sections].join("\n")
    })
    .join("\n")
