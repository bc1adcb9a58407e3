/**
 * Mutations of TypeScript source: small changes that a test should notice. They change operators,
 * conditions and constants in code; imports, types, keys and documentation stay.
 */
import { createHash } from "node:crypto"
import ts from "typescript-5"

export type Kind = "operator" | "condition" | "number" | "text" | "boolean"

export interface Mutation {
  readonly path: string
  /** Offsets of the replaced text. */
  readonly start: number
  readonly end: number
  readonly replacement: string
  readonly kind: Kind
  /** Counted from 1. */
  readonly line: number
  /** That line before and after, trimmed. */
  readonly before: string
  readonly after: string
}

export interface Source {
  readonly path: string
  readonly text: string
}

const operators: ReadonlyMap<ts.SyntaxKind, string> = new Map([
  [ts.SyntaxKind.LessThanToken, "<="],
  [ts.SyntaxKind.LessThanEqualsToken, "<"],
  [ts.SyntaxKind.GreaterThanToken, ">="],
  [ts.SyntaxKind.GreaterThanEqualsToken, ">"],
  [ts.SyntaxKind.EqualsEqualsEqualsToken, "!=="],
  [ts.SyntaxKind.ExclamationEqualsEqualsToken, "==="],
  [ts.SyntaxKind.AmpersandAmpersandToken, "||"],
  [ts.SyntaxKind.BarBarToken, "&&"],
  [ts.SyntaxKind.PlusToken, "-"],
  [ts.SyntaxKind.MinusToken, "+"],
  [ts.SyntaxKind.AsteriskToken, "/"],
  [ts.SyntaxKind.SlashToken, "*"],
  [ts.SyntaxKind.PercentToken, "*"],
  [ts.SyntaxKind.PlusEqualsToken, "-="],
  [ts.SyntaxKind.MinusEqualsToken, "+="],
])

/** Properties of schemas and metrics whose values are documentation. */
const documentation = /^(description|documentation|example|examples|help|meaning|summary|title)$/

const constants: ReadonlyArray<Kind> = ["number", "text", "number", "boolean"]

/** One in three is an operator, one a condition; numbers are half of the constants. */
const rotation: ReadonlyArray<Kind> = constants.flatMap(
  (constant): ReadonlyArray<Kind> => ["operator", "condition", constant],
)

interface Change {
  readonly node: ts.Node
  readonly kind: Kind
  readonly replacement: string
}

const isText = (node: ts.Node) =>
  ts.isStringLiteralLike(node) || ts.isTemplateExpression(node) || ts.isTemplateSpan(node)

/** A `+` of two strings concatenates them; it has no opposite. */
const joinsTexts = ({ left, right, operatorToken }: ts.BinaryExpression): boolean =>
  operatorToken.kind === ts.SyntaxKind.PlusToken &&
  (isText(left) || isText(right) || (ts.isBinaryExpression(left) && joinsTexts(left)))

const negated = (condition: ts.Expression, kind: Kind = "condition"): Change =>
  ts.isPrefixUnaryExpression(condition) && condition.operator === ts.SyntaxKind.ExclamationToken
    ? { node: condition, kind, replacement: condition.operand.getText() }
    : { node: condition, kind, replacement: `!(${condition.getText()})` }

const constantChanges = (node: ts.Node): ReadonlyArray<Change> => {
  if (ts.isNumericLiteral(node)) {
    return [{ node, kind: "number", replacement: `${Number(node.text) + 1}` }]
  }
  if (ts.isBigIntLiteral(node)) {
    const value = BigInt(node.text.slice(0, -1))
    return [{ node, kind: "number", replacement: `${value + 1n}n` }]
  }
  if (ts.isStringLiteral(node)) {
    return [{ node, kind: "text", replacement: JSON.stringify(`${node.text}~`) }]
  }
  if (node.kind === ts.SyntaxKind.TrueKeyword) {
    return [{ node, kind: "boolean", replacement: "false" }]
  }
  if (node.kind === ts.SyntaxKind.FalseKeyword) {
    return [{ node, kind: "boolean", replacement: "true" }]
  }
  return []
}

const changesOf = (node: ts.Node): ReadonlyArray<Change> => {
  if (ts.isBinaryExpression(node)) {
    const replacement = operators.get(node.operatorToken.kind)
    if (replacement === undefined || joinsTexts(node)) return []
    return [{ node: node.operatorToken, kind: "operator", replacement }]
  }
  if (ts.isIfStatement(node) || ts.isWhileStatement(node)) return [negated(node.expression)]
  if (ts.isConditionalExpression(node)) return [negated(node.condition)]
  return constantChanges(node)
}

const isLeftAlone = (node: ts.Node): boolean =>
  ts.isTypeNode(node) ||
  ts.isImportDeclaration(node) ||
  ts.isExportDeclaration(node) ||
  ts.isInterfaceDeclaration(node) ||
  ts.isTypeAliasDeclaration(node) ||
  (ts.isPropertyAssignment(node) && documentation.test(node.name.getText()))

const isKey = (node: ts.Node) => ts.isPropertyAssignment(node.parent) && node.parent.name === node

/** Every mutation of a file, in source order. */
export const mutationsOf = ({ path, text }: Source): ReadonlyArray<Mutation> => {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  const found: Array<Mutation> = []
  const visit = (node: ts.Node): void => {
    if (isLeftAlone(node)) return
    for (const { node: replaced, kind, replacement } of changesOf(node)) {
      const [start, end] = [replaced.getStart(), replaced.getEnd()]
      if (isKey(replaced)) continue
      const from = text.lastIndexOf("\n", start - 1) + 1
      const next = text.indexOf("\n", end)
      const to = next === -1 ? text.length : next
      found.push({
        path,
        start,
        end,
        replacement,
        kind,
        line: file.getLineAndCharacterOfPosition(start).line + 1,
        before: text.slice(from, to).trim(),
        after: `${text.slice(from, start)}${replacement}${text.slice(end, to)}`.trim(),
      })
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  return found
}

/** The file's text with the mutation. */
export const mutate = (text: string, { start, end, replacement }: Mutation): string =>
  `${text.slice(0, start)}${replacement}${text.slice(end)}`

/**
 * `count` mutations, deterministic in the seed. A mutation's rank depends only on its line, so that
 * two versions of a tree mostly get the same mutations.
 */
export const chooseMutations = (
  sources: ReadonlyArray<Source>,
  seed: number,
  count: number,
): ReadonlyArray<Mutation> => {
  const seen = new Map<string, number>()
  const ranked = sources
    .flatMap(mutationsOf)
    .map((mutation) => {
      const line = `${mutation.before}\n${mutation.after}`
      const times = (seen.get(line) ?? 0) + 1
      seen.set(line, times)
      const rank = createHash("sha256").update(`${seed} ${times} ${line}`).digest("hex")
      return { mutation, rank }
    })
    .toSorted((a, b) => (a.rank < b.rank ? -1 : 1))
    .map(({ mutation }) => mutation)
  const byKind = Map.groupBy(ranked, ({ kind }) => kind)
  return Array.from(
    { length: count },
    (_, i) => rotation[i % rotation.length] ?? "operator",
  ).flatMap((kind) => byKind.get(kind)?.shift() ?? [])
}
