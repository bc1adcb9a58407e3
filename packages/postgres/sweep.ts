/**
 * Removes schemas of other versions that no process has used for long, and says of its own that it
 * is used: a process that has no session just now comes back to its tables.
 *
 * Source: decision 0154.
 */
import { Effect } from "effect"
import type pg from "pg"
import type { Design } from "#projections/database.ts"
import {
  besideOf,
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

/** How often a process says that it uses its schema. */
const tended_every = "10 minutes"

/** How long nobody has used what goes: a release that is put back within a day finds its tables. */
const unused_max = "1 day"

/** What is ours beside the schemas of read models: when a process last had each of those. */
const uses = `
  select pg_advisory_xact_lock(${locks.built}, hashtext('+almanac'));
  create schema if not exists almanac;
  create table if not exists almanac.used (
    schema text collate "C" primary key, at timestamptz not null
  )`

const used = (client: pg.Client, schema: string) =>
  client.query(
    `insert into almanac.used values ($1, now())
      on conflict (schema) do update set at = excluded.at`,
    [schema],
  )

/** Whether its last use is long ago; where none is known, as of an older release, it is now. */
const isUnused = async (client: pg.Client, schema: string) => {
  await client.query("insert into almanac.used values ($1, now()) on conflict do nothing", [schema])
  const query = "select at < now() - $2::interval as is_it from almanac.used where schema = $1"
  const { rows } = await client.query<{ is_it: boolean }>(query, [schema, unused_max])
  return rows[0]?.is_it === true
}

/** Removes them all; where a reader is longer than we wait, the next look finds them again. */
const dropped = async (client: pg.Client, schemas: ReadonlyArray<string>) => {
  try {
    for (const schema of schemas) await dropSchema(client, schema)
    return true
  } catch {
    await client.query("rollback")
    return false
  }
}

/** A schema of another version, with what its rebuilds left; one that is in use is said to be. */
const sweepOther = async (client: pg.Client, schema: string) => {
  if (!(await tryLock(client, locks.used, schema))) return await used(client, schema)
  const all = [besideOf(schema), replacedOf(schema), schema]
  if ((await isUnused(client, schema)) && (await dropped(client, all))) {
    await client.query("delete from almanac.used where schema = $1", [schema])
  }
  await unlock(client, locks.used, schema)
}

/** What rebuilds of this version did not finish; nobody has it but during one. */
const sweepOwn = async (client: pg.Client, schema: string) => {
  if (!(await tryLock(client, locks.built, schema))) return
  await dropped(client, [besideOf(schema), replacedOf(schema)])
  await unlock(client, locks.built, schema)
}

const sweep = async (client: pg.Client, design: Pick<Design<unknown>, "service" | "version">) => {
  const own = schemaOf(design)
  await client.query(uses)
  await used(client, own)
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
 * Sweeps now, and again and again until the scope closes. In a session of its own, which ends each
 * time: that of a writer may be in the middle of a transaction.
 */
export const tended = Effect.fnUntraced(function* (
  server: PostgresServer,
  design: Pick<Design<unknown>, "service" | "version">,
) {
  const beginning = { begun: () => Promise.resolve() }
  const once = Effect.scoped(
    Effect.flatMap(session(server, schemaOf(design), beginning), ({ run }) =>
      run((client) => sweep(client, design)),
    ),
  )
  yield* once
  // What fails is tried again next time; that the server is away others say.
  const again = Effect.andThen(Effect.sleep(tended_every), Effect.ignore(once))
  yield* Effect.forkScoped(Effect.forever(again))
})
