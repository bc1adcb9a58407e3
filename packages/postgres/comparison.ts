/** Compares two schemas row by row in the order of their keys, without having either in memory. */
import { Effect, type Scope } from "effect"
import pg from "pg"
import type {
  Comparing,
  DatabaseUnusable,
  Differences,
  RowDifference,
  ShownValue,
} from "#projections/database.ts"
import { failureOf } from "./failure.ts"
import { readCheckpoint } from "./schema.ts"
import { type PostgresServer, sessionOf } from "./server.ts"

export interface Compared {
  readonly kept: string
  readonly rebuilt: string
  /** Rows that are told; all are counted. */
  readonly rows_max: number
}

type Row = Readonly<Record<string, ShownValue>>

/** Rows that are had at a time of each side. */
const fetched_rows = 500

/** Tables with their keys in order: what is declared, or else all columns. */
const keysOf = `
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

/** A session that sees its schema as it is at its first question. */
const snapshot = Effect.fnUntraced(function* (server: PostgresServer, schema: string) {
  const client = yield* Effect.acquireRelease(
    Effect.try({ try: () => new pg.Client(sessionOf(server, schema)), catch: failureOf }),
    (made) => Effect.promise(() => made.end().catch(() => {})),
  )
  // What is asked of a session that ended fails by itself.
  client.on("error", () => {})
  const begin = async () => {
    await client.connect()
    await client.query("begin isolation level repeatable read read only")
    return await readCheckpoint(client)
  }
  const { position } = yield* Effect.tryPromise({ try: begin, catch: failureOf })
  return { client, position }
})

/** All rows of a table by its key, as many at a time as `fetched_rows`. */
async function* rowsOf(client: pg.Client, { table, key }: Table): AsyncGenerator<Row, undefined> {
  const order = key.map((column) => `"${column}"`).join(", ")
  await client.query(
    `declare compared no scroll cursor for select * from "${table}" order by ${order}`,
  )
  for (;;) {
    const { rows } = await client.query<Row>(`fetch ${fetched_rows} from compared`)
    yield* rows
    if (rows.length < fetched_rows) break
  }
  await client.query("close compared")
  return undefined
}

/** By bytes, as the tables' columns are ordered; null is above all. */
const order = (one: ShownValue = null, other: ShownValue = null): number => {
  if (one === null || other === null) return Number(one === null) - Number(other === null)
  if (typeof one === "number" && typeof other === "number") return one - other
  return Buffer.compare(Buffer.from(String(one)), Buffer.from(String(other)))
}

const orderBy = (key: ReadonlyArray<string>, one: Row | undefined, other: Row | undefined) => {
  if (one === undefined) return 1
  if (other === undefined) return -1
  for (const column of key) {
    const found = order(one[column], other[column])
    if (found !== 0) return found
  }
  return 0
}

/** What a row of the one side and one of the other, of one key, do not have in common. */
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
  tell: (difference: RowDifference) => void,
) => {
  const keyIn = (row: Row) => Object.fromEntries(key.map((column) => [column, row[column] ?? null]))
  let one = (await kept.next()).value
  let other = (await rebuilt.next()).value
  while (one !== undefined || other !== undefined) {
    const found = orderBy(key, one, other)
    if (found < 0 && one !== undefined) {
      tell({ table, key: keyIn(one), kind: "extra", columns: [] })
    } else if (found > 0 && other !== undefined) {
      tell({ table, key: keyIn(other), kind: "missing", columns: [] })
    } else if (one !== undefined && other !== undefined) {
      const columns = changesOf(one, other)
      if (columns.length > 0) tell({ table, key: keyIn(one), kind: "changed", columns })
    }
    if (found <= 0) one = (await kept.next()).value
    if (found >= 0) other = (await rebuilt.next()).value
  }
}

/** Begins: from here on the kept schema is seen as it is, whatever is written to it. */
export const postgresComparison = Effect.fnUntraced(function* (
  server: PostgresServer,
  asked: Compared,
): Effect.fn.Return<Comparing, DatabaseUnusable, Scope.Scope> {
  const kept = yield* snapshot(server, asked.kept)
  const compare = async (rebuilt: pg.Client): Promise<Differences> => {
    const { rows: tables } = await kept.client.query<Table>(keysOf, [asked.kept])
    const rows: Array<RowDifference> = []
    let count = 0
    for (const table of tables) {
      await compareTable(
        rowsOf(kept.client, table),
        rowsOf(rebuilt, table),
        table,
        (difference) => {
          count++
          if (rows.length < asked.rows_max) rows.push(difference)
        },
      )
    }
    return { tables: tables.length, count, rows }
  }
  return {
    position: kept.position,
    differences: Effect.gen(function* () {
      const rebuilt = yield* snapshot(server, asked.rebuilt)
      return yield* Effect.tryPromise({ try: () => compare(rebuilt.client), catch: failureOf })
    }).pipe(Effect.scoped),
  }
})
