import { Schema, SchemaAST } from "effect"

/** A command or an event: a struct whose `type` names it. */
export const message = <const Type extends string, const Fields extends Schema.Struct.Fields>(
  type: Type,
  fields: Fields,
) => Schema.Struct({ type: Schema.tag(type), ...fields })

export interface Message {
  readonly type: string
}

const typesIn = (ast: SchemaAST.AST): ReadonlyArray<string> => {
  if (SchemaAST.isUnion(ast)) return ast.types.flatMap(typesIn)
  if (!SchemaAST.isObjects(ast)) return []
  const tag = ast.propertySignatures.find(({ name }) => name === "type")?.type
  return tag !== undefined && SchemaAST.isLiteral(tag) ? [String(tag.literal)] : []
}

/** The message types of a schema, in source order; throws if there are none. */
export const typesOf = ({ ast }: { readonly ast: SchemaAST.AST }): ReadonlySet<string> => {
  const types = new Set(typesIn(SchemaAST.toEncoded(ast)))
  if (types.size === 0) throw new Error("The schema contains no message types.")
  return types
}

/**
 * Maximum length of a token of a bus subject: a commit's subject has four of them and stays under
 * 256 bytes.
 */
export const token_chars_max = 64

/** An identifier that is also one token of a bus subject: no dots, spaces or wildcards. */
export const Token = Schema.String.check(
  Schema.isPattern(/^[\w-]+$/u, { expected: "letters, digits, _ and -" }),
  Schema.isMaxLength(token_chars_max),
)
