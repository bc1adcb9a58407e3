/** Flags of a body: its fields, as the schemas of the API describe them. */
import { SchemaAST } from "effect"
import type { Field } from "#cli/client/operation.ts"
import { choicesOf, type Described, kindOf, membersOf } from "#schemas/fields.ts"

type Named = readonly [name: string, schema: Described]

/** The members of objects stand for these: `retention.keep_last`. */
const leavesOf = ([name, schema]: Named): ReadonlyArray<Named> =>
  membersOf(schema)?.flatMap(([member, one]) => leavesOf([`${name}.${member}`, one])) ?? [
    [name, schema],
  ]

const fieldOf = ([name, schema]: Named, shape: string): Field => {
  const { description, examples, flag } = schema.ast.context?.annotations ?? {}
  const kind = kindOf(schema)
  const choices = choicesOf(schema)
  const example = Array.isArray(examples) ? `, ${examples[0]}` : ""
  return {
    name,
    kind: kind === "json" ? "list" : kind,
    what: `${description}${example}${shape}`,
    ...(typeof flag === "string" ? { flag } : {}),
    ...(choices === undefined ? {} : { choices }),
  }
}

const namedIn = (body: Described) => new Map((membersOf(body) ?? []).flatMap(leavesOf))

/** The flags of a body; what is needed is checked by the client, too. */
export const fieldsOf = (body: Described): ReadonlyArray<Field> =>
  [...namedIn(body)].map(([name, schema]) => ({
    ...fieldOf([name, schema], ""),
    ...(SchemaAST.isOptional(schema.ast) ? {} : { is_required: true }),
  }))

/** The flags of a body that each shape words in its own way. */
export const fieldsOfShapes = (a: Described, b: Described): ReadonlyArray<Field> => {
  const in_a = namedIn(a)
  const in_b = namedIn(b)
  return [...new Map([...in_a, ...in_b])].map(([name, schema]) => {
    const only = in_a.has(name) ? "Shape A" : "Shape B"
    return fieldOf([name, schema], in_a.has(name) && in_b.has(name) ? "" : ` (${only})`)
  })
}
