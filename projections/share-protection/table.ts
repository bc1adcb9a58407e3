/**
 * A table of resources: one list of its columns says how it is made, written and read.
 *
 * Each statement is compiled once for each set of columns that it writes.
 */
import type { Schema } from "effect"
import { type Compilable, type Kysely, type SchemaModule, sql } from "kysely"
import { statement, type Write } from "#projections/statement.ts"
import { isNullable, kindOf } from "#schemas/fields.ts"

/** What SQLite holds of a value: of a boolean 0 or 1, of an object its JSON. */
type StoredValue<Value> = Value extends boolean
  ? number
  : Value extends string | number | null
    ? Value
    : string

export type Stored<Row> = { readonly [Column in keyof Row]: StoredValue<Row[Column]> }

type Kind<Value> = [Value] extends [boolean]
  ? "boolean"
  : [Value] extends [number]
    ? "integer"
    : [Value] extends [string]
      ? "text"
      : "json"

/** The kind of each column; with a question mark it may be null. */
type Columns<Row> = {
  readonly [Column in keyof Row]-?: null extends Row[Column]
    ? `${Kind<NonNullable<Row[Column]>>}?`
    : Kind<Row[Column]>
}

export interface Table<Row> {
  readonly name: string
  readonly columns: Columns<Row>
  /** Columns of each index; of those that serve a query, the first is taken. */
  readonly indexes: ReadonlyArray<ReadonlyArray<string>>
  readonly create: (schema: SchemaModule) => ReadonlyArray<Compilable>
  readonly insert: (row: Row) => Write
  /** Inserts a row unless one of its id is there. */
  readonly ensure: (row: Row) => Write
  /** Changes nothing when there is no such row. */
  readonly update: (by: string, values: Partial<Row>) => Write
  /** Adds to numbers. */
  readonly add: (by: string, values: Partial<Row>) => Write
  readonly remove: (by: string) => Write
  /** The row that SQLite answered. */
  readonly shown: (stored: Stored<Row>) => Row
}

/** The columns of a row's fields. */
export const columnsOf = <F extends Schema.Struct.Fields>(fields: F) => {
  const columns = Object.entries(fields).map(([name, field]) => [
    name,
    isNullable(field) ? `${kindOf(field)}?` : kindOf(field),
  ])
  // A field's schema says what kind of values its type has.
  return Object.fromEntries(columns) as Columns<Schema.Struct<F>["Type"]>
}

interface Declared<Row> {
  readonly name: string
  readonly columns: Columns<Row>
  /** The column that writes name a row by, where that is not the id. */
  readonly by?: Extract<keyof Row, string>
  /** In each index, rows of the same values are in the order of their ids. */
  readonly indexes?: ReadonlyArray<ReadonlyArray<Extract<keyof Row, string>>>
  /** A condition on what most listings ask for: each index has these rows apart, too. */
  readonly usual?: string
}

/** Declares a table; its rows have an `id`. */
export const table = <Row extends { readonly id: string }>(declared: Declared<Row>): Table<Row> => {
  const { name, columns, indexes = [] } = declared
  const { insert, ensure, update, add, remove } = writers(declared)
  const show = shower(Object.entries(columns))
  return {
    name,
    columns,
    indexes,
    create: (schema) => [tableOf(declared, schema), ...indexesOf(declared, schema)],
    insert: (row) => insert(row),
    ensure: (row) => ensure(row),
    update: (by, values) => update(values, by),
    add: (by, values) => add(values, by),
    remove: (by) => remove({}, by),
    // `columns` says of each column of a row what it is.
    shown: (row) => show(row) as Row,
  }
}

/** The type in SQLite of a column of this kind. */
export const typeOf = (kind: string) => (/text|json/.test(kind) ? "text" : "integer")

