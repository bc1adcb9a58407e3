/**
 * The upper bound of a replay: parse each message, upsert the row, and commit 500 messages and the
 * position per transaction. It has no checks, no decoding and no layers, so it is no
 * program to maintain.
 *
 * It runs twice: `bare loop` reads from JetStream as Almanac does and is the fair limit; `bare
 * loop, from memory` shows how much of that is reading.
 */
import { rmSync } from "node:fs"
import { join } from "node:path"
import { jetstream } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import Database from "better-sqlite3"
import type { Contestant } from "../harness/contestant.ts"
import { commitOf, messages, mustHold, stream, type Totals } from "./commit.ts"

/** Messages per transaction; more gain nothing (facts of the first measurements). */
const batch_max = 500

/** Messages requested ahead, so that the server never waits for the client. */
const ahead_max = 5_000

/** The same tables and settings as one of Almanac's read models. */
const schema = `
create table worker (worker_id text primary key, position integer not null,
  running_jobs integer not null, job_id text not null, updated_at text not null);
create table position (name text primary key, position integer not null);
insert into position values ('bench', 0);`

const upsert = `insert into worker values (?, ?, ?, ?, ?) on conflict (worker_id) do update set
  position = excluded.position, running_jobs = running_jobs + excluded.running_jobs,
  job_id = excluded.job_id, updated_at = excluded.updated_at`

const totals = `select count(*) as rows, sum(running_jobs) as running_jobs,
  sum(position) as positions from worker`

const decoder = new TextDecoder()

/** A new read model at `path` that takes batches of messages in order. */
const readModel = (path: string) => {
  rmSync(path, { force: true })
  const db = new Database(path)
  db.pragma("journal_mode = wal")
  db.pragma("synchronous = normal")
  db.exec(schema)
  const row = db.prepare(upsert)
  const place = db.prepare("update position set position = ? where name = 'bench'")
  let position = 0
  const take = db.transaction((batch: ReadonlyArray<Uint8Array>) => {
    for (const data of batch) {
      position += 1
      for (const event of JSON.parse(decoder.decode(data)).events) {
        const delta = event.type === "WorkerJobAssigned" ? 1 : -1
        row.run(event.worker_id, position, delta, event.job_id, event.occurred_at)
      }
    }
    place.run(position)
  })
  const finish = () => {
    // The columns of the statement are the fields of Totals.
    mustHold(db.prepare(totals).get() as Totals)
    db.close()
  }
  return { take, finish }
}

export const bare: Contestant = {
  name: "bare loop",
  start: async (home) => {
    if (!home.nats) throw new Error("no JetStream server")
    const connection = await connect({ servers: home.nats })
    const log = jetstream(connection)
    const path = join(home.folder, "bare.sqlite")
    const run = async () => {
      const { take, finish } = readModel(path)
      const consumer = await log.consumers.get(stream, {})
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      let [batch, read]: [Array<Uint8Array>, number] = [[], 0]
      const each = (data: Uint8Array) => {
        batch.push(data)
        read += 1
        if (batch.length < batch_max && read < messages) return
        take(batch)
        batch = []
        if (read === messages) resolve()
      }
      const callback = (message: { readonly data: Uint8Array }) => {
        try {
          each(message.data)
        } catch (cause) {
          reject(cause)
        }
      }
      const reading = await consumer.consume({ max_messages: ahead_max, callback })
      await promise
      reading.stop()
      finish()
    }
    return { run, stop: () => connection.close() }
  },
}

export const bareMemory: Contestant = {
  name: "bare loop, from memory",
  start: async (home) => {
    const encoder = new TextEncoder()
    const all = Array.from({ length: messages }, (_, i) =>
      encoder.encode(JSON.stringify(commitOf(i).commit)),
    )
    const path = join(home.folder, "bare.sqlite")
    const run = async () => {
      const { take, finish } = readModel(path)
      for (let i = 0; i < all.length; i += batch_max) take(all.slice(i, i + batch_max))
      finish()
    }
    return { run, stop: async () => {} }
  },
}
