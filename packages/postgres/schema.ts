/**
 * Schemas of read models: one for each service and version, `almanac_<service>_v<version>`, one
 * beside it while it is built again, and the one that was replaced until nobody reads it.
 */
import type pg from "pg"
import type { Checkpoint, Design, Dump } from "#projections/database.ts"
import { postgresCompiler } from "./statement.ts"

/**
 * Advisory locks, which are by a class and a schema's name. `used` is shared by all processes that
 * have the schema; who can have it alone may remove it.
 */
export const locks = { used: 0x616c_0001, written: 0x616c_0002, built: 0x616c_0003 } as const

/** How long a table that is to go waits for its readers, before it is left for the next start. */
const drop_wait = "2s"

export const prefixOf = (service: string) => `almanac_${service.replaceAll("-", "_")}_v`

export const schemaOf = ({ service, version }: Pick<Design<unknown>, "service" | "version">) =>
  `${prefixOf(service)}${version}`

export const besideOf = (schema: string) => `${schema}_building`
export const replacedOf = (schema: string) => `${schema}_replaced`

/** A service's name and a version make a schema's: nothing in it needs a quote. */
const checkpointOf = (schema: string) => `${schema}.checkpoint`

const isThere = async (client: pg.Client, schema: string) => {
  const query = "select to_regclass($1) is not null as is_there"
  const { rows } = await client.query<{ is_there: boolean }>(query, [checkpointOf(schema)])
  return rows[0]?.is_there === true
}

/** Makes the tables unless they are there. Others that begin at the same time wait. */
export const makeTables = async <Tables>(
  client: pg.Client,
  schema: string,
  { create }: Design<Tables>,
) => {
  await client.query("begin")
  await client.query("select pg_advisory_xact_lock($1, hashtext($2))", [locks.built, `+${schema}`])
  if (!(await isThere(client, schema))) {
    await client.query(`create schema if not exists ${schema}`)
    await client.query(
      `create table ${checkpointOf(schema)} (
        id integer primary key check (id = 1), position bigint not null, hash text not null
      )`,
    )
    await client.query(`insert into ${checkpointOf(schema)} values (1, 0, '')`)
    for (const statement of create(postgresCompiler<Tables>())) await client.query(statement)
  }
  await client.query("commit")
}

/** What an empty schema shows. */
export const nothing: Checkpoint = { position: 0, hash: "" }

export const readCheckpoint = async (client: pg.Client): Promise<Checkpoint> => {
  const query = "select position, hash from checkpoint"
  const { rows } = await client.query<Checkpoint>({ name: "checkpoint", text: query })
  const [row] = rows
  if (row === undefined) throw new Error("the checkpoint's row is not there")
  return row
}

/** Whether this session has the lock now; `shared` ones others may have too. */
export const tryLock = async (client: pg.Client, kind: number, schema: string) => {
  const query = "select pg_try_advisory_lock($1, hashtext($2)) as is_had"
  const { rows } = await client.query<{ is_had: boolean }>(query, [kind, schema])
  return rows[0]?.is_had === true
}

export const unlock = (client: pg.Client, kind: number, schema: string) =>
  client.query("select pg_advisory_unlock($1, hashtext($2))", [kind, schema])

/** Waits where somebody removes it just now. */
export const lockUsed = (client: pg.Client, schema: string) =>
  client.query("select pg_advisory_lock_shared($1, hashtext($2))", [locks.used, schema])

export const dropSchema = async (client: pg.Client, schema: string) => {
  await client.query("begin")
  await client.query(`set local lock_timeout = '${drop_wait}'`)
  await client.query(`drop schema if exists ${schema} cascade`)
  await client.query("commit")
}

export interface Exchange {
  readonly schema: string
  /** What the schema beside shows. */
  readonly position: number
  /** What the schema shows of another log, where it does. */
  readonly foreign: Checkpoint | undefined
}

/** Puts the schema beside in the place of the other, unless that shows more; answers whether. */
export const exchange = async (client: pg.Client, { schema, position, foreign }: Exchange) => {
  await client.query("begin")
  if (await isThere(client, schema)) {
    const kept = checkpointOf(schema)
    const query = `select position, hash from ${kept} for update`
    const [shown = nothing] = (await client.query<Checkpoint>(query)).rows
    const is_foreign = shown.position === foreign?.position && shown.hash === foreign.hash
    if (shown.position > position && !is_foreign) {
      await client.query("rollback")
      return false
    }
    // Who waits to write there finds another position than its own, and writes nothing.
    await client.query(`update ${kept} set position = -1`)
    await client.query(`alter schema ${schema} rename to ${replacedOf(schema)}`)
  }
  await client.query(`alter schema ${besideOf(schema)} rename to ${schema}`)
  await client.query("commit")
  return true
}

/** Every row of every table as JSON, in a fixed order. */
export const dumpOf = async (client: pg.Client, schema: string): Promise<Dump> => {
  const query = "select tablename from pg_tables where schemaname = $1"
  const { rows: tables } = await client.query<{ tablename: string }>(query, [schema])
  const dumped: Record<string, ReadonlyArray<string>> = {}
  for (const table of tables.map(({ tablename }) => tablename).sort()) {
    const { rows } = await client.query(`select * from ${schema}."${table}"`)
    dumped[table] = rows.map((row) => JSON.stringify(row)).sort()
  }
  return dumped
}
