/** Statements as PostgreSQL takes them: numbered parameters, prepared once by a name. */

import { createHash } from "node:crypto"
import {
  type CreateIndexNode,
  type CreateTableNode,
  DataTypeNode,
  DummyDriver,
  IdentifierNode,
  Kysely,
  type KyselyPlugin,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type RawBuilder,
  sql,
} from "kysely"
import type { QueryConfig } from "pg"
import type { Write } from "#projections/statement.ts"

/** Bytes of a name; PostgreSQL would cut a longer one, and then know two as one. */
const name_bytes_max = 63

/** Statements that a session keeps prepared: ours are some two hundred. */
const prepared_max = 1000

/** The question marks that are parameters: not those in texts or names. */
const parameter = /'(?:[^']|'')*'|"(?:[^"]|"")*"|\?/g

const numbered = (text: string) => {
  let n = 0
  return text.replace(parameter, (found) => (found === "?" ? `$${++n}` : found))
}

const short = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 16)

/** The names of texts, which are the same in every session; undefined when there are too many. */
export const naming = () => {
  const names = new Map<string, string>()
  return (text: string) => {
    const known = names.get(text)
    if (known !== undefined || names.size >= prepared_max) return known
    const name = `s${names.size + 1}`
    names.set(text, name)
    return name
  }
}

/** A value as PostgreSQL holds it, which has no text with a NUL in it. */
export const held = (value: unknown) =>
  typeof value === "string" && value.includes("\0") ? value.replaceAll("\0", "\ufffd") : value

/** Makes of writes, which were compiled for SQLite, queries of PostgreSQL. */
export const binder = () => {
  const texts = new Map<string, string>()
  const nameOf = naming()
  return ({ sql: text, parameters }: Write): QueryConfig => {
    const known = texts.get(text) ?? numbered(text)
    if (texts.size < prepared_max) texts.set(text, known)
    return { name: nameOf(known), text: known, values: parameters.map(held) }
  }
}

/**
 * SQLite's types in PostgreSQL: integers of 64 bits, and texts that are compared by their bytes,
 * whatever the database's own order is.
 */
const dataTypes = new Map<unknown, RawBuilder<unknown>>([
  ["integer", sql`bigint`],
  ["text", sql`text collate "C"`],
])

const tableNode = (node: CreateTableNode): CreateTableNode => ({
  ...node,
  columns: node.columns.map((column) => {
    const { dataType } = column
    if (!DataTypeNode.is(dataType)) return column
    const type = dataTypes.get(dataType.dataType)
    return type === undefined ? column : { ...column, dataType: type.toOperationNode() }
  }),
})

const indexNode = (node: CreateIndexNode): CreateIndexNode => {
  const { name } = node.name
  if (Buffer.byteLength(name) <= name_bytes_max) return node
  return { ...node, name: IdentifierNode.create(`${name.slice(0, 40)}_${short(name)}`) }
}

const tables: KyselyPlugin = {
  transformQuery: ({ node }) => {
    if (node.kind === "CreateTableNode") return tableNode(node)
    return node.kind === "CreateIndexNode" ? indexNode(node) : node
  },
  transformResult: ({ result }) => Promise.resolve(result),
}

/** Compiles what creates tables, and runs nothing. */
export const postgresCompiler = <Tables>() =>
  new Kysely<Tables>({
    plugins: [tables],
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new PostgresIntrospector(db),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  })
