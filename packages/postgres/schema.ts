/**
 * The schemas of read models: one per service and version, `almanac_<service>_v<version>`, a second
 * one during a rebuild, and the replaced one until its readers are done.
 */
import type pg from "pg"
import type { Checkpoint, Design, Dump } from "#projections/database.ts"
import { postgresCompiler } from "./statement.ts"

/**
 * The classes of advisory locks; the key is the schema's name. All processes that use a schema
 * share `used`; a process that acquires it exclusively may remove the schema.
 */
export const locks = { used: 0x616c_0001, written: 0x616c_0002, built: 0x616c_0003 } as const

/** How long dropping a table waits for its readers, before it is left for the next start. */
const drop_timeout = "2s"

export const prefixOf = (service: string) => `almanac_${service.replaceAll("-", "_")}_v`

export const schemaOf = ({ service, version }: Pick<Design<unknown>, "service" | "version">) =>
  `${prefixOf(service)}${version}`

export const buildingOf = (schema: string) => `${schema}_building`
export const replacedOf = (schema: string) => `${schema}_replaced`

/** Schema names consist of a service and a version and need no quotes. */
const checkpointOf = (schema: string) => `${schema}.checkpoint`

const tablesExist = async (client: pg.Client, schema: string) => {
  const query = "select to_regclass($1) is not null as is_present"
  const { rows } = await client.query<{ is_present: boolean }>(query, [checkpointOf(schema)])
  return rows[0]?.is_present === true
}

/** Creates the tables if they do not exist. A lock serializes concurrent creations. */
export const createTables = async <Tables>(
  client: pg.Client,
  schema: string,
  { create }: Design<Tables>,
) => {
  await client.query("begin")
  await client.query("select pg_advisory_xact_lock($1, hashtext($2))", [locks.built, `+${schema}`])
  if (!(await tablesExist(client, schema))) {
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

/** The checkpoint of an empty schema. */
export const empty_checkpoint: Checkpoint = { position: 0, hash: "" }

export const readCheckpoint = async (client: pg.Client): Promise<Checkpoint> => {
  const query = "select position, hash from checkpoint"
  const { rows } = await client.query<Checkpoint>({ name: "checkpoint", text: query })
  const [row] = rows
  if (row === undefined) throw new Error("the checkpoint has no row")
  return row
}

/** Tries to acquire an exclusive lock. */
export const tryLock = async (client: pg.Client, kind: number, schema: string) => {
  const query = "select pg_try_advisory_lock($1, hashtext($2)) as is_acquired"
  const { rows } = await client.query<{ is_acquired: boolean }>(query, [kind, schema])
  return rows[0]?.is_acquired === true
}

export const unlock = (client: pg.Client, kind: number, schema: string) =>
  client.query("select pg_advisory_unlock($1, hashtext($2))", [kind, schema])

/** Acquires the shared lock; waits while the schema is being removed. */
export const lockUsed = (client: pg.Client, schema: string) =>
  client.query("select pg_advisory_lock_shared($1, hashtext($2))", [locks.used, schema])

export const dropSchema = async (client: pg.Client, schema: string) => {
  await client.query("begin")
  await client.query(`set local lock_timeout = '${drop_timeout}'`)
  await client.query(`drop schema if exists ${schema} cascade`)
  await client.query("commit")
}

export interface Swap {
  readonly schema: string
  /** The position of the rebuild. */
  readonly position: number
  /** The schema's checkpoint, if it is of another log. */
  readonly foreign: Checkpoint | undefined
}

/** Swaps in the rebuild, unless the schema has advanced beyond it. Returns whether it did. */
export const swapSchemas = async (client: pg.Client, { schema, position, foreign }: Swap) => {
  await client.query("begin")
  if (await tablesExist(client, schema)) {
    const kept = checkpointOf(schema)
    const query = `select position, hash from ${kept} for update`
    const [current = empty_checkpoint] = (await client.query<Checkpoint>(query)).rows
    const is_foreign = current.position === foreign?.position && current.hash === foreign.hash
    if (current.position > position && !is_foreign) {
      await client.query("rollback")
      return false
    }
    // A waiting writer finds an unexpected position and writes nothing.
    await client.query(`update ${kept} set position = -1`)
    await client.query(`alter schema ${schema} rename to ${replacedOf(schema)}`)
  }
  await client.query(`alter schema ${buildingOf(schema)} rename to ${schema}`)
  await client.query("commit")
  return true
}

/** Every row of every table as JSON, in a fixed order. */
export const dumpOf = async (client: pg.Client, schema: string): Promise<Dump> => {
  const query = "select tablename from pg_tables where schemaname = $1"
  const { rows: tables } = await client.query<{ tablename: string }>(query, [schema])
  const dump: Record<string, ReadonlyArray<string>> = {}
  for (const table of tables.map(({ tablename }) => tablename).sort()) {
    const { rows } = await client.query(`select * from ${schema}."${table}"`)
    dump[table] = rows.map((row) => JSON.stringify(row)).sort()
  }
  return dump
}
