/**
 * Fields of a resource, listed once as schemas: what is derived from their schemas and annotations.
 *
 * A field's key annotations are its `description` and `examples`, for the OpenAPI document and the
 * command line, and its `flag`, where that is not the field's name.
 */
import { Schema, SchemaAST, Struct } from "effect"

type Fields = Schema.Struct.Fields

/** A schema, or a part of one. */
export interface Described {
  readonly ast: SchemaAST.AST
}

const typesIn = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> =>
  SchemaAST.isUnion(ast) ? ast.types.flatMap(typesIn) : [ast]

const kinds = [
  ["text", SchemaAST.isString, "string"],
  ["integer", SchemaAST.isNumber, "number"],
  ["boolean", SchemaAST.isBoolean, "boolean"],
] as const

/** What a field holds besides null; `json` is a list or an object. */
export const kindOf = ({ ast }: Described) => {
  const types = typesIn(ast).filter((type) => !SchemaAST.isNull(type))
  const found = kinds.find(([, isOf, name]) =>
    types.every(
      (type) => isOf(type) || (SchemaAST.isLiteral(type) && typeof type.literal === name),
    ),
  )
  return found?.[0] ?? "json"
}

export const isNullable = ({ ast }: Described) => typesIn(ast).some(SchemaAST.isNull)

/** The texts that a field may hold; undefined where it may hold others. */
export const choicesOf = ({ ast }: Described) => {
  const choices = typesIn(ast).flatMap((type) => {
    if (SchemaAST.isNull(type)) return []
    return SchemaAST.isLiteral(type) ? [String(type.literal)] : [undefined]
  })
  return choices.every((choice) => choice !== undefined) ? choices : undefined
}

/** The fields of an object; undefined where a field holds anything else. */
export const membersOf = ({ ast }: Described) =>
  typesIn(ast)
    .find(SchemaAST.isObjects)
    ?.propertySignatures.map(({ name, type }) => [String(name), { ast: type }] as const)

/** Null for each field that may be null: the values of a resource of which nothing is known. */
export const nullsOf = <F extends Fields>(fields: F) =>
  // The names of the fields that may be null are known at run time only.
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, field]) => (isNullable(field) ? [[name, null]] : [])),
  ) as { readonly [Name in keyof F as null extends F[Name]["Type"] ? Name : never]: null }

/** A PATCH's fields: whatever is absent stays as it is. */
export const optional = <F extends Fields>(fields: F) => Struct.map(fields, Schema.optionalKey)
