/** From what was typed to a request: path, query and body of an operation. */
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

/** What a flag gave: a text, a number, whether, several texts, or names with values. */
export type Given = string | number | boolean | ReadonlyArray<string> | Pairs

/** Texts by their names. */
export type Pairs = Readonly<Record<string, string>>

export interface Typed {
  /** Positional arguments by the names in the path. */
  readonly arguments: Readonly<Record<string, string>>
  /** By the field's name; absent where the flag was not given. */
  readonly fields: Readonly<Record<string, Given>>
  /** Of `--body`: the flags are laid over it. */
  readonly body?: Json | undefined
  readonly for_operators?: boolean
}

export interface Request {
  readonly method: Method
  readonly path: string
  readonly query: ReadonlyArray<readonly [string, string]>
  readonly body: JsonObject | undefined
}

/** `a=b` and more as an object. */
export const pairsOf = (texts: ReadonlyArray<string>, flag: string): Pairs =>
  Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf("=")
      if (at < 1) throw failure("usage", `--${flag} is name=value, not ${text}`)
      return [text.slice(0, at), text.slice(at + 1)]
    }),
  )

const bodyOf = ({ method, body: fields = [] }: Operation, typed: Typed): JsonObject | undefined => {
  const { body: whole } = typed
  if (whole !== undefined && !isObject(whole)) throw failure("usage", "--body is no JSON object")
  const given = fields.filter(({ name }) => typed.fields[name] !== undefined)
  const body = given.reduce<JsonObject>(
    // Just filtered; a flag gives what JSON has.
    (object, { name }) => withMember(object, name, typed.fields[name] as Json),
    whole ?? {},
  )
  const missing = fields.find(
    ({ name, is_required }) => is_required === true && memberAt(body, name) === undefined,
  )
  if (missing !== undefined) throw missingFlag(missing)
  if (given.length > 0 || whole !== undefined) return body
  if (method === "PATCH") throw failure("usage", "It is not said what to change", "see --help")
  return undefined
}

const missingFlag = (field: Field) =>
  failure("usage", `--${flagOf(field)} is needed: ${field.what.toLowerCase()}`, "see --help")

/** The path with its names filled in. ClientFailed where the outcome would be another's path. */
export const pathOf = (template: string, given: Readonly<Record<string, string>>) =>
  argumentsOf(template).reduce((path, name) => {
    const value = given[name] ?? ""
    // Addresses are shortened by such parts: `DELETE /v1/targets/..` would be `DELETE /v1/`.
    if (/^\.{0,2}$/.test(value)) throw failure("usage", `'${value}' is no ${name}`)
    return path.replace(`{${name}}`, encodeURIComponent(value))
  }, template)

/** The request of what was typed. ClientFailed where something that it needs was not. */
export const requestOf = (operation: Operation, typed: Typed): Request => {
  const { for_operators, method, query = [] } = operation
  const is_for_operators = typed.for_operators === true && for_operators !== undefined
  const template = is_for_operators ? for_operators.path : operation.path
  const fields = [...query, ...(for_operators?.query ?? [])]
  const missing = fields.find(
    ({ name, is_required }) => is_required === true && typed.fields[name] === undefined,
  )
  if (missing !== undefined) throw missingFlag(missing)
  return {
    method,
    path: pathOf(template, typed.arguments),
    query: fields.flatMap(({ name }) => {
      const value = typed.fields[name]
      return value === undefined
        ? []
        : [[name, typeof value === "object" ? toJson(value) : String(value)] as const]
    }),
    body: bodyOf(operation, typed),
  }
}

/** The path with its query. */
export const addressOf = (path: string, query: ReadonlyArray<readonly [string, string]>) => {
  const text = new URLSearchParams(query.map(([name, value]) => [name, value])).toString()
  return text === "" ? path : `${path}?${text}`
}
