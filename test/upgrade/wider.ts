/**
 * Whether a JSON Schema accepts everything that another one accepts, and still requires its
 * required fields: for schemas in our style, and strict about unknown forms.
 */

/** A part of a JSON Schema. */
export interface Form {
  readonly type?: string
  readonly enum?: ReadonlyArray<unknown>
  readonly anyOf?: ReadonlyArray<Form>
  readonly allOf?: ReadonlyArray<Form>
  readonly properties?: Readonly<Record<string, Form>>
  readonly required?: ReadonlyArray<string>
  readonly items?: Form
  readonly [key: string]: unknown
}

/** Annotations, which do not affect validation. */
const words: ReadonlySet<string> = new Set(["description", "title", "examples", "default"])

/** Limits: for the first group, a smaller value is wider; for the second, a larger one. */
const least: ReadonlySet<string> = new Set(["minimum", "minLength", "minItems", "minProperties"])
const most: ReadonlySet<string> = new Set(["maximum", "maxLength", "maxItems", "maxProperties"])

/** The schema with its `allOf` parts merged in; for a repeated keyword, the last value wins. */
const flat = (form: Form): Form => {
  const { allOf = [], ...rest } = form
  return Object.assign({}, ...allOf.map(flat), rest)
}

/** Whether a limit accepts at least as much as before. */
const isWide = (key: string, before: unknown, after: unknown) => {
  if (after === undefined) return true
  if (typeof before === "number" && typeof after === "number") {
    if (least.has(key)) return after <= before
    if (most.has(key)) return after >= before
  }
  return JSON.stringify(before) === JSON.stringify(after)
}

const alternatives = (form: Form): ReadonlyArray<Form> =>
  form.anyOf === undefined ? [form] : form.anyOf.map(flat).flatMap(alternatives)

const isType = (before: Form, after: Form) =>
  before.type === after.type || (before.type === "integer" && after.type === "number")

const tagOf = ({ properties }: Form) => JSON.stringify(properties?.type?.enum)

const objectFaults = (before: Form, after: Form, at: string): ReadonlyArray<string> => {
  const [had, has] = [new Set(before.required), new Set(after.required)]
  const gone = [...had].filter((field) => !has.has(field))
  const fresh = [...has].filter((field) => !had.has(field))
  const fields = Object.entries(before.properties ?? {}).flatMap(([field, form]) => {
    const now = after.properties?.[field]
    const where = `${at}.${field}`
    return now === undefined ? [`${where} is gone`] : faults(form, now, where)
  })
  return [
    ...fields,
    ...gone.map((field) => `${at}.${field} may be absent now`),
    ...fresh.map((field) => `${at}.${field} has to be there now`),
  ]
}

const structural: ReadonlySet<string> = new Set([
  "type",
  "enum",
  "properties",
  "required",
  "items",
  "anyOf",
  "allOf",
])

const oneFaults = (before: Form, after: Form, at: string): ReadonlyArray<string> => {
  if (!isType(before, after)) return [`${at} is ${after.type}, and was ${before.type}`]
  const values = after.enum ?? before.enum ?? []
  const lost = (before.enum ?? []).filter((value) => !values.includes(value))
  const open = after.enum !== undefined && before.enum === undefined
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  const limits = keys.filter((key) => !structural.has(key) && !words.has(key))
  return [
    ...lost.map((value) => `${at} takes ${JSON.stringify(value)} no more`),
    ...(open ? [`${at} took more than ${JSON.stringify(after.enum)}`] : []),
    ...limits
      .filter((key) => !isWide(key, before[key], after[key]))
      .map((key) => `${at} is narrower by ${key}`),
    ...(before.properties === undefined ? [] : objectFaults(before, after, at)),
    ...(before.items && after.items ? faults(before.items, after.items, `${at}[]`) : []),
    ...(!before.items && after.items ? [`${at} took any items`] : []),
  ]
}

/** The message types that the schema accepts. */
export const typesIn = (form: Form): ReadonlySet<string> =>
  new Set(
    alternatives(flat(form)).flatMap(({ properties }) =>
      (properties?.type?.enum ?? []).map(String),
    ),
  )

/** The types that `before` accepts and `after` rejects, or fields that are no longer required. */
export const faults = (before: Form, after: Form, at = ""): ReadonlyArray<string> => {
  const now = alternatives(flat(after))
  return alternatives(flat(before)).flatMap((one) => {
    const tagged = now.filter((other) => tagOf(one) !== undefined && tagOf(other) === tagOf(one))
    const candidates = tagged.length > 0 ? tagged : now.filter((other) => isType(one, other))
    const name = tagOf(one) === undefined ? at : `${at}${tagOf(one)}`
    if (candidates.length === 0) return [`${name || one.type} is gone`]
    const found = candidates.map((other) => oneFaults(one, other, name))
    return found.reduce((best, some) => (some.length < best.length ? some : best))
  })
}
