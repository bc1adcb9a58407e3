/**
 * Whether a value is what its schema would answer for it, told without making it anew.
 *
 * Of a commit every event is decoded by each of its readers, and what this program wrote is decoded
 * to itself: the interpreter makes an object for it, and an exit for each of its fields. Here the
 * schema's own checks are asked, and nothing is made. Decision 0160.
 */
import { Schema, SchemaAST } from "effect"

/** True: the schema takes the value, and answers an equal one. False: only the schema can tell. */
type AsIs = (value: unknown) => boolean

/** A schema that may change what it decodes, or of a kind that is not looked into. */
type Unknown = undefined

/** As `Schema.decodeUnknownSync`; what is as the schema would answer it is answered itself. */
export const decoder = <A>(schema: Schema.ConstraintCodec<A, unknown>) => {
  const decode = Schema.decodeUnknownSync(schema)
  const isAsIs = asIsOf(schema.ast)
  if (isAsIs === undefined) return decode
  // What is as the schema would answer it is of its type.
  return (value: unknown): A => (isAsIs(value) ? (value as A) : decode(value))
}

/** As the schema's `make`, of all fields; what is as that would answer it is answered itself. */
export const maker = <A>(schema: { readonly ast: SchemaAST.AST; readonly make: Make<A> }) => {
  const isAsIs = asIsOf(schema.ast)
  return (value: A): A => (isAsIs?.(value) === true ? value : schema.make(value))
}

type Make<A> = (value: A) => A

const no_options: SchemaAST.ParseOptions = {}

const asIsOf = (ast: SchemaAST.AST): AsIs | Unknown => {
  if (ast.encoding !== undefined) return undefined
  if ("encodingChecks" in ast && ast.encodingChecks !== undefined) return undefined
  const is = kindOf(ast)
  if (is === undefined || ast.checks === undefined) return is
  const holds = ast.checks.map((check) => holdsOf(check, ast))
  return (value) => is(value) && holds.every((hold) => hold(value))
}

const holdsOf = (check: SchemaAST.Check<never>, ast: SchemaAST.AST): AsIs => {
  if (check._tag === "FilterGroup") {
    const holds = check.checks.map((inner) => holdsOf(inner, ast))
    return (value) => holds.every((hold) => hold(value))
  }
  // It is asked of what is of the schema's kind, and of nothing else.
  return (value) => check.run(value as never, ast, no_options) === undefined
}

const kindOf = (ast: SchemaAST.AST): AsIs | Unknown => {
  if (SchemaAST.isString(ast)) return (value) => typeof value === "string"
  if (SchemaAST.isNumber(ast)) return (value) => typeof value === "number"
  if (SchemaAST.isBoolean(ast)) return (value) => typeof value === "boolean"
  if (SchemaAST.isNull(ast)) return (value) => value === null
  if (SchemaAST.isLiteral(ast)) return (value) => value === ast.literal
  if (SchemaAST.isArrays(ast)) return ofArray(ast)
  if (SchemaAST.isUnion(ast)) return ofUnion(ast)
  return SchemaAST.isObjects(ast) ? ofObject(ast) : undefined
}

const ofArray = ({ elements, rest: [item, ...others] }: SchemaAST.Arrays): AsIs | Unknown => {
  const is = item && elements.length + others.length === 0 ? asIsOf(item) : undefined
  return is && ((value) => Array.isArray(value) && value.every(is))
}

/** The literal by which a member of a union of messages is known. */
const tagOf = (ast: SchemaAST.AST) => {
  const type = SchemaAST.isObjects(ast)
    ? ast.propertySignatures.find(({ name }) => name === "type")?.type
    : undefined
  return type !== undefined && SchemaAST.isLiteral(type) ? type.literal : undefined
}

/** A member that is not looked into leaves its messages to the schema, and those of no other. */
const ofMessages = (types: ReadonlyArray<SchemaAST.AST>): AsIs => {
  const members = new Map<unknown, AsIs | Unknown>(types.map((ast) => [tagOf(ast), asIsOf(ast)]))
  return (value) => members.get(isObject(value) ? value.type : undefined)?.(value) === true
}

/** One that is no more than itself: what one member of a union takes, none changes. */
const isPlain = (ast: SchemaAST.AST): boolean =>
  SchemaAST.isUnion(ast)
    ? ast.types.every(isPlain)
    : !SchemaAST.isObjects(ast) && !SchemaAST.isArrays(ast)

const ofUnion = (ast: SchemaAST.Union): AsIs | Unknown => {
  const { types, options } = ast
  if (options?.mode === "oneOf") return undefined
  const tags = new Set(types.map(tagOf))
  if (tags.size === types.length && !tags.has(undefined)) return ofMessages(types)
  const members = isPlain(ast) ? types.map(asIsOf) : []
  const known = members.filter((member) => member !== undefined)
  if (known.length < types.length) return undefined
  return (value) => known.some((is) => is(value))
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const ofObject = (ast: SchemaAST.Objects): AsIs | Unknown =>
  ast.indexSignatures.length === 0 ? ofStruct(ast) : ofRecord(ast)

const ofRecord = ({ propertySignatures, indexSignatures }: SchemaAST.Objects): AsIs | Unknown => {
  const [signature, ...others] = indexSignatures
  if (signature === undefined || others.length + propertySignatures.length > 0) return undefined
  const { parameter, type } = signature
  const is = parameter === SchemaAST.string ? asIsOf(type) : undefined
  if (is === undefined) return undefined
  return (value) => {
    if (!isObject(value)) return false
    for (const name in value) if (!is(value[name])) return false
    return true
  }
}

interface Field {
  readonly name: PropertyKey
  readonly is: AsIs
  readonly is_optional: boolean
}

/** No other fields, and in the schema's order: the order is that of the bytes of a commit. */
const ofStruct = ({ propertySignatures }: SchemaAST.Objects): AsIs | Unknown => {
  const fields: Array<Field> = []
  for (const { name, type } of propertySignatures) {
    const is = asIsOf(type)
    if (is === undefined) return undefined
    fields.push({ name, is, is_optional: SchemaAST.isOptional(type) })
  }
  // Of a struct of nothing the schema asks nothing.
  if (fields.length === 0) return undefined
  return (value) => {
    if (!isObject(value)) return false
    let at = 0
    for (const name in value) {
      let field = fields[at++]
      while (field !== undefined && field.name !== name) {
        if (!field.is_optional) return false
        field = fields[at++]
      }
      if (field === undefined || !field.is(value[name])) return false
    }
    for (; at < fields.length; at++) if (fields[at]?.is_optional === false) return false
    return true
  }
}
