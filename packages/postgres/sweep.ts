/**
 * Removes schemas of other versions that no process has used for a day. Each process records
 * the use of its own schema, because it may be without a session for a while.
 *
 * Source: decision 0154.
 */
import { Effect } from "effect"
import type pg from "pg"
import type { Design } from "#projections/database.ts"
import {
  buildingOf,
  dropSchema,
  locks,
  prefixOf,
  replacedOf,
  schemaOf,
  tryLock,
  unlock,
} from "./schema.ts"
import type { PostgresServer } from "./server.ts"
import { session } from "./session.ts"

/** How often a process records the use of its schema. */
const sweep_interval = "10 minutes"

/** After this time a schema is removed: a rollback within a day finds its tables. */
const unused_max = "1 day"

/** The table of the last use of each schema. */
const uses = `
  select pg_advisory_xact_lock(${locks.built}, hashtext('+almanac'));
  create schema if not exists almanac;
  create table if not exists almanac.used (
    schema text collate "C" primary key, at timestamptz not null
  )`

const recordUse = (client: pg.Client, schema: string) =>
  client.query(
    `insert into almanac.used values ($1, now())
      on conflict (schema) do update set at = excluded.at`,
    [schema],
  )

/**
 * Whether the last use was too long ago. An unknown schema, of an older release, counts as used
 * now.
 */
const isUnused = async (client: pg.Client, schema: string) => {
  await client.query("insert into almanac.used values ($1, now()) on conflict do nothing", [schema])
  const query = "select at < now() - $2::interval as is_unused from almanac.used where schema = $1"
  const { rows } = await client.query<{ is_unused: boolean }>(query, [schema, unused_max])
  return rows[0]?.is_unused === true
}

/** Drops schemas. Returns false if a long reader blocks it; the next sweep tries again. */
const dropAll = async (client: pg.Client, schemas: ReadonlyArray<string>) => {
  try {
    for (const schema of schemas) await dropSchema(client, schema)
    return true
  } catch {
    await client.query("rollback")
    return false
  }
}

/** Drops an unused schema of another version, or records its use if a process has it open. */
const sweepOther = async (client: pg.Client, schema: string) => {
  if (!(await tryLock(client, locks.used, schema))) return await recordUse(client, schema)
  const all = [buildingOf(schema), replacedOf(schema), schema]
  if ((await isUnused(client, schema)) && (await dropAll(client, all))) {
    await client.query("delete from almanac.used where schema = $1", [schema])
  }
  await unlock(client, locks.used, schema)
}

/** Drops schemas left by interrupted rebuilds of this version. */
const sweepOwn = async (client: pg.Client, schema: string) => {
  if (!(await tryLock(client, locks.built, schema))) return
  await dropAll(client, [buildingOf(schema), replacedOf(schema)])
  await unlock(client, locks.built, schema)
}

const sweep = async (client: pg.Client, design: Pick<Design<unknown>, "service" | "version">) => {
  const own = schemaOf(design)
  await client.query(uses)
  await recordUse(client, own)
  const { rows } = await client.query<{ of: string }>(
    `select distinct regexp_replace(nspname, '_(building|replaced)$', '') as of
      from pg_namespace where nspname ~ $1`,
    [`^${prefixOf(design.service)}\\d+(_building|_replaced)?$`],
  )
  for (const { of } of rows) {
    await (of === own ? sweepOwn(client, of) : sweepOther(client, of))
  }
}

/**
 * Sweeps now and periodically until the scope closes. Each sweep uses its own session, because the
 * writer's may be in a transaction.
 */
export const sweepPeriodically = Effect.fnUntraced(function* (
  server: PostgresServer,
  design: Pick<Design<unknown>, "service" | "version">,
) {
  const hooks = { onConnected: () => Promise.resolve() }
  const once = Effect.scoped(
    Effect.flatMap(session(server, schemaOf(design), hooks), ({ run }) =>
      run((client) => sweep(client, design)),
    ),
  )
  yield* once
  // Failures are retried next time. Other code reports an unreachable server.
  const again = Effect.andThen(Effect.sleep(sweep_interval), Effect.ignore(once))
  yield* Effect.forkScoped(Effect.forever(again))
})
