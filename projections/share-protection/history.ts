/**
 * Histories: the past rows of a table, as versions with a period of validity.
 *
 * Clocks differ, so times within one stream can decrease: a new version ends every version that
 * would begin after it. At most one version is valid at a time: that of the last commit, in the
 * log's order, that is not later.
 */
import { Effect } from "effect"
import { type Compilable, type QueryExecutorProvider, type SchemaModule, sql } from "kysely"
import {
  type Filter,
  findRow,
  type Listed,
  listRows,
  type Page,
  pageOf,
  type Source,
  type Term,
  termsOf,
} from "#projections/share-protection/listing.ts"
import { statement, type Write } from "#projections/statement.ts"
import { type AnyTables, type Table, typeOf } from "#projections/table.ts"

/** End of a version that is still valid: after every time. */
const open_end = "open"

/** The last possible time: a version that is still valid is valid then. */
const last_instant = "9999-12-31T23:59:59.999Z"

/** Matches the version valid at this time, an `Instant`; without one, the version still valid. */
export const holds = (as_of: string = last_instant): Term =>
  sql`valid_from <= ${as_of} and valid_to > ${as_of}`

/** A version as stored in SQLite. */
export type Version<Row> = Row & {
  /** RFC 3339 in UTC. */
  readonly valid_from: string
  readonly valid_to: string
}

export interface History {
  readonly name: string
  /** The versioned columns, for a select. */
  readonly columns: Term
  readonly create: (schema: SchemaModule) => ReadonlyArray<Compilable>
  /** Records the table's current row as valid from `at` on. */
  readonly record: (by: string, at: string) => ReadonlyArray<Write>
  /** Ends the current version at `at`. */
  readonly end: (by: string, at: string) => ReadonlyArray<Write>
}

interface Declared<Row> {
  readonly name: string
  readonly of: Table<Row>
  /**
   * The column that identifies the versions of one row; at most one of each value is valid at a
   * time.
   */
  readonly by: Extract<keyof Row, string>
  /** The versioned columns. */
  readonly keeps: ReadonlyArray<Extract<keyof Row, string>>
  readonly indexes: ReadonlyArray<ReadonlyArray<Extract<keyof Row, string> | "valid_to">>
}

/** Declares the history of some columns of a table. */
export const history = <Row>(declared: Declared<Row>): History => {
  const { name, keeps } = declared
  const { drop, close, begin } = writes(declared)
  const end = (by: string, at: string) => [drop({ by, at }), close({ by, at })]
  return {
    name,
    columns: sql.join(keeps.map((column) => sql.ref(column))),
    create: (schema) => creates(declared, schema),
    record: (by, at) => [...end(by, at), begin({ by, at })],
    end,
  }
}

interface Moment {
  readonly by: string
  readonly at: string
}

const writes = <Row>({ name, of, keeps, ...declared }: Declared<Row>) => {
  const write = statement<AnyTables>()
  const by: string = declared.by
  const columns: ReadonlyArray<string> = keeps
  return {
    drop: write<Moment>((db, { by: value, at }) =>
      db.deleteFrom(name).where(by, "=", value).where("valid_from", ">=", at),
    ),
    // Only the last version can still be valid at `at`, because each ends when the next begins.
    // Reading it by its key takes constant time, however many versions exist.
    close: write<Moment>((db, { by: value, at }) =>
      db
        .updateTable(name)
        .set({ valid_to: at })
        .where(by, "=", value)
        .where(
          "valid_from",
          "=",
          db.selectFrom(name).select(sql`max(valid_from)`.as("last")).where(by, "=", value),
        )
        .where("valid_to", ">", at),
    ),
    begin: write<Moment>((db, { by: value, at }) =>
      db
        .insertInto(name)
        .columns([...columns, "valid_from", "valid_to"])
        .expression(
          db
            .selectFrom(of.name)
            .select([...columns])
            .select(sql`${at}`.as("valid_from"))
            .select(sql`${sql.lit(open_end)}`.as("valid_to"))
            .where(by, "=", value),
        ),
    ),
  }
}

const creates = <Row>({ name, of, by, keeps, indexes }: Declared<Row>, schema: SchemaModule) => {
  const kinds: Readonly<Record<string, string>> = of.columns
  const version: Array<string> = [by, "valid_from"]
  const columns: ReadonlyArray<string> = keeps
  const builder = columns.reduce(
    (table, column) => table.addColumn(column, typeOf(kinds[column] ?? "text")),
    schema.createTable(name),
  )
  return [
    builder
      .addColumn("valid_from", "text", (column) => column.notNull())
      .addColumn("valid_to", "text", (column) => column.notNull()),
    // At most one version is valid at a time, so no two begin at the same time.
    schema.createIndex(`${name}_version`).on(name).columns(version).unique(),
    ...indexes.map((index) => {
      const columns: Array<string> = [...index]
      return schema
        .createIndex([name, ...columns].join("_"))
        .on(name)
        .columns(columns)
    }),
  ]
}

/**
 * Reads a table now, or as of an `Instant`: the rows that `then` selects are narrowed to that time.
 */
export const dated = <Found, Row extends { readonly id: string }>(
  source: Source<Found, Row>,
  then: (as_of: string) => Term,
) => {
  const indexes = [["id"], ...source.indexes]

  /** Oldest first. */
  const list = (
    db: QueryExecutorProvider,
    filter: Filter,
    page: Page,
    as_of?: string,
  ): Effect.Effect<Listed<Row>> => {
    if (as_of === undefined) return listRows(db, source, { filter, order: "asc" }, page)
    const terms = [...termsOf(db, filter, indexes), holds(as_of)]
    return pageOf(db, { select: then(as_of), terms, order: "asc" }, page, source.toRow)
  }
  /** Undefined if there is none. */
  const find = (
    db: QueryExecutorProvider,
    id: string,
    as_of?: string,
  ): Effect.Effect<Row | undefined> =>
    as_of === undefined
      ? findRow(db, source, id)
      : Effect.map(list(db, { id }, { limit: 1 }, as_of), ({ rows }) => rows[0])

  return { list, find }
}
