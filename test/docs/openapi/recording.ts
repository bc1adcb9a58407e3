/**
 * Records examples of operations from responses of a server, with values that are the same on every
 * run: ids, times, secrets and positions are replaced.
 */
import { existsSync, readFileSync } from "node:fs"
import type { Example } from "#gateway/reference.ts"
import type { Document } from "./gaps.ts"

export type Examples = Readonly<Record<string, Example>>

/** A request with its response, as a client saw them. */
export interface Exchange {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly request?: unknown
  readonly status: number
  readonly response: unknown
}

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g
const time = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g
/** Nanoseconds since 1970, which a number cannot hold exactly. */
const nanoseconds = /\b1[78]\d{17}\b/g
const example_ns = 1_795_176_000_000_000_000
const address = /127\.0\.0\.1:\d+/g

/** Fields whose values are secret, or as good as one. */
const secrets: Readonly<Record<string, string>> = {
  token: "EXAMPLE-TOKEN",
  secret: "whsec_EXAMPLE",
  ticket: "EXAMPLE-TICKET",
  payload: "EXAMPLE-SECRET",
}

/** Maximum number of items of a list in an example. */
const items_max = 2

/** Replaces changing values by readable ones; the same value always becomes the same one. */
const normalizer = () => {
  const ids = new Map<string, string>()
  const idOf = (id: string) => {
    const known = ids.get(id) ?? `01990000-0000-7000-8000-${String(ids.size + 1).padStart(12, "0")}`
    ids.set(id, known)
    return known
  }
  const text = (value: string) =>
    value
      .replaceAll(uuid, idOf)
      .replaceAll(time, "2026-11-20T12:00:00.000Z")
      .replaceAll(nanoseconds, String(example_ns))
      .replaceAll(address, "almanac.example.org")
  const normal = (value: unknown, name = ""): unknown => {
    if (typeof value === "string") return secrets[name] ?? text(value)
    if (typeof value === "number" && value > Number.MAX_SAFE_INTEGER) return example_ns
    if (Array.isArray(value)) return value.slice(0, items_max).map((one) => normal(one))
    if (typeof value !== "object" || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => [text(key), normal(one, key)]),
    )
  }
  return normal
}

/** The paths of a document, to find the operation of a request. */
const operationsOf = (document: Document) =>
  Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, "([^/]+)")}$`),
      operation,
    })),
  )

/** A value of the query as its schema declares it. */
const typed = (value: string, schema: { readonly type?: unknown } | undefined) => {
  if (schema?.type === "integer" || schema?.type === "number") return Number(value)
  return schema?.type === "boolean" ? value === "true" : value
}

/** Collects the first response of each status of each operation. */
export const recorder = (document: Document) => {
  const operations = operationsOf(document)
  const normal = normalizer()
  const examples: Record<string, Example> = {}

  const record = ({ method, path, headers = {}, request, status, response }: Exchange) => {
    const url = new URL(path, "http://almanac")
    const fits = (one: (typeof operations)[number]) =>
      one.method === method && one.pattern.test(url.pathname)
    // A literal path is preferred to one with parameters.
    const found = operations.filter(fits).toSorted((a, b) => literal(b.path) - literal(a.path))[0]
    if (found === undefined) return
    const key = `${method} ${found.path}`
    const known = examples[key]
    const text = String(status)
    if (known?.responses !== undefined && text in known.responses) return
    const is_first_success = status < 400 && !hasSuccess(known)
    const values = found.pattern.exec(url.pathname)?.slice(1) ?? []
    const names = [...found.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name)
    const sent = [
      ...names.map((name, index) => [name, decodeURIComponent(values[index] ?? "")] as const),
      ...url.searchParams,
      ...Object.entries(headers),
    ]
    const parameters = sent.map(([name, value]) => {
      const schema = found.operation.parameters.find((one) => one.name === name)?.schema
      return [name, typed(value, schema)] as const
    })
    examples[key] = {
      ...known,
      ...((known === undefined || is_first_success) && {
        ...(parameters.length > 0 && {
          parameters: normal(Object.fromEntries(parameters)) as object,
        }),
        ...(request !== undefined && { request: normal(request) }),
      }),
      responses: { ...known?.responses, ...(response !== "" && { [text]: normal(response) }) },
    } as Example
  }
  return { record, examples }
}

const literal = (path: string) => path.replaceAll(/\{\w+\}/g, "").length

const hasSuccess = (example: Example | undefined) =>
  Object.keys(example?.responses ?? {}).some((status) => status < "400")

/** The names and types of a value. Null fits any type, and an empty list fits any list. */
const isAlike = (one: unknown, other: unknown): boolean => {
  if (one === null || other === null) return true
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === 0 || other.length === 0 || isAlike(one[0], other[0])
  }
  if (typeof one !== "object" || typeof other !== "object") return typeof one === typeof other
  const [a, b] = [
    one as Readonly<Record<string, unknown>>,
    other as Readonly<Record<string, unknown>>,
  ]
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...names].every((name) => name in a && name in b && isAlike(a[name], b[name]))
}

/**
 * The text of the file of examples: stored examples that still have the names and types of the
 * recorded ones are kept, so that values that differ by run change nothing.
 */
export const fileText = (path: string, recorded: Examples) => {
  const stored: Examples = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : {}
  const kept = Object.entries(recorded)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, example]) => {
      const before = stored[key]
      return [key, before !== undefined && isAlike(before, example) ? before : example] as const
    })
  return `${JSON.stringify(Object.fromEntries(kept), undefined, 1)}\n`
}
