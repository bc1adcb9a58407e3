/**
 * A table of resources, derived from the list of their fields: its definition, writes and reads.
 *
 * Each statement is compiled once for each set of columns that it writes.
 */
import type { Schema } from "effect"
import { type Compilable, type Kysely, type SchemaModule, sql } from "kysely"
import { statement, type Write } from "#projections/statement.ts"
import { isNullable, kindOf } from "#schemas/fields.ts"

/** SQLite representation of a value: 0 or 1 for a boolean, JSON for an object. */
type StoredValue<Value> = Value extends boolean
  ? number
  : Value extends string | number | null
    ? Value
    : string

export type Stored<Row> = { readonly [Column in keyof Row]: StoredValue<Row[Column]> }

export interface Table<Row> {
  readonly name: string
  /** The kind of each column; a question mark means that it may be null. */
  readonly columns: { readonly [Column in Extract<keyof Row, string>]: string }
  /** Columns of each index; a query uses the first matching one. */
  readonly indexes: ReadonlyArray<ReadonlyArray<string>>
  readonly create: (schema: SchemaModule) => ReadonlyArray<Compilable>
  readonly insert: (row: Row) => Write
  /** Inserts a row unless its id exists. */
  readonly ensure: (row: Row) => Write
  /** Does nothing if the row does not exist. */
  readonly update: (by: string, values: Partial<Row>) => Write
  /** Adds to numbers. */
  readonly add: (by: string, values: Partial<Row>) => Write
  readonly remove: (by: string) => Write
  /** Converts a row returned by SQLite. */
  readonly toRow: (stored: Stored<Row>) => Row
}

type Fields = Schema.Struct.Fields

interface Declared<F extends Fields> {
  readonly name: string
  /** The fields of a row define its columns. */
  readonly fields: F
  /** The column that identifies a row in writes, if it is not the id. */
  readonly by?: Extract<keyof F, string>
  /** The primary key, if it is not the id. */
  readonly key?: ReadonlyArray<Extract<keyof F, string>>
  /** In each index, rows with the same values are in the order of their ids. */
  readonly indexes?: ReadonlyArray<ReadonlyArray<Extract<keyof F, string>>>
  /** A condition that most lists use: each index also separates these rows. */
  readonly usual?: string
}

/** Declares a table. */
export const table = <F extends Fields>(declared: Declared<F>): Table<Schema.Struct<F>["Type"]> => {
  type Row = Schema.Struct<F>["Type"]
  const { name, indexes = [] } = declared
  const columns = columnsOf(declared.fields)
  const design = { ...declared, columns }
  const { insert, ensure, update, add, remove } = writers(design)
  const parseRow = rowParser(Object.entries(columns))
  return {
    name,
    // Each field is one column of the same name.
    columns: columns as Table<Row>["columns"],
    indexes,
    create: (schema) => [tableOf(design, schema), ...indexesOf(design, schema)],
    insert: (row) => insert(row),
    ensure: (row) => ensure(row),
    update: (by, values) => update(values, by),
    add: (by, values) => add(values, by),
    remove: (by) => remove({}, by),
    // The fields define the type of each column of a row.
    toRow: (row) => parseRow(row) as Row,
  }
}

const columnsOf = (fields: Fields): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      isNullable(field) ? `${kindOf(field)}?` : kindOf(field),
    ]),
  )

interface Design {
  readonly name: string
  readonly columns: Readonly<Record<string, string>>
  readonly by?: string
  readonly key?: ReadonlyArray<string>
  readonly indexes?: ReadonlyArray<ReadonlyArray<string>>
  readonly usual?: string
}

/** The SQLite type of a column of this kind. */
export const typeOf = (kind: string) => (/text|json/.test(kind) ? "text" : "integer")

const tableOf = ({ name, columns, key = ["id"] }: Design, schema: SchemaModule) => {
  const [only, ...more] = key
  const made = Object.entries(columns).reduce(
    (builder, [column, kind]) =>
      builder.addColumn(column, typeOf(kind), (defined) => {
        const bound = kind.endsWith("?") ? defined : defined.notNull()
        return column === only && more.length === 0 ? bound.primaryKey() : bound
      }),
    schema.createTable(name),
  )
  if (more.length === 0) return made
  // The builder's type has no columns, because they are known by name only.
  return made.addPrimaryKeyConstraint(`${name}_key`, [...key] as Array<never>)
}

const indexesOf = ({ name, indexes = [], usual }: Design, schema: SchemaModule) =>
  indexes.flatMap((index) => {
    const columns: Array<string> = [...index, "id"]
    const title = [name, ...index].join("_")
    const whole = schema.createIndex(title).on(name).columns(columns)
    if (usual === undefined) return [whole]
    const part = schema.createIndex(`${title}_usual`).on(name).columns(columns)
    return [whole, part.where(sql.raw<boolean>(usual))]
  })

/** Parses values whose stored form differs; a row of strings and numbers is returned unchanged. */
const rowParser = (kinds: ReadonlyArray<readonly [string, unknown]>) => {
  const columns = (type: string) =>
    kinds.flatMap(([column, kind]) => (String(kind).startsWith(type) ? [column] : []))
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

/** A value as stored in SQLite. */
const stored = (value: unknown) => {
  if (typeof value === "boolean") return value ? 1 : 0
  return typeof value === "object" && value !== null ? JSON.stringify(value) : value
}

type Values = Readonly<Record<string, unknown>>

/** Tables addressed by name only. */
export type AnyTables = Record<string, Record<string, unknown>>

type Build = (db: Kysely<AnyTables>, columns: ReadonlyArray<string>, slots: Values) => Compilable

/** The slot of the value that identifies a row: no column has this name. */
const key_slot = "="

/**
 * A statement over any set of columns, for the row identified by `by`.
 *
 * Unknown columns are ignored: an event may have a newer field that no view shows.
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
    return write({ ...values, [key_slot]: by })
  }
}

const each = (columns: ReadonlyArray<string>, value: (column: string) => unknown) =>
  Object.fromEntries(columns.map((column) => [column, value(column)]))

const writers = ({ name, columns, by = "id" }: Design) => {
  const known = new Set(Object.keys(columns))
  const inserting = (db: Kysely<AnyTables>, columns: ReadonlyArray<string>, slots: Values) =>
    db.insertInto(name).values(each(columns, (column) => slots[column]))
  return {
    insert: writer(known, inserting),
    ensure: writer(known, (...args) => inserting(...args).onConflict((same) => same.doNothing())),
    update: writer(known, (db, columns, slots) =>
      db
        .updateTable(name)
        .set(each(columns, (column) => slots[column]))
        .where(by, "=", slots[key_slot]),
    ),
    add: writer(known, (db, columns, slots) =>
      db
        .updateTable(name)
        .set(each(columns, (column) => sql`${sql.ref(column)} + ${slots[column]}`))
        .where(by, "=", slots[key_slot]),
    ),
    remove: writer(known, (db, _, slots) => db.deleteFrom(name).where(by, "=", slots[key_slot])),
  }
}
