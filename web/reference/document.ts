/** The parts of the OpenAPI document that the page shows, and its operations by section. */

export interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly title?: string
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly prefixItems?: readonly Schema[]
  readonly additionalProperties?: boolean | Schema
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly format?: string
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly exclusiveMaximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly default?: unknown
  readonly examples?: readonly unknown[]
  readonly deprecated?: boolean
}

interface Example {
  readonly summary?: string
  readonly value?: unknown
}

export interface Media {
  readonly schema?: Schema
  readonly example?: unknown
  readonly examples?: Readonly<Record<string, Example>>
}

export interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly description?: string
  readonly schema?: Schema
  readonly example?: unknown
}

export interface Answer {
  readonly description?: string
  readonly content?: Readonly<Record<string, Media>>
}

interface Described {
  readonly operationId?: string
  readonly tags?: readonly string[]
  readonly summary?: string
  readonly description?: string
  readonly deprecated?: boolean
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: Answer & { readonly required?: boolean }
  readonly responses?: Readonly<Record<string, Answer>>
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[]
}

interface SecurityScheme {
  readonly type: string
  readonly description?: string
  readonly scheme?: string
  readonly in?: string
  readonly name?: string
}

export interface OpenApi {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string }
  readonly tags?: readonly { readonly name: string; readonly description?: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>
  readonly components?: {
    readonly schemas?: Readonly<Record<string, Schema>>
    readonly securitySchemes?: Readonly<Record<string, SecurityScheme>>
  }
}

export interface Operation extends Described {
  /** Its address on the page, without `#`: `blobs/put`. */
  readonly anchor: string
  readonly title: string
  readonly method: string
  readonly path: string
  /** The text that the filter searches, in lower case. */
  readonly text: string
}

export interface Section {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly operations: readonly Operation[]
}

/** Methods of a path item; its other members are not operations. */
const methods = new Set(["get", "put", "post", "delete", "patch", "head", "options", "trace"])

const idOf = ({ operationId = "" }: Described, tag: string, method: string, path: string) => {
  const id = operationId.startsWith(tag) ? operationId.slice(tag.length) : operationId
  return id.replace(/^[^a-z0-9]+/i, "") || `${method}${path.replaceAll(/[^a-z0-9]+/gi, "-")}`
}

const operationOf = (tag: string, path: string, method: string, own: Described): Operation => {
  const title = own.summary ?? `${method.toUpperCase()} ${path}`
  const words = [method, path, title, own.operationId, own.description]
  return {
    ...own,
    anchor: `${tag}/${idOf(own, tag, method, path)}`,
    title,
    method: method.toUpperCase(),
    path,
    text: words.join(" ").toLowerCase(),
  }
}

const titleOf = (name: string) => {
  const words = name.replaceAll(/[-_]/g, " ")
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** The operations by their first tag, in the order of the document's tags. */
export const sectionsOf = (document: OpenApi): readonly Section[] => {
  const all = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([method]) => methods.has(method))
      .map(([method, own]) => {
        const tag = own.tags?.[0] ?? "other"
        return [tag, operationOf(tag, path, method, own)] as const
      }),
  )
  const by_tag = Map.groupBy(all, ([tag]) => tag)
  const described = new Map(document.tags?.map((tag) => [tag.name, tag.description ?? ""]))
  const names = [...new Set([...described.keys(), ...by_tag.keys()])]
  return names.flatMap((name) => {
    const operations = by_tag.get(name)?.map(([, operation]) => operation) ?? []
    const description = described.get(name) ?? ""
    return operations.length === 0 ? [] : [{ name, title: titleOf(name), description, operations }]
  })
}

/** The operations of a section that contain every word of the filter. */
export const matching = (section: Section, filter: string): readonly Operation[] => {
  const words = filter.toLowerCase().split(/\s+/)
  return section.operations.filter(({ text }) => words.every((word) => text.includes(word)))
}
