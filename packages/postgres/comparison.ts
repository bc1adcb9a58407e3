/** Compares two schemas row by row in key order, without loading either into memory. */
import { Effect, type Scope } from "effect"
import pg from "pg"
import type {
  DatabaseComparison,
  DatabaseUnusable,
  Differences,
  DumpValue,
  RowDifference,
} from "#projections/database.ts"
import { failureOf } from "./failure.ts"
import { readCheckpoint } from "./schema.ts"
import { type PostgresServer, sessionOf } from "./server.ts"

export interface ComparedSchemas {
  readonly kept: string
  readonly rebuilt: string
  /** The number of differences that are listed; all are counted. */
  readonly rows_max: number
}

type Row = Readonly<Record<string, DumpValue>>

/** Rows per fetch from each side. */
const fetched_rows = 500

/** Tables with their primary keys, or all columns if they have none. */
const table_keys_query = `
  select t.relname as table, array_agg(a.attname::text order by a.attnum) as key
  from pg_class t
    join pg_namespace n on n.oid = t.relnamespace
    left join pg_index i on i.indrelid = t.oid and i.indisprimary
    join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
      and (i.indkey is null or a.attnum = any(i.indkey))
  where n.nspname = $1 and t.relkind = 'r' and t.relname not like 'live\\_%'
  group by t.relname order by t.relname`

interface Table {
  readonly table: string
  readonly key: ReadonlyArray<string>
}

/** A session with a snapshot of its schema. */
const snapshot = Effect.fnUntraced(function* (server: PostgresServer, schema: string) {
  const client = yield* Effect.acquireRelease(
    Effect.try({ try: () => new pg.Client(sessionOf(server, schema)), catch: failureOf }),
    (connected) => Effect.promise(() => connected.end().catch(() => {})),
  )
  // Statements on a lost session reject on their own.
  client.on("error", () => {})
  const begin = async () => {
    await client.connect()
    await client.query("begin isolation level repeatable read read only")
    return await readCheckpoint(client)
  }
  const { position } = yield* Effect.tryPromise({ try: begin, catch: failureOf })
  return { client, position }
})

/** All rows of a table in key order. */
async function* rowsOf(client: pg.Client, { table, key }: Table): AsyncGenerator<Row, undefined> {
  const columns = key.map((column) => `"${column}"`).join(", ")
  await client.query(
    `declare compared no scroll cursor for select * from "${table}" order by ${columns}`,
  )
  for (;;) {
    const { rows } = await client.query<Row>(`fetch ${fetched_rows} from compared`)
    yield* rows
    if (rows.length < fetched_rows) break
  }
  await client.query("close compared")
  return undefined
}

/** The order of the columns: by bytes, nulls last. */
const compareValues = (one: DumpValue = null, other: DumpValue = null): number => {
  if (one === null || other === null) return Number(one === null) - Number(other === null)
  if (typeof one === "number" && typeof other === "number") return one - other
  return Buffer.compare(Buffer.from(String(one)), Buffer.from(String(other)))
}

const compareKeys = (key: ReadonlyArray<string>, one: Row | undefined, other: Row | undefined) => {
  if (one === undefined) return 1
  if (other === undefined) return -1
  for (const column of key) {
    const result = compareValues(one[column], other[column])
    if (result !== 0) return result
  }
  return 0
}

/** The columns that differ between two rows with the same key. */
const changesOf = (kept: Row, rebuilt: Row) =>
  Object.keys(kept)
    .filter((column) => kept[column] !== rebuilt[column])
    .map((column) => ({
      column,
      kept: kept[column] ?? null,
      rebuilt: rebuilt[column] ?? null,
    }))

const compareTable = async (
  kept: AsyncGenerator<Row, undefined>,
  rebuilt: AsyncGenerator<Row, undefined>,
  { table, key }: Table,
  report: (difference: RowDifference) => void,
) => {
  const keyOf = (row: Row) => Object.fromEntries(key.map((column) => [column, row[column] ?? null]))
  let one = (await kept.next()).value
  let other = (await rebuilt.next()).value
  while (one !== undefined || other !== undefined) {
    const result = compareKeys(key, one, other)
    if (result < 0 && one !== undefined) {
      report({ table, key: keyOf(one), kind: "extra", columns: [] })
    } else if (result > 0 && other !== undefined) {
      report({ table, key: keyOf(other), kind: "missing", columns: [] })
    } else if (one !== undefined && other !== undefined) {
      const columns = changesOf(one, other)
      if (columns.length > 0) report({ table, key: keyOf(one), kind: "changed", columns })
    }
    if (result <= 0) one = (await kept.next()).value
    if (result >= 0) other = (await rebuilt.next()).value
  }
}

/** Starts a comparison. It reads `kept` as of now; later writes do not affect it. */
export const postgresComparison = Effect.fnUntraced(function* (
  server: PostgresServer,
  schemas: ComparedSchemas,
): Effect.fn.Return<DatabaseComparison, DatabaseUnusable, Scope.Scope> {
  const kept = yield* snapshot(server, schemas.kept)
  const compare = async (rebuilt: pg.Client): Promise<Differences> => {
    const { rows: tables } = await kept.client.query<Table>(table_keys_query, [schemas.kept])
    const rows: Array<RowDifference> = []
    let count = 0
    for (const table of tables) {
      await compareTable(
        rowsOf(kept.client, table),
        rowsOf(rebuilt, table),
        table,
        (difference) => {
          count++
          if (rows.length < schemas.rows_max) rows.push(difference)
        },
      )
    }
    return { tables: tables.length, count, rows }
  }
  return {
    position: kept.position,
    differences: Effect.gen(function* () {
      const rebuilt = yield* snapshot(server, schemas.rebuilt)
      return yield* Effect.tryPromise({ try: () => compare(rebuilt.client), catch: failureOf })
    }).pipe(Effect.scoped),
  }
})
