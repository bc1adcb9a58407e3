/**
 * Derives facts about a resource's fields from their schemas and annotations, so that each field is
 * declared once.
 *
 * Key annotations of a field are its `description` and `examples`, for the OpenAPI document and the
 * command line, and its `flag`, if that differs from the field's name.
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

/** The type of a field's non-null values; `json` is a list or an object. */
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

/** The possible values of a field of literals; undefined for other fields. */
export const choicesOf = ({ ast }: Described) => {
  const choices = typesIn(ast).flatMap((type) => {
    if (SchemaAST.isNull(type)) return []
    return SchemaAST.isLiteral(type) ? [String(type.literal)] : [undefined]
  })
  return choices.every((choice) => choice !== undefined) ? choices : undefined
}

/** The fields of an object; undefined for other types. */
export const membersOf = ({ ast }: Described) =>
  typesIn(ast)
    .find(SchemaAST.isObjects)
    ?.propertySignatures.map(({ name, type }) => [String(name), { ast: type }] as const)

/** Null for each nullable field: a resource whose values are unknown. */
export const nullsOf = <F extends Fields>(fields: F) =>
  // Which fields are nullable is known only at runtime.
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, field]) => (isNullable(field) ? [[name, null]] : [])),
  ) as { readonly [Name in keyof F as null extends F[Name]["Type"] ? Name : never]: null }

/** The fields of a PATCH: absent fields stay unchanged. */
export const optional = <F extends Fields>(fields: F) => Struct.map(fields, Schema.optionalKey)
