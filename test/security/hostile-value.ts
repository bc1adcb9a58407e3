/** Values that a careful client never sends, and values that a schema allows, by fast-check. */
import fc from "fast-check"
import type { ApiDocument, JsonSchema } from "./api-document.ts"

const long = 20_000

/** Texts that have broken programs before. */
export const hostile_texts: ReadonlyArray<string> = [
  "",
  " ",
  "null",
  "true",
  "-1",
  "0",
  "00",
  "1e309",
  "NaN",
  "9007199254740993",
  "0x10",
  "\u0000",
  "a\u0000b",
  "\ud800",
  "\udfff\ud800",
  "\uffff",
  "\u202e",
  "e\u0301",
  "\u{1f600}",
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "length",
  "../../../etc/passwd",
  "..",
  ".",
  "/",
  "//",
  "\\..\\",
  "-rf",
  "--option=x",
  "@/etc/passwd",
  "a\r\nX-Injected: yes",
  "\n",
  "\t",
  "\u001b[2J",
  "%0d%0a",
  "%00",
  "%",
  "<img src=x onerror=alert(1)>",
  "'; DROP TABLE x; --",
  "$(id)",
  "{{7*7}}",
  "=1+1",
  "http://169.254.169.254/latest",
  "file:///etc/passwd",
  "1 ".repeat(500),
  "x".repeat(long),
]

const deep = (levels: number) => {
  let value: unknown = 1
  for (let level = 0; level < levels; level++) value = [value]
  return value
}

const hostile_others: ReadonlyArray<unknown> = [
  null,
  true,
  false,
  0,
  -0,
  -1,
  1,
  1.5,
  1e308,
  -1e308,
  2 ** 31,
  2 ** 53,
  2 ** 63,
  1e-320,
  [],
  {},
  [null],
  [[]],
  { "": "" },
  deep(200),
  Array.from({ length: long }, () => 0),
  JSON.parse('{"__proto__": {"admin": true}, "constructor": {"prototype": {"x": 1}}}'),
]

export const hostile = fc.oneof(
  fc.constantFrom(...hostile_texts),
  fc.constantFrom(...hostile_others),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.double(),
)

/** Values by field name, for fields that the document describes only as text. */
export interface Known {
  readonly ids: fc.Arbitrary<string>
  readonly fields: Readonly<Record<string, fc.Arbitrary<unknown>>>
}

const short = fc.oneof(
  fc.string({ unit: "binary", maxLength: 8 }),
  fc.constantFrom(...hostile_texts.filter(({ length }) => length < 100)),
)

const [past, future] = [new Date("2020-01-01"), new Date("2040-01-01")]

/** Fields for a tenant with this share and trust; the addresses all fail immediately. */
export const knownFields = (share_id: string, trust_id: string, project_id: string) => ({
  share_id: fc.constant(share_id),
  trust_id: fc.constant(trust_id),
  project_id: fc.constantFrom(project_id, null),
  endpoint: fc.constantFrom("http://127.0.0.1:1", "http://localhost:1/x", "http://[::1]:1"),
  url: fc.constantFrom("https://hooks.example.org/x", "https://127.0.0.1:1", "http://a"),
  schedule: fc.constantFrom("0 3 * * *", "*/15 * * * 1-5", "@daily", "61 * * * *"),
  timezone: fc.constantFrom("UTC", "Europe/Berlin", "Nowhere/At_all"),
  types: fc.constantFrom([], ["backup_completed"], ["no_such_event"]),
  services: fc.constantFrom([], ["share-protection"]),
  bucket: fc.constantFrom("backups-1", "B"),
  region: fc.constantFrom("eu-1", null),
  sub_path: fc.constantFrom("/", "/a/b", "/../a"),
  data: fc.base64String({ maxLength: 40 }),
  labels: fc.dictionary(short, short, { maxKeys: 3 }),
  after: fc.nat({ max: 3 }),
  as_of: fc.date({ min: past, max: future, noInvalidDate: true }).map((at) => at.toISOString()),
})

const nesting_max = 6
/** One value in this many is hostile. */
const tame = 14

const oftenOf = (usual: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: tame, arbitrary: usual }, { weight: 1, arbitrary: hostile })

const texts = ({ pattern, format }: JsonSchema): fc.Arbitrary<unknown> => {
  if (format === "uuid") return fc.uuid()
  if (format === "uri") return fc.webUrl()
  if (pattern === undefined) return fc.string({ maxLength: 30 })
  try {
    return fc.stringMatching(new RegExp(pattern, "u"))
  } catch {
    // A pattern that fast-check cannot generate strings for.
    return fc.string({ maxLength: 30 })
  }
}

/** Larger integers are not exact. */
const exact = 2 ** 53 - 1

const numbers = ({ type, minimum = -exact, maximum = exact }: JsonSchema) =>
  type === "integer"
    ? fc.integer({ min: Math.max(-exact, minimum), max: Math.min(exact, maximum) })
    : fc.double({ min: minimum, max: maximum, noNaN: true })

/** Values for a field or parameter of this name, and occasionally something else. */
export const namedValues = (
  document: Pick<ApiDocument, "resolved">,
  name: string,
  schema: JsonSchema,
  known: Known,
  nesting = 0,
): fc.Arbitrary<unknown> => {
  const { [name]: usual = /(^|_)id$/.test(name) ? known.ids : undefined } = known.fields
  return usual === undefined ? valuesOf(document, schema, known, nesting) : oftenOf(usual)
}

/** Values that the schema allows, occasionally replaced by something else at any depth. */
export const valuesOf = (
  document: Pick<ApiDocument, "resolved">,
  given: JsonSchema,
  known: Known,
  nesting = 0,
): fc.Arbitrary<unknown> => {
  const schema = document.resolved(given)
  const inner = (one: JsonSchema) => valuesOf(document, one, known, nesting + 1)
  const allowed = (): fc.Arbitrary<unknown> => {
    const choices = schema.anyOf ?? schema.oneOf ?? (schema.type === undefined && schema.allOf)
    if (nesting > nesting_max) return fc.constant(null)
    if (schema.const !== undefined) return fc.constant(schema.const)
    if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
    if (choices) return fc.oneof(...choices.map(inner))
    if (schema.type === undefined) return hostile
    switch (schema.type) {
      case "object": {
        const { properties = {}, required = [] } = schema
        const fields = Object.entries(properties).map(
          ([name, one]) => [name, namedValues(document, name, one, known, nesting + 1)] as const,
        )
        return fc.record(Object.fromEntries(fields), { requiredKeys: [...required] })
      }
      case "array":
        return fc.array(inner(schema.items ?? {}), { maxLength: 3 })
      case "string":
        return fc.oneof(texts(schema), known.ids)
      case "integer":
      case "number":
        return numbers(schema)
      case "boolean":
        return fc.boolean()
      case "null":
        return fc.constant(null)
      default:
        return hostile
    }
  }
  return oftenOf(allowed())
}
