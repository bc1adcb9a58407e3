/**
 * Emmett on SQLite: fold the stream, decide, append with an inline projection, read the row.
 *
 * A single connection, and one command at a time: by default Emmett opens the file again for each
 * call (SQLITE_BUSY with several in flight), and its transactions on a shared connection merge when
 * they overlap. Thus with 16 in flight, 15 wait in order of arrival.
 */
import { join } from "node:path"
import type { Contestant } from "../harness/contestant.ts"
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

interface Connection {
  readonly command: (sql: string, values?: ReadonlyArray<unknown>) => Promise<unknown>
  readonly querySingle: (sql: string, values?: ReadonlyArray<unknown>) => Promise<Worker | null>
  readonly close: () => void
}

interface Event {
  readonly type: string
  readonly data: Omit<ReturnType<typeof eventOf>, "type">
}

interface Recorded extends Event {
  readonly metadata: { readonly streamPosition: bigint }
}

interface Store {
  readonly aggregateStream: (
    stream: string,
    options: {
      readonly evolve: (worker: Worker, event: Event) => Worker
      readonly initialState: () => Worker
    },
  ) => Promise<{ readonly state: Worker; readonly currentStreamVersion: bigint }>
  readonly appendToStream: (
    stream: string,
    events: ReadonlyArray<Event>,
    options: { readonly expectedStreamVersion: bigint },
  ) => Promise<unknown>
}

interface EmmettSqlite {
  readonly sqliteConnection: (options: { readonly fileName: string }) => Connection
  readonly getSQLiteEventStore: (options: Record<string, unknown>) => Store
}

const schema = `create table worker (worker_id text primary key, version integer not null,
  running_jobs integer not null, job_id text not null, updated_at text not null)`

const upsert = `insert into worker values (?, 1, ?, ?, ?) on conflict (worker_id) do update set
  version = version + 1, running_jobs = running_jobs + excluded.running_jobs,
  job_id = excluded.job_id, updated_at = excluded.updated_at`

const handled = ["WorkerJobAssigned", "WorkerJobReleased"]

const deltaOf = (event: Event) => (event.type === "WorkerJobAssigned" ? 1 : -1)

const projection = {
  name: "worker",
  canHandle: handled,
  handle: async (events: ReadonlyArray<Recorded>, context: { readonly connection: Connection }) => {
    for (const event of events) {
      const { worker_id, job_id, occurred_at } = event.data
      await context.connection.command(upsert, [worker_id, deltaOf(event), job_id, occurred_at])
    }
  },
}

const evolve = (worker: Worker, event: Event): Worker => ({
  worker_id: worker.worker_id,
  version: worker.version + 1,
  running_jobs: worker.running_jobs + deltaOf(event),
})

const handle = async (store: Store, command: Command) => {
  const { worker_id } = command
  const stream = `worker-${worker_id}`
  const initialState = () => unregistered(worker_id)
  const seen = await store.aggregateStream(stream, { evolve, initialState })
  decide(seen.state, command)
  const { type, ...data } = eventOf(command, new Date())
  const expectedStreamVersion = seen.currentStreamVersion
  await store.appendToStream(stream, [{ type, data }], { expectedStreamVersion })
}

export const emmett: Contestant = {
  name: "emmett",
  start: async (home) => {
    const package_name = "@event-driven-io/emmett-sqlite"
    const { sqliteConnection, getSQLiteEventStore } = await installed<EmmettSqlite>(package_name)
    const fileName = join(home.folder, "emmett.sqlite")
    const connection = sqliteConnection({ fileName })
    await connection.command("pragma synchronous = full")
    await connection.command(schema)
    const store = getSQLiteEventStore({
      fileName,
      connectionOptions: { singleton: true, connection },
      projections: [{ type: "inline", projection }],
    })
    const find = "select worker_id, version, running_jobs from worker where worker_id = ?"
    const unit = async (command: Command) => {
      await handle(store, command)
      const row = await connection.querySingle(find, [command.worker_id])
      mustShow(row ?? undefined, command)
    }
    let last: Promise<void> = Promise.resolve()
    return {
      run: inTurn((command) => {
        last = last.then(() => unit(command))
        return last
      }),
      stop: async () => connection.close(),
    }
  },
}