const tableOf = <Row>({ name, columns }: Declared<Row>, schema: SchemaModule) =>
  Object.entries<string>(columns).reduce(
    (made, [column, kind]) =>
      made.addColumn(column, typeOf(kind), (defined) => {
        const bound = kind.endsWith("?") ? defined : defined.notNull()
        return column === "id" ? bound.primaryKey() : bound
      }),
    schema.createTable(name),
  )

const indexesOf = <Row>({ name, indexes = [], usual }: Declared<Row>, schema: SchemaModule) =>
  indexes.flatMap((index) => {
    const columns: Array<string> = [...index, "id"]
    const title = [name, ...index].join("_")
    const whole = schema.createIndex(title).on(name).columns(columns)
    if (usual === undefined) return [whole]
    const part = schema.createIndex(`${title}_usual`).on(name).columns(columns)
    return [whole, part.where(sql.raw<boolean>(usual))]
  })

/** Parses what is not held as it is; a row of texts and numbers is answered as it came. */
const shower = (kinds: ReadonlyArray<readonly [string, unknown]>) => {
  const columns = (wanted: string) =>
    kinds.flatMap(([column, kind]) => (String(kind).startsWith(wanted) ? [column] : []))
  const flags = columns("boolean")
  const objects = columns("json")
  return (stored: Readonly<Record<string, unknown>>) => {
    if (flags.length + objects.length === 0) return stored
    const row: Record<string, unknown> = { ...stored }
    for (const column of flags) if (row[column] !== null) row[column] = row[column] === 1
    for (const column of objects) {
      const text = row[column]
      if (typeof text === "string") row[column] = JSON.parse(text)
    }
    return row
  }
}

/** A value as SQLite holds it. */
const stored = (value: unknown) => {
  if (typeof value === "boolean") return value ? 1 : 0
  return typeof value === "object" && value !== null ? JSON.stringify(value) : value
}

type Values = Readonly<Record<string, unknown>>

/** Tables that a statement knows by their names only. */
export type AnyTables = Record<string, Record<string, unknown>>

type Build = (db: Kysely<AnyTables>, columns: ReadonlyArray<string>, slots: Values) => Compilable

/** The slot of the value that names a row: no column is called so. */
const named = "="

/**
 * A statement over whatever columns it is given, for the row that `by` names.
 *
 * What is no column is left out: an event may have got a field since that nobody shows.
 */
const writer = (known: ReadonlySet<string>, build: Build) => {
  const compiled = new Map<string, (values: Values) => Write>()
  return (row: object, by?: string) => {
    const entries = Object.entries(row).filter(([column]) => known.has(column))
    const columns = entries.map(([column]) => column)
    const name = columns.join()
    const write =
      compiled.get(name) ?? statement<AnyTables>()<Values>((db, slots) => build(db, columns, slots))
    compiled.set(name, write)
    const values = Object.fromEntries(entries.map(([column, value]) => [column, stored(value)]))
    return write({ ...values, [named]: by })
  }
}

const each = (columns: ReadonlyArray<string>, value: (column: string) => unknown) =>
  Object.fromEntries(columns.map((column) => [column, value(column)]))

const writers = <Row>({ name, columns, ...declared }: Declared<Row>) => {
  const by: string = declared.by ?? "id"
  const known = new Set(Object.keys(columns))
  const inserting = (db: Kysely<AnyTables>, columns: ReadonlyArray<string>, slots: Values) =>
    db.insertInto(name).values(each(columns, (column) => slots[column]))
  return {
    insert: writer(known, inserting),
    ensure: writer(known, (...given) => inserting(...given).onConflict((same) => same.doNothing())),
    update: writer(known, (db, columns, slots) =>
      db
        .updateTable(name)
        .set(each(columns, (column) => slots[column]))
        .where(by, "=", slots[named]),
    ),
    add: writer(known, (db, columns, slots) =>
      db
        .updateTable(name)
        .set(each(columns, (column) => sql`${sql.ref(column)} + ${slots[column]}`))
        .where(by, "=", slots[named]),
    ),
    remove: writer(known, (db, _, slots) => db.deleteFrom(name).where(by, "=", slots[named])),
  }
}
