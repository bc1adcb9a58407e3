/**
 * Rewrites statements for PostgreSQL: numbered parameters, and names to prepare them once.
 */

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

/** PostgreSQL truncates longer names, so that two could collide. */
const name_bytes_max = 63

/** Prepared statements per session; we have about 200. */
const prepared_max = 1000

/** Question marks that are parameters, not in strings or names. */
const parameter = /'(?:[^']|'')*'|"(?:[^"]|"")*"|\?/g

const numberParameters = (text: string) => {
  let n = 0
  return text.replace(parameter, (found) => (found === "?" ? `$${++n}` : found))
}

const shortHash = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 16)

/** Names for statements, the same in every session; undefined beyond the limit. */
export const statementNames = () => {
  const names = new Map<string, string>()
  return (text: string) => {
    const known = names.get(text)
    if (known !== undefined || names.size >= prepared_max) return known
    const name = `s${names.size + 1}`
    names.set(text, name)
    return name
  }
}

/** Replaces NUL, which PostgreSQL's text cannot contain. */
export const storedValue = (value: unknown) =>
  typeof value === "string" && value.includes("\0") ? value.replaceAll("\0", "\ufffd") : value

/** Converts writes that were compiled for SQLite. */
export const binder = () => {
  const texts = new Map<string, string>()
  const nameOf = statementNames()
  return ({ sql: text, parameters }: Write): QueryConfig => {
    const known = texts.get(text) ?? numberParameters(text)
    if (texts.size < prepared_max) texts.set(text, known)
    return { name: nameOf(known), text: known, values: parameters.map(storedValue) }
  }
}

/**
 * SQLite's types in PostgreSQL: integers of 64 bits, and text compared by bytes, regardless of the
 * database's collation.
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
  return { ...node, name: IdentifierNode.create(`${name.slice(0, 40)}_${shortHash(name)}`) }
}

const tables: KyselyPlugin = {
  transformQuery: ({ node }) => {
    if (node.kind === "CreateTableNode") return tableNode(node)
    return node.kind === "CreateIndexNode" ? indexNode(node) : node
  },
  transformResult: ({ result }) => Promise.resolve(result),
}

/** Compiles statements that create tables. Does not run them. */
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
