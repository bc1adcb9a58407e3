/**
 * Authorization rules in the language of oslo.policy, which operators may change.
 *
 * Results equal those of oslo.policy 4.0.0, except that a rule denies if oslo.policy raises an
 * exception or calls a remote server. Source: document 2 §5; DECISIONS, document 2, default policy
 * rules.
 */
import {
  type Attributes,
  always,
  type Check,
  checkOf,
  never,
  ruleCheck,
} from "#schemas/policy-check.ts"

/** A text, or the older form: a list of alternatives, each a list of checks that must all hold. */
export type Rule = string | ReadonlyArray<string | ReadonlyArray<string>>

/** A parsed rule. */
export interface ParsedRule {
  readonly check: Check
  /** The error in the rule, for the operator; the rule, or a part of it, then denies. */
  readonly problem?: string
}

/** Parsed rules by name. */
export type Rules = ReadonlyMap<string, ParsedRule>

/** Whether the rule `name` allows these credentials to act on the target. */
export const allows = (rules: Rules, name: string, target: Attributes, credentials: Attributes) =>
  ruleCheck(name)({ rules, target, credentials, evaluating: [] }) === true

/** Parses a rule. An empty rule allows; an unreadable one denies and has a problem. */
export const parseRule = (rule: Rule): ParsedRule => {
  const problems: Array<string> = []
  const read = (word: string) => {
    const check = checkOf(word)
    if (typeof check === "function") return check
    problems.push(check.problem)
    return check.check
  }
  const check = typeof rule === "string" ? parseText(rule, read) : parseList(rule, read)
  if (check === undefined) return { check: never, problem: "its syntax is invalid" }
  const [problem] = problems
  return problem === undefined ? { check } : { check, problem }
}

type Read = (word: string) => Check

const parseList = (rule: Exclude<Rule, string>, read: Read): Check => {
  if (rule.length === 0) return always
  const alternatives = rule.filter((inner) => inner.length > 0)
  return any(
    alternatives.map((inner) => (typeof inner === "string" ? read(inner) : all(inner.map(read)))),
  )
}

type Sign = "(" | ")" | "and" | "or" | "not"
/** A quoted text is a token that is valid nowhere. */
type Token = Sign | "quoted" | Check

/** Maximum number of parentheses in a rule; people write two or three. */
const parentheses_max = 100

/** `or` has the lowest precedence, `not` the highest; undefined if the rule is malformed. */
const parseText = (rule: string, read: Read): Check | undefined => {
  if (rule === "") return always
  const tokens = rule.split(/\s+/).flatMap((word) => tokensOf(word, read))
  if (tokens.filter((token) => token === "(").length > parentheses_max) return undefined
  let at = 0
  const take = (sign: Sign) => {
    const is_match = tokens[at] === sign
    if (is_match) at++
    return is_match
  }
  const joined = (sign: Sign, part: () => Check | undefined, join: typeof all) => {
    const checks: Array<Check> = []
    do {
      const check = part()
      if (check === undefined) return undefined
      checks.push(check)
    } while (take(sign))
    return join(checks)
  }
  const whole = (): Check | undefined => joined("or", () => joined("and", one, all), any)
  const one = () => {
    let is_negated = false
    while (take("not")) is_negated = !is_negated
    const check = take("(") ? inside() : word()
    return check !== undefined && is_negated ? negated(check) : check
  }
  const inside = () => {
    const check = whole()
    return take(")") ? check : undefined
  }
  const word = () => {
    const token = tokens[at++]
    return typeof token === "function" ? token : undefined
  }
  const parsed = whole()
  return at === tokens.length ? parsed : undefined
}

const signs = new Map<string, Sign>([
  ["and", "and"],
  ["or", "or"],
  ["not", "not"],
])

/** Parentheses count only at the ends of a word: inside they belong to `%(name)s`. */
const tokensOf = (word: string, read: Read): ReadonlyArray<Token> => {
  const rest = word.replace(/^\(+/, "")
  const inner = rest.replace(/\)+$/, "")
  const is_quoted = rest.length > 1 && /^(["']).*\1$/s.test(rest)
  const token = (): Token => signs.get(inner.toLowerCase()) ?? (is_quoted ? "quoted" : read(inner))
  return [
    ...Array<Token>(word.length - rest.length).fill("("),
    ...(inner === "" ? [] : [token()]),
    ...Array<Token>(rest.length - inner.length).fill(")"),
  ]
}

const all =
  (checks: ReadonlyArray<Check>): Check =>
  (evaluation) => {
    for (const check of checks) {
      const holds = check(evaluation)
      if (holds !== true) return holds
    }
    return true
  }

const any =
  (checks: ReadonlyArray<Check>): Check =>
  (evaluation) => {
    for (const check of checks) {
      const holds = check(evaluation)
      if (holds !== false) return holds
    }
    return false
  }

const negated =
  (check: Check): Check =>
  (evaluation) => {
    const holds = check(evaluation)
    return holds === undefined ? undefined : !holds
  }
