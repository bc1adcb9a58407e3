/** Valid requests of an operation, and malicious ones, generated from a seed. */
import fc from "fast-check"
import type { ApiDocument, JsonSchema, Operation } from "./api-document.ts"
import { hostile_texts, type Known, namedValues, valuesOf } from "./hostile-value.ts"

export interface FuzzRequest {
  readonly method: string
  /** Includes the query. Ids from earlier responses are placeholders such as `~7~`. */
  readonly path: string
  readonly token: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
}

/** A placeholder for an id from an earlier response. */
export const id_place = /~(\d+)~/g
const id_places = 1000

/** Valid header values: Node's client sends no others. */
const sendable = hostile_texts.filter((text) => /^[\x20-\x7e]{0,3000}$/.test(text))

/** Headers that some part of the program uses, with hostile values. */
const headers: Readonly<Record<string, ReadonlyArray<string>>> = {
  accept: [
    "application/octet-stream",
    "text/html",
    "text/csv;q=2",
    "application/json;q=",
    ",,,",
    "image/png",
  ],
  "accept-encoding": ["gzip", "br;q=1, gzip;q=0", "identity;q=0, *;q=0", "x"],
  authorization: ["Bearer", "Bearer  a b", "Basic eA==", "bearer \u00e9"],
  "content-encoding": ["gzip", "identity", "br, gzip"],
  "content-type": ["text/plain", "application/json; charset=utf-16", "multipart/form-data", "a/b"],
  cookie: ["a=b; ".repeat(200)],
  expect: ["100-continue"],
  host: ["", "a b", "[::1", "evil.example.org"],
  "idempotency-key": ["k", "", "x".repeat(300), "a\u00e9"],
  "if-match": ["*", '"', 'W/"x"'],
  "if-modified-since": ["Thu, 01 Jan 1970 00:00:00 GMT", "yesterday"],
  "if-none-match": ["*", '"x", "y"', "x".repeat(4000)],
  "last-event-id": ["1", "-1", "1e9", "x"],
  origin: ["null", "https://evil.example.org"],
  range: [
    "bytes=0-0",
    "bytes=-0",
    "bytes=5-1",
    "bytes=0-1,3-4",
    "lines=1-2",
    "bytes=999999999999-",
  ],
  traceparent: ["00-0-0-01", `00-${"f".repeat(32)}-${"f".repeat(16)}-01`],
  "x-almanac-position": ["0", "1", "-1", "1e3", "99999999999999999999", "x"],
  "x-auth-token": ["x", "a b", "t".repeat(5000)],
  "x-forwarded-for": ["127.0.0.1"],
  "x-http-method-override": ["DELETE"],
  "x-request-id": ["a", "x".repeat(1000), "\u00e9", "a;b=c"],
}

const header = fc
  .constantFrom(...Object.keys(headers))
  .chain((name) =>
    fc.tuple(fc.constant(name), fc.constantFrom(...(headers[name] ?? []), ...sendable)),
  )

/** Most requests have none: a request rejected for its header does not reach a handler. */
const headersOf = fc.oneof(
  { weight: 5, arbitrary: fc.constant([]) },
  { weight: 1, arbitrary: fc.array(header, { maxLength: 3 }) },
)

