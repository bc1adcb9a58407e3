/**
 * One check of a policy rule, `kind:match`: what is known of the caller against the target.
 *
 * Source: document 2 §5 (oslo.policy rules).
 */

/** What is known of one side: values by name, values of values, and lists of which any counts. */
export type Attributes = Readonly<Record<string, unknown>>

/** Rules by name. */
export type Checks = ReadonlyMap<string, { readonly check: Check }>

/** True, false, or undefined: it cannot be said, and that denies, whatever stands around it. */
export type Check = (asked: Asked) => boolean | undefined

export interface Asked {
  readonly rules: Checks
  readonly target: Attributes
  readonly credentials: Attributes
  /** Rules on the way here. */
  readonly within: ReadonlyArray<string>
}

/** A word that is no check, what stands in for it, and why. */
export interface Unfit {
  readonly check: Check
  readonly problem: string
}

export const always: Check = () => true
export const never: Check = () => false

/** The rule that stands in for one that is not there. */
const default_rule = "default"

/** What the rule `name` says; a rule that leads to itself cannot be said. */
export const ruleCheck =
  (name: string): Check =>
  (asked) => {
    const found = asked.rules.get(name) ?? asked.rules.get(default_rule)
    if (found === undefined) return false
    if (asked.within.includes(name)) return undefined
    return found.check({ ...asked, within: [...asked.within, name] })
  }

/** Reads one check. */
export const checkOf = (word: string): Check | Unfit => {
  if (word === "@") return always
  if (word === "!" || word === "") return never
  const colon = word.indexOf(":")
  if (colon < 0) return { check: never, problem: `${word} is no check` }
  const kind = word.slice(0, colon)
  const match = word.slice(colon + 1)
  if (kind === "rule") return ruleCheck(match)
  const stops = (problem: string): Unfit => ({ check: () => undefined, problem })
  if (kind === "http" || kind === "https") return stops(`${word} asks a remote server`)
  const template = templateOf(match)
  if (template === undefined) return stops(`${word} has a % that is not of %(name)s`)
  if (kind === "role") return roleCheck(template)
  const literal = literalOf(kind)
  if (literal !== undefined) return ({ target }) => template(target) === literal
  if (isPath(kind)) return pathCheck(kind.split("."), template)
  const check: Check = ({ target }) => (template(target) === undefined ? false : undefined)
  return { check, problem: `${kind} is no name or value` }
}

/** The text with the target's values in it; undefined where the target lacks one. */
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
      else if (Object.hasOwn(target, name)) text += python(target[name])
      else return undefined
    }
    return text
  }
}

/** Values are compared as the texts that Python makes of them. */
const python = (value: unknown) => {
  if (value === null || value === undefined) return "None"
  if (typeof value === "boolean") return value ? "True" : "False"
  return typeof value === "string" ? value : JSON.stringify(value)
}

/** The text of a Python value that stands for itself. */
const literalOf = (kind: string) => {
  if (/^(True|False|None)$/.test(kind)) return kind
  if (/^[+-]?(0|[1-9]\d*)$/.test(kind)) return String(BigInt(kind))
  return /^(["'])([^"'\\]*)\1$/.exec(kind)?.[2]
}

/** Words of Python's own: oslo.policy stops at them. */
const keywords = new Set(
  (
    "and as assert async await break class continue def del elif else except finally for from " +
    "global if import in is lambda nonlocal not or pass raise return try while with yield"
  ).split(" "),
)

/** Names with dots between them; what a hyphen joins is one name. */
const isPath = (kind: string) =>
  /^[^\W\d]\w*([.-][^\W\d]\w*)*$/.test(kind) &&
  !kind.split(/[.-]/).some((name) => keywords.has(name))

const roleCheck =
  (template: Template): Check =>
  ({ target, credentials }) => {
    const role = template(target)?.toLowerCase()
    const { roles } = credentials
    if (role === undefined || !Array.isArray(roles)) return false
    return roles.some((held) => python(held).toLowerCase() === role)
  }

const pathCheck =
  (path: ReadonlyArray<string>, template: Template): Check =>
  ({ target, credentials }) => {
    const wanted = template(target)
    return wanted === undefined ? false : isAt(credentials, path, wanted)
  }

const isAt = (value: unknown, path: ReadonlyArray<string>, wanted: string): boolean | undefined => {
  const [name, ...rest] = path
  if (name === undefined) return python(value) === wanted
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined
  if (!Object.hasOwn(value, name)) return false
  const next: unknown = Reflect.get(value, name)
  if (!Array.isArray(next)) return isAt(next, rest, wanted)
  for (const item of next) {
    const is_there = isAt(item, rest, wanted)
    if (is_there !== false) return is_there
  }
  return false
}
