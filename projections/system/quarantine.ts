/**
 * Unreadable commits as rows: for metrics, `/readyz` and `doctor`, which cannot scan the log.
 * Source: decision 0189.
 */
import { Effect, Schema } from "effect"
import type { Kysely } from "kysely"
import { QuarantineEvent } from "#events/system/quarantine.ts"
import type { Projection } from "#projections/projection.ts"
import { statement } from "#projections/statement.ts"

interface UnreadableRow {
  readonly position: number
  readonly stream: string
  readonly hash: string
  readonly reason: string
  /** 1 if an operator has acknowledged it, else 0. */
  readonly acknowledged: number
}

export interface QuarantineTables {
  readonly system_unreadable: UnreadableRow
}

/** Longest stored stream name, in characters: a foreign subject may be any string. */
const stream_chars_max = 256

const write = statement<QuarantineTables>()
const insert = write<UnreadableRow>((db, row) =>
  db.insertInto("system_unreadable").values({
    position: row.position,
    stream: row.stream,
    hash: row.hash,
    reason: row.reason,
    acknowledged: row.acknowledged,
  }),
)
const acknowledge = write<{ readonly through: number }>((db, { through }) =>
  db.updateTable("system_unreadable").set({ acknowledged: 1 }).where("position", "<=", through),
)

const decode = Schema.decodeUnknownSync(QuarantineEvent)

export const quarantine: Projection<QuarantineTables> = {
  part: "",
  create: ({ schema }) => [
    schema
      .createTable("system_unreadable")
      .addColumn("position", "integer", (column) => column.primaryKey())
      .addColumn("stream", "text", (column) => column.notNull())
      .addColumn("hash", "text", (column) => column.notNull())
      .addColumn("reason", "text", (column) => column.notNull())
      .addColumn("acknowledged", "integer", (column) => column.notNull()),
  ],
  project: (event) => (event.type === "UnreadableAcknowledged" ? [acknowledge(decode(event))] : []),
  skip: ({ position, stream, hash, unreadable: reason }) => [
    insert({
      position,
      stream: stream.replaceAll(/\p{Cc}/gu, "?").slice(0, stream_chars_max),
      hash,
      reason,
      acknowledged: 0,
    }),
  ],
}

/** Number of unreadable commits, acknowledged and not. */
export interface UnreadableCounts {
  readonly acknowledged: number
  readonly open: number
}

export const countUnreadable = (db: Kysely<QuarantineTables>): Effect.Effect<UnreadableCounts> =>
  Effect.promise(async () => {
    const rows = await db
      .selectFrom("system_unreadable")
      .select(["acknowledged", ({ fn }) => fn.countAll<number>().as("count")])
      .groupBy("acknowledged")
      .execute()
    const countOf = (value: number) =>
      Number(rows.find(({ acknowledged }) => acknowledged === value)?.count ?? 0)
    return { acknowledged: countOf(1), open: countOf(0) }
  })
