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
      if (at < 1) throw failure("usage", `--${flag} is name=value, not ${text}`)
      return [text.slice(0, at), text.slice(at + 1)]
    }),
  )

const bodyOf = ({ method, body: fields = [] }: Operation, input: Input): JsonObject | undefined => {
  const { body: whole } = input
  if (whole !== undefined && !isObject(whole)) throw failure("usage", "--body is no JSON object")
  const set_fields = fields.filter(({ name }) => input.fields[name] !== undefined)
  const body = set_fields.reduce<JsonObject>(
    // Filtered above; every flag value is JSON.
    (object, { name }) => withMember(object, name, input.fields[name] as Json),
    whole ?? {},
  )
  const missing = fields.find(
    ({ name, is_required }) => is_required === true && memberAt(body, name) === undefined,
  )
  if (missing !== undefined) throw missingFlag(missing)
  if (set_fields.length > 0 || whole !== undefined) return body
  if (method === "PATCH") throw failure("usage", "It is not said what to change", "see --help")
  return undefined
}

const missingFlag = (field: Field) =>
  failure("usage", `--${flagOf(field)} is needed: ${field.what.toLowerCase()}`, "see --help")

/** Fills in the path's parameters. ClientFailed if a value would change the path's structure. */
export const pathOf = (template: string, values: Readonly<Record<string, string>>) =>
  argumentsOf(template).reduce((path, name) => {
    const value = values[name] ?? ""
    // URL parsing removes dot segments: `DELETE /v1/targets/..` would become `DELETE /v1/`.
    if (/^\.{0,2}$/.test(value)) throw failure("usage", `'${value}' is no ${name}`)
    return path.replace(`{${name}}`, encodeURIComponent(value))
  }, template)

/** The request for this input. ClientFailed if a required flag is missing. */
export const requestOf = (operation: Operation, input: Input): Request => {
  const { for_operators, method, query = [] } = operation
  const is_for_operators = input.for_operators === true && for_operators !== undefined
  const template = is_for_operators ? for_operators.path : operation.path
  const fields = [...query, ...(for_operators?.query ?? [])]
  const missing = fields.find(
    ({ name, is_required }) => is_required === true && input.fields[name] === undefined,
  )
  if (missing !== undefined) throw missingFlag(missing)
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
