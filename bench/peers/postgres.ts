/**
 * A hand-written event store in PostgreSQL, as a good engineer would write it: prepared statements,
 * a pool of 16, and event and read-model row in one transaction and one round trip.
 *
 * It runs twice. `postgres` implements the rule in the database too, so that a command is one round
 * trip and the read another. `postgres, rule in the application` loads the state first, decides in
 * TypeScript, then appends at the version it read. The goal compares with the first, the faster
 * one.
 */
import type { Contestant, Running } from "../harness/contestant.ts"
import {
  type Command,
  decide,
  eventOf,
  inTurn,
  mustShow,
  unregistered,
  type Worker,
} from "../log/work.ts"
import { installed } from "./installed.ts"

export interface Query {
  readonly name: string
  readonly text: string
  readonly values: ReadonlyArray<unknown>
}

/** The part of a pg.Pool that is used here. */
export interface Pool {
  readonly query: (query: Query | string) => Promise<{ readonly rows: ReadonlyArray<unknown> }>
  readonly end: () => Promise<void>
  readonly on: (event: "error", listener: () => void) => unknown
}

interface Pg {
  readonly default: { readonly Pool: new (settings: Record<string, unknown>) => Pool }
}

/** As many connections as there are commands in flight. */
const connections_max = 16

const schema = `
create table event (
  position bigint generated always as identity primary key,
  worker_id text not null, version integer not null, data jsonb not null,
  unique (worker_id, version));
create table worker (
  worker_id text primary key, version integer not null, running_jobs integer not null,
  job_id text not null, updated_at timestamptz not null);

create function append(id text, expected integer, event jsonb, running integer) returns void
language plpgsql as $$
begin
  insert into event (worker_id, version, data) values (id, expected + 1, event);
  insert into worker values (id, expected + 1, running, event->>'job_id', now())
  on conflict (worker_id) do update set version = excluded.version,
    running_jobs = excluded.running_jobs, job_id = excluded.job_id, updated_at = excluded.updated_at
    where worker.version = expected;
  if not found then raise exception 'wrong version'; end if;
end $$;

create function handle(id text, delta integer, event jsonb) returns void
language plpgsql as $$
declare seen record;
begin
  select coalesce(max(version), 0) as version, coalesce(max(running_jobs), 0) as running
    into seen from worker where worker_id = id;
  if seen.running + delta not between 0 and 1 then raise exception 'refused'; end if;
  perform append(id, seen.version, event, seen.running + delta);
end $$;`

/** A pool on a separate database with the tables and functions above. */
export const database = async (socket: string | undefined, name: string): Promise<Pool> => {
  if (!socket) throw new Error("no PostgreSQL server")
  const { default: pg } = await installed<Pg>("pg")
  const settings = { host: socket, user: "postgres", max: connections_max }
  const server = new pg.Pool({ ...settings, database: "postgres" })
  await server.query(`create database ${name}`)
  await server.end()
  const pool = new pg.Pool({ ...settings, database: name })
  // The next query reports a lost idle connection; without a listener it would crash the process.
  pool.on("error", () => {})
  await pool.query(schema)
  return pool
}

const rowOf = async (pool: Pool, { worker_id }: Command): Promise<Worker | undefined> => {
  const text = "select worker_id, version, running_jobs from worker where worker_id = $1"
  const { rows } = await pool.query({ name: "row", text, values: [worker_id] })
  // The statement's three columns are the three fields.
  return rows[0] as Worker | undefined
}

/** The whole command in one round trip. */
export const handle = async (pool: Pool, command: Command): Promise<void> => {
  const delta = command.type === "AssignJob" ? 1 : -1
  const values = [command.worker_id, delta, JSON.stringify(eventOf(command, new Date()))]
  await pool.query({ name: "handle", text: "select handle($1, $2, $3)", values })
}

export const mustRead = async (pool: Pool, command: Command): Promise<void> =>
  mustShow(await rowOf(pool, command), command)

const decideAndAppend = async (pool: Pool, command: Command): Promise<void> => {
  const seen = (await rowOf(pool, command)) ?? unregistered(command.worker_id)
  const { running_jobs } = decide(seen, command)
  const event = JSON.stringify(eventOf(command, new Date()))
  const values = [command.worker_id, seen.version, event, running_jobs]
  await pool.query({ name: "append", text: "select append($1, $2, $3, $4)", values })
}

const running = (pool: Pool, write: typeof handle): Running => ({
  run: inTurn(async (command) => {
    await write(pool, command)
    await mustRead(pool, command)
  }),
  stop: () => pool.end(),
})

export const postgres: Contestant = {
  name: "postgres",
  start: async (home) => running(await database(home.postgres, "hand_written"), handle),
}

export const postgresApplication: Contestant = {
  name: "postgres, rule in the application",
  start: async (home) => running(await database(home.postgres, "application"), decideAndAppend),
}
