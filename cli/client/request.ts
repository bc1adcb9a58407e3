/** Builds an operation's request from the command line: path, query and body. */
import { failure } from "#cli/client/failure.ts"
import {
  isObject,
  type Json,
  type JsonObject,
  memberAt,
  toJson,
  withMember,
} from "#cli/client/json.ts"
import {
  argumentsOf,
  type Field,
  flagOf,
  type Method,
  type Operation,
} from "#cli/client/operation.ts"

/** Value of a flag: a string, number, boolean, list of strings, or name-value pairs. */
export type FlagValue = string | number | boolean | ReadonlyArray<string> | Pairs

/** Name-value pairs. */
export type Pairs = Readonly<Record<string, string>>

export interface Input {
  /** Positional arguments by their names in the path. */
  readonly arguments: Readonly<Record<string, string>>
  /** Flag values by field name; absent without the flag. */
  readonly fields: Readonly<Record<string, FlagValue>>
  /** Value of `--body`; flags override its members. */
  readonly body?: Json | undefined
  readonly for_operators?: boolean
}

export interface Request {
  readonly method: Method
  readonly path: string
  readonly query: ReadonlyArray<readonly [string, string]>
  readonly body: JsonObject | undefined
}

/** Parses `name=value` texts into an object. */
export const pairsOf = (texts: ReadonlyArray<string>, flag: string): Pairs =>
  Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf("=")
      if (at < 1) throw failure("usage", `--${flag} ${text}: expected name=value`)
      return [text.slice(0, at), text.slice(at + 1)]
    }),
  )

const bodyOf = (operation: Operation, input: Input): JsonObject | undefined => {
  const { method, body: fields = [] } = operation
  const { body: whole } = input
  if (whole !== undefined && !isObject(whole)) throw failure("usage", "--body is not a JSON object")
  const set_fields = fields.filter(({ name }) => input.fields[name] !== undefined)
  const body = set_fields.reduce<JsonObject>(
    // Filtered above; every flag value is JSON.
    (object, { name }) => withMember(object, name, input.fields[name] as Json),
    whole ?? {},
  )
  requireFields(fields, (name) => memberAt(body, name) !== undefined, operation.example)
  if (set_fields.length > 0 || whole !== undefined) return body
  if (method === "PATCH") throw nothingToChange()
  return undefined
}

const nothingToChange = () =>
  failure("usage", "Nothing to change: no flag sets a new value", "--help lists the flags")

/**
 * Fails with all missing flags at once. Of two shapes of the API it lists those of the one that
 * more flags were given for, by default of Shape A.
 */
const requireFields = (
  fields: ReadonlyArray<Field>,
  isGiven: (name: string) => boolean,
  example: string | undefined,
) => {
  const neededIn = (shape: "A" | "B") => {
    const needed = fields.filter(({ required_in = [] }) => required_in.includes(shape))
    const missing = needed.filter(({ name }) => !isGiven(name))
    return { given: needed.length - missing.length, missing }
  }
  const [a, b] = [neededIn("A"), neededIn("B")]
  if (a.missing.length === 0 || b.missing.length === 0) return
  const listed = (missing: ReadonlyArray<Field>) =>
    missing.map((field) => `--${flagOf(field)}`).join(", ")
  const [chosen, other] = b.given > a.given ? [b, a] : [a, b]
  const flags = listed(chosen.missing)
  const is_either = a.given === b.given && listed(other.missing) !== flags
  const shape_b = is_either ? `, or in Shape B ${listed(other.missing)}` : ""
  const what = chosen.missing.length === 1 ? "Missing required flag" : "Missing required flags"
  throw failure("usage", `${what}: ${flags}${shape_b}`, example ?? "--help lists all flags")
}

/** Fails if a required flag of the operation is missing; for a command line without `--body`. */
export const requireFlags = (operation: Operation, fields: Input["fields"]) => {
  const { query = [], body = [], method, example } = operation
  requireFields([...query, ...body], (name) => fields[name] !== undefined, example)
  const is_change = method === "PATCH" && body.length > 0
  if (is_change && body.every(({ name }) => fields[name] === undefined)) throw nothingToChange()
}

/** Fills in the path's parameters. ClientFailed if a value would change the path's structure. */
export const pathOf = (template: string, values: Readonly<Record<string, string>>) =>
  argumentsOf(template).reduce((path, name) => {
    const value = values[name] ?? ""
    // URL parsing removes dot segments: `DELETE /v1/targets/..` would become `DELETE /v1/`.
    if (/^\.{0,2}$/.test(value))
      throw failure("usage", `'${value}' is not a valid ${name.replaceAll("_", " ")}`)
    return path.replace(`{${name}}`, encodeURIComponent(value))
  }, template)

/** The request for this input. ClientFailed if a required flag is missing. */
export const requestOf = (operation: Operation, input: Input): Request => {
  const { for_operators, method, query = [] } = operation
  const is_for_operators = input.for_operators === true && for_operators !== undefined
  const template = is_for_operators ? for_operators.path : operation.path
  const fields = [...query, ...(for_operators?.query ?? [])]
  requireFields(fields, (name) => input.fields[name] !== undefined, operation.example)
  return {
    method,
    path: pathOf(template, input.arguments),
    query: fields.flatMap(({ name }) => {
      const value = input.fields[name]
      return value === undefined
        ? []
        : [[name, typeof value === "object" ? toJson(value) : String(value)] as const]
    }),
    body: bodyOf(operation, input),
  }
}

/** The path with its query. */
export const addressOf = (path: string, query: ReadonlyArray<readonly [string, string]>) => {
  const text = new URLSearchParams(query.map(([name, value]) => [name, value])).toString()
  return text === "" ? path : `${path}?${text}`
}
