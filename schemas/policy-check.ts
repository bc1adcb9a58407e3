/**
 * Parses a single check of a policy rule, `kind:match`, which compares a credential with a value of
 * the target.
 *
 * Source: document 2 §5 (oslo.policy rules).
 */

/** Credentials or a target: values by name, nested, with lists of which any item may match. */
export type Attributes = Readonly<Record<string, unknown>>

/** Rules by name. */
export type Checks = ReadonlyMap<string, { readonly check: Check }>

/** True, false, or undefined if the check cannot be evaluated, which denies the whole rule. */
export type Check = (evaluation: Evaluation) => boolean | undefined

export interface Evaluation {
  readonly rules: Checks
  readonly target: Attributes
  readonly credentials: Attributes
  /** Names of the rules that are being evaluated. */
  readonly evaluating: ReadonlyArray<string>
}

/** A substitute for a word that is not a valid check, and the reason. */
export interface InvalidCheck {
  readonly check: Check
  readonly problem: string
}

export const always: Check = () => true
export const never: Check = () => false

/** The rule that replaces missing ones. */
const default_rule = "default"

/** Evaluates the rule `name`. A rule that refers to itself cannot be evaluated. */
export const ruleCheck =
  (name: string): Check =>
  (asked) => {
    const found = asked.rules.get(name) ?? asked.rules.get(default_rule)
    if (found === undefined) return false
    if (asked.evaluating.includes(name)) return undefined
    return found.check({ ...asked, evaluating: [...asked.evaluating, name] })
  }

/** Parses one check. */
export const checkOf = (word: string): Check | InvalidCheck => {
  if (word === "@") return always
  if (word === "!" || word === "") return never
  const colon = word.indexOf(":")
  if (colon < 0) return { check: never, problem: `${word} is not a check (kind:match, @ or !)` }
  const kind = word.slice(0, colon)
  const match = word.slice(colon + 1)
  if (kind === "rule") return ruleCheck(match)
  const unevaluable = (problem: string): InvalidCheck => ({ check: () => undefined, problem })
  if (kind === "http" || kind === "https")
    return unevaluable(`${word} queries a remote server, which is not supported`)
  const template = templateOf(match)
  if (template === undefined)
    return unevaluable(`${word} contains a % that is not part of %(name)s`)
  if (kind === "role") return roleCheck(template)
  const literal = literalOf(kind)
  if (literal !== undefined) return ({ target }) => template(target) === literal
  if (isPath(kind)) return pathCheck(kind.split("."), template)
  const check: Check = ({ target }) => (template(target) === undefined ? false : undefined)
  return { check, problem: `${kind} is neither an attribute name nor a literal` }
}

/** Inserts the target's values into the text; undefined if the target lacks one. */
type Template = (target: Attributes) => string | undefined

const templateOf = (match: string): Template | undefined => {
  const parts = match.split(/(%%|%\([^()]*\)s)/)
  if (parts.some((part, n) => n % 2 === 0 && part.includes("%"))) return undefined
  return (target) => {
    let text = ""
    for (const [n, part] of parts.entries()) {
      const name = part.slice("%(".length, -")s".length)
      if (n % 2 === 0) text += part
      else if (part === "%%") text += "%"
      else if (Object.hasOwn(target, name)) text += pythonText(target[name])
      else return undefined
    }
    return text
  }
}

/** Values are compared by their Python representations. */
const pythonText = (value: unknown) => {
  if (value === null || value === undefined) return "None"
  if (typeof value === "boolean") return value ? "True" : "False"
  return typeof value === "string" ? value : JSON.stringify(value)
}

/** The representation of a Python literal. */
const literalOf = (kind: string) => {
  if (/^(True|False|None)$/.test(kind)) return kind
  if (/^[+-]?(0|[1-9]\d*)$/.test(kind)) return String(BigInt(kind))
  return /^(["'])([^"'\\]*)\1$/.exec(kind)?.[2]
}

/** Python keywords, on which oslo.policy fails. */
const keywords = new Set(
  (
    "and as assert async await break class continue def del elif else except finally for from " +
    "global if import in is lambda nonlocal not or pass raise return try while with yield"
  ).split(" "),
)

/** Dotted names; hyphens are part of a name. */
const isPath = (kind: string) =>
  /^[^\W\d]\w*([.-][^\W\d]\w*)*$/.test(kind) &&
  !kind.split(/[.-]/).some((name) => keywords.has(name))

const roleCheck =
  (template: Template): Check =>
  ({ target, credentials }) => {
    const role = template(target)?.toLowerCase()
    const { roles } = credentials
    if (role === undefined || !Array.isArray(roles)) return false
    return roles.some((held) => pythonText(held).toLowerCase() === role)
  }

const pathCheck =
  (path: ReadonlyArray<string>, template: Template): Check =>
  ({ target, credentials }) => {
    const expected = template(target)
    return expected === undefined ? false : matchesAt(credentials, path, expected)
  }

const matchesAt = (
  value: unknown,
  path: ReadonlyArray<string>,
  expected: string,
): boolean | undefined => {
  const [name, ...rest] = path
  if (name === undefined) return pythonText(value) === expected
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined
  if (!Object.hasOwn(value, name)) return false
  const next: unknown = Reflect.get(value, name)
  if (!Array.isArray(next)) return matchesAt(next, rest, expected)
  for (const item of next) {
    const matches = matchesAt(item, rest, expected)
    if (matches !== false) return matches
  }
  return false
}
