/** Derives the fields of bodies and responses from the API's schemas. */
import { SchemaAST } from "effect"
import type { Field } from "#cli/client/operation.ts"
import { choicesOf, type Described, kindOf, membersOf } from "#schemas/fields.ts"

type Named = readonly [name: string, schema: Described]

interface Leaf extends Described {
  /** Whether it and every object around it must be given. */
  readonly is_required: boolean
}

/** Replaces objects with their members: `retention.keep_last`. */
const leavesOf = (
  [name, schema]: Named,
  is_inner_required = true,
): ReadonlyArray<readonly [name: string, leaf: Leaf]> => {
  const is_required = is_inner_required && !SchemaAST.isOptional(schema.ast)
  const members = membersOf(schema)
  if (members === undefined) return [[name, { ast: schema.ast, is_required }]]
  return members.flatMap(([member, one]) => leavesOf([`${name}.${member}`, one], is_required))
}

/** The abbreviation as this command line spells it. */
const withId = (text: string) => text.replaceAll(/\bId(s?)\b/g, "ID$1")

const fieldOf = ([name, schema]: Named, shape: string): Field => {
  const { description, examples, flag } = schema.ast.context?.annotations ?? {}
  const text = withId(String(description).replace(/\.$/, ""))
  const kind = kindOf(schema)
  const choices = choicesOf(schema)
  const repeated = kind === "json" ? " (repeatable)" : ""
  const example = Array.isArray(examples) ? `, for example ${examples[0]}` : ""
  return {
    name,
    kind: kind === "json" ? "list" : kind,
    what: `${text}${example}${repeated}${shape}`,
    ...(typeof flag === "string" ? { flag } : {}),
    ...(choices === undefined ? {} : { choices }),
  }
}

const namedIn = (body: Described) =>
  new Map((membersOf(body) ?? []).flatMap((named) => leavesOf(named)))

/** Fields of a body with the schemas of Shape A and B; each lists the shapes that require it. */
export const fieldsOf = (a: Described, b = a): ReadonlyArray<Field> => {
  const [in_a, in_b] = [namedIn(a), namedIn(b)]
  const needs = (name: string) => [
    ...(in_a.get(name)?.is_required === true ? (["A"] as const) : []),
    ...(in_b.get(name)?.is_required === true ? (["B"] as const) : []),
  ]
  return [...new Map([...in_a, ...in_b])].map(([name, schema]) => {
    const shape = in_a.has(name) ? "Shape A" : "Shape B"
    const is_in_both = in_a.has(name) && in_b.has(name)
    const required_in = needs(name)
    return {
      ...fieldOf([name, schema], is_in_both ? "" : ` (${shape})`),
      ...(required_in.length > 0 ? { required_in } : {}),
    }
  })
}

/** The columns of a resource: its fields in any of these shapes, nested ones by their path. */
export const columnsOf = (shapes: ReadonlyArray<Described>): ReadonlyArray<string> => [
  ...new Set(shapes.flatMap((shape) => [...namedIn(shape).keys()])),
]