/** Ways to corrupt a generated body. */
const spoilers: ReadonlyArray<(text: string) => string | Buffer> = [
  (text) => text.slice(0, -1),
  (text) => `${text}}`,
  (text) => `\ufeff${text}`,
  (text) => text.replace("{", '{"name":1,"id":2,"name":{},'),
  (text) => text.replace(/:\s*[\d"]/, (found) => `: 1e400, "x"${found}`),
  (text) => Buffer.concat([Buffer.from(text.slice(0, -2)), Buffer.of(0xff, 0xc0, 0x80)]),
  () => "[".repeat(100_000),
  () => `${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`,
  () => "",
  () => "\u0000",
  () => "null",
]

const multipart = (part: string, bytes: Buffer) =>
  Buffer.concat([
    Buffer.from(`--fuzz\r\nContent-Disposition: form-data; ${part}\r\n\r\n`),
    bytes,
    Buffer.from("\r\n--fuzz--\r\n"),
  ])

const parts = [
  'name="image"; filename="leaf.png"\r\nContent-Type: image/png',
  'name="image"; filename="../../x"\r\nContent-Type: text/html',
  'name="image"',
  'name="\u0000"; filename="a"',
  "name",
]

interface Body {
  readonly type: string
  readonly bytes: Buffer
}

const jsonBody = (value: unknown, spoiler: number): Body => {
  const text = JSON.stringify(value) ?? ""
  const spoilt = spoilers[spoiler]?.(text) ?? text
  return { type: "application/json", bytes: Buffer.from(spoilt) }
}

const bodyOf = (
  document: ApiDocument,
  { requestBody }: Operation,
  known: Known,
): fc.Arbitrary<Body | undefined> => {
  const content = requestBody?.content
  if (content === undefined) return fc.constant(undefined)
  const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array))
  const schema: JsonSchema = content["application/json"]?.schema ?? {}
  // Five of six bodies stay intact.
  const spoiler = fc.nat({ max: 6 * spoilers.length })
  const json = fc.tuple(valuesOf(document, schema, known), spoiler).map(([value, n]) => {
    return jsonBody(value, n)
  })
  const others = Object.keys(content).filter((type) => !type.startsWith("application/json"))
  const raw = others.map((type) =>
    fc.tuple(bytes, fc.constantFrom(...parts)).map(([some, part]): Body => {
      if (!type.startsWith("multipart/")) return { type, bytes: some }
      return { type: `${type}; boundary=fuzz`, bytes: multipart(part, some) }
    }),
  )
  return fc.oneof(...("application/json" in content ? [json] : []), ...raw)
}

const parametersOf = (
  document: ApiDocument,
  { parameters = [] }: Operation,
  place: string,
  known: Known,
) =>
  fc.tuple(
    ...parameters
      .filter((parameter) => parameter.in === place)
      .map(({ name, required, schema }) =>
        fc
          .option(
            fc.oneof(
              { weight: 8, arbitrary: namedValues(document, name, schema, known) },
              known.ids,
              fc.constantFrom(...hostile_texts),
            ),
            {
              freq: required === true ? 30 : 2,
            },
          )
          .map((value) => ({ name, value: value === null ? undefined : textOf(value) })),
      ),
  )

const textOf = (value: unknown) =>
  typeof value === "string" ? value : (JSON.stringify(value) ?? "undefined")

/** Encodes a path or query; a lone surrogate has no percent-encoding and becomes U+FFFD. */
const escaped = (text: string) => encodeURIComponent(text.toWellFormed())

/** Escapes that a server may decode incorrectly, twice, or not at all. */
const odd_escapes = ["%ff", "%2e%2e%2f", "%00", "%", "%u0041", "%c0%af", ";a=b", "%252e"]

const segment = (value: string | undefined) => escaped(value || "0").slice(0, 3000)

/** Requests to one operation. `tokens` are the callers; the first is the most frequent. */
export const requestsTo = (
  document: ApiDocument,
  operation: Operation,
  tokens: ReadonlyArray<string>,
  fields: Known["fields"],
): fc.Arbitrary<FuzzRequest> => {
  const known: Known = { ids: fc.nat({ max: id_places }).map((n) => `~${n}~`), fields }
  const [first = "", ...others] = tokens
  const odd = fc.oneof({ weight: 30, arbitrary: fc.constant("") }, fc.constantFrom(...odd_escapes))
  return fc
    .record({
      token: fc.oneof(
        { weight: 6, arbitrary: fc.constant(first) },
        { weight: 1, arbitrary: fc.constantFrom(...others) },
      ),
      path: parametersOf(document, operation, "path", known),
      query: parametersOf(document, operation, "query", known),
      twice: fc.nat({ max: 9 }),
      headers: headersOf,
      body: bodyOf(document, operation, known),
      odd,
    })
    .map(({ token, path, query, twice, headers, body, odd }) => {
      const filled = path.reduce(
        (text, { name, value }) => text.replace(`{${name}}`, () => segment(value) + odd),
        operation.path,
      )
      const pairs = query.flatMap(({ name, value }) =>
        value === undefined ? [] : [`${escaped(name)}=${escaped(value).slice(0, 3000)}`],
      )
      const parameters = twice === 0 ? [...pairs, ...pairs, "unknown=1"] : pairs
      const type = body === undefined ? {} : { "content-type": body.type }
      return {
        method: operation.method,
        token,
        path: parameters.length === 0 ? filled : `${filled}?${parameters.join("&")}`,
        headers: { ...type, ...Object.fromEntries(headers) },
        ...(body === undefined ? {} : { body: body.bytes }),
      }
    })
}
