/** Lists: pages of a table's rows in the order of their ids. Source: document 2 §2, §8. */
import { Effect } from "effect"
import { type QueryExecutorProvider, type RawBuilder, sql } from "kysely"
import { unindexed } from "#projections/dialect.ts"

export interface Page {
  /** Maximum number of rows in a page. */
  readonly limit: number
  /** The id after which the page begins; its row may have been deleted. */
  readonly marker?: string | undefined
}

export interface Listed<Row> {
  readonly rows: ReadonlyArray<Row>
  /** The id of the last row if there are more, else null. */
  readonly next_marker: string | null
}

/** Required values of columns; undefined matches any value. */
export type Filter = Readonly<Record<string, string | undefined>>

export type Term = RawBuilder<unknown>

/** A table to read; `toRow` converts a stored row to the result row. */
export interface Source<Found, Row> {
  readonly name: string
  readonly indexes: ReadonlyArray<ReadonlyArray<string>>
  readonly toRow: (found: Found) => Row
}

/** The row of this id; undefined if there is none. */
export const findRow = <Found, Row>(
  db: QueryExecutorProvider,
  { name, toRow }: Source<Found, Row>,
  id: string,
): Effect.Effect<Row | undefined> =>
  Effect.promise(async () => {
    const query = sql<Found>`select * from ${sql.table(name)} where id = ${id}`
    const [row] = (await query.execute(db)).rows
    return row && toRow(row)
  })

/** A page of a table. New ids sort after older ones: `desc` is newest first. */
export const listRows = <Found, Row extends { readonly id: string }>(
  db: QueryExecutorProvider,
  { name, indexes, toRow }: Source<Found, Row>,
  {
    filter,
    order,
    also = [],
  }: {
    readonly filter: Filter
    readonly order: "asc" | "desc"
    /** Further conditions. */
    readonly also?: ReadonlyArray<Term>
  },
  page: Page,
): Effect.Effect<Listed<Row>> =>
  pageOf(
    db,
    {
      select: sql`select * from ${sql.table(name)}`,
      terms: [...termsOf(db, filter, indexes), ...also],
      order,
    },
    page,
    toRow,
  )

/**
 * The conditions of a filter, starting with the first of `indexes` whose columns are all filtered.
 */
export const termsOf = (
  db: QueryExecutorProvider,
  filter: Filter,
  indexes: ReadonlyArray<ReadonlyArray<string>>,
): ReadonlyArray<Term> => {
  const leading = indexes.find((index) => index.every((column) => filter[column] !== undefined))
  return Object.entries(filter).flatMap(([column, value]) => {
    if (value === undefined) return []
    const named = leading?.includes(column) === true ? sql.ref(column) : unindexed(db, column)
    return [sql`${named} = ${value}`]
  })
}

/** A page of the selected rows that match all terms. */
export const pageOf = <Found, Row extends { readonly id: string }>(
  db: QueryExecutorProvider,
  {
    select,
    terms,
    order,
  }: {
    readonly select: Term
    readonly terms: ReadonlyArray<Term>
    readonly order: "asc" | "desc"
  },
  { limit, marker }: Page,
  toRow: (found: Found) => Row,
): Effect.Effect<Listed<Row>> =>
  Effect.promise(async () => {
    const beyond = order === "asc" ? sql`id > ${marker}` : sql`id < ${marker}`
    const all = marker === undefined ? terms : [...terms, beyond]
    const where = all.length === 0 ? sql`` : sql`where ${sql.join(all, sql` and `)}`
    // One extra row reveals whether there are more.
    const query = sql<Found>`
      ${select} ${where} order by id ${sql.raw(order)} limit ${limit + 1}`
    const found = (await query.execute(db)).rows
    const rows = found.slice(0, limit).map(toRow)
    return { rows, next_marker: found.length > limit ? (rows.at(-1)?.id ?? null) : null }
  })
