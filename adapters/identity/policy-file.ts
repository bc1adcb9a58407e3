/**
 * The operator's policy rules, which override the defaults: read at startup, and again when the
 * file changes.
 *
 * JSON, or the YAML lines of oslo.policy's own samples: `"name": "rule"`.
 * Source: document 2 §5; DECISIONS, document 2, default policy rules.
 */
import { Effect, Option, Result, Schema } from "effect"
import { readBounded, watchFiles } from "#files"
import { parseRule, type Rule, type Rules } from "#schemas/policy-rule.ts"

/** The file is invalid; the message is one line with the reason. */
export class PolicyFileInvalid extends Schema.TaggedError<PolicyFileInvalid>()(
  "PolicyFileInvalid",
  { message: Schema.String },
) {}

/** A file for every operation is about 10 KB. */
const file_bytes_max = 2 ** 20

/**
 * Returns a getter of the current rules; without a `path` the defaults. Fails if the file is
 * invalid at startup; a later invalid version is logged and ignored.
 */
export const policyRules = Effect.fnUntraced(function* (
  path: string,
  defaults: Readonly<Record<string, Rule>>,
) {
  let rules = parseAll(defaults)
  if (path === "") return () => rules
  const whenChanged = yield* watchFiles([path])
  const read = Effect.gen(function* () {
    const configured = yield* readRules(path)
    rules = parseAll({ ...defaults, ...configured })
    for (const [name, { problem }] of rules) {
      if (problem === undefined) continue
      yield* Effect.logWarning(
        `policy.file, rule ${name}: ${problem}; the invalid part denies access.`,
      )
    }
  })
  const reload = Effect.gen(function* () {
    yield* read
    yield* Effect.logInfo(`The policy rules in ${path} were reloaded.`)
  }).pipe(
    Effect.catch(({ message }) => Effect.logError(`${message}. The previous rules still apply.`)),
  )
  yield* read
  yield* whenChanged(reload)
  return () => rules
})

const parseAll = (rules: Readonly<Record<string, Rule>>): Rules =>
  new Map(Object.entries(rules).map(([name, rule]) => [name, parseRule(rule)]))

const readRules = (path: string) =>
  Effect.flatMap(readBounded(path, file_bytes_max), (text) => {
    const rules = parseRules(text)
    return Result.isSuccess(rules)
      ? Effect.succeed(rules.success)
      : Effect.fail(new PolicyFileInvalid({ message: `${path}${rules.failure}` }))
  }).pipe(
    Effect.mapError(({ message }) => new PolicyFileInvalid({ message: `policy.file: ${message}` })),
  )

/** Parses rules by name; errors begin with the line number, if known. */
export const parseRules = (text: string): Result.Result<Readonly<Record<string, Rule>>, string> => {
  // An editor may have added a byte order mark.
  const plain = text.replace(/^\uFEFF/, "")
  if (plain.trimStart().startsWith("{")) {
    const decoded = Schema.decodeUnknownOption(Json)(plain)
    return Option.isSome(decoded)
      ? Result.succeed(decoded.value)
      : Result.fail(" is not a JSON object of rules")
  }
  const rules: Record<string, Rule> = {}
  for (const [n, line] of plain.split(/\r?\n/).entries()) {
    if (/^\s*(#.*)?$|^---\s*$/.test(line)) continue
    const [name, rule] = parsePair(line)
    if (name === undefined || rule === undefined) {
      return Result.fail(`, line ${n + 1}: not "name": "rule"`)
    }
    if (Object.hasOwn(rules, name)) return Result.fail(`, line ${n + 1}: ${name} is defined twice`)
    rules[name] = rule
  }
  return Result.succeed(rules)
}

const StringList = Schema.Array(Schema.String)
const Json = Schema.fromJsonString(
  Schema.Record(
    Schema.String,
    Schema.Union([Schema.String, Schema.Array(Schema.Union([Schema.String, StringList]))]),
  ),
)

const quoted_pattern = String.raw`"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'`
const pair_pattern = new RegExp(
  `^(${quoted_pattern}|[A-Za-z][\\w:.-]*)\\s*:\\s+(${quoted_pattern})\\s*(?:\\s#.*)?$`,
)

const parsePair = (line: string) => {
  const [, name, rule] = pair_pattern.exec(line) ?? []
  return name === undefined || rule === undefined ? [] : [decodeScalar(name), decodeScalar(rule)]
}

/** Decodes a scalar; undefined if it has escapes that JSON does not have. */
const decodeScalar = (scalar: string): string | undefined => {
  if (scalar.startsWith("'")) return scalar.slice(1, -1).replaceAll("''", "'")
  if (!scalar.startsWith('"')) return scalar
  return Option.getOrUndefined(Schema.decodeUnknownOption(JsonText)(scalar))
}

const JsonText = Schema.fromJsonString(Schema.String)
