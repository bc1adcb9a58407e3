/** Derives the fields of a body from the API's schemas. */
import { SchemaAST } from "effect"
import type { Field } from "#cli/client/operation.ts"
import { choicesOf, type Described, kindOf, membersOf } from "#schemas/fields.ts"

type Named = readonly [name: string, schema: Described]

/** Replaces objects by their members: `retention.keep_last`. */
const leavesOf = ([name, schema]: Named): ReadonlyArray<Named> =>
  membersOf(schema)?.flatMap(([member, one]) => leavesOf([`${name}.${member}`, one])) ?? [
    [name, schema],
  ]

const fieldOf = ([name, schema]: Named, shape: string): Field => {
  const { description, examples, flag } = schema.ast.context?.annotations ?? {}
  const text = String(description).replace(/\.$/, "")
  const kind = kindOf(schema)
  const choices = choicesOf(schema)
  const repeated = kind === "json" ? "; may be repeated" : ""
  const example = Array.isArray(examples) ? `, for example ${examples[0]}` : ""
  return {
    name,
    kind: kind === "json" ? "list" : kind,
    what: `${text}${example}${repeated}${shape}`,
    ...(typeof flag === "string" ? { flag } : {}),
    ...(choices === undefined ? {} : { choices }),
  }
}

const namedIn = (body: Described) => new Map((membersOf(body) ?? []).flatMap(leavesOf))

/** Fields of a body with the schemas of Shape A and B; required if both shapes require them. */
export const fieldsOf = (a: Described, b = a): ReadonlyArray<Field> => {
  const [in_a, in_b] = [namedIn(a), namedIn(b)]
  const isNeeded = (schema?: Described) => schema && !SchemaAST.isOptional(schema.ast)
  return [...new Map([...in_a, ...in_b])].map(([name, schema]) => {
    const shape = in_a.has(name) ? "Shape A" : "Shape B"
    const is_in_both = in_a.has(name) && in_b.has(name)
    return {
      ...fieldOf([name, schema], is_in_both ? "" : ` (${shape})`),
      ...(isNeeded(in_a.get(name)) && isNeeded(in_b.get(name)) ? { is_required: true } : {}),
    }
  })
}
