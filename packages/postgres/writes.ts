/** Writes a read model: rows and checkpoint in one transaction. */
import { Effect } from "effect"
import type { QueryConfig } from "pg"
import type { Checkpoint, Database, DatabaseUnusable } from "#projections/database.ts"
import type { Write } from "#projections/statement.ts"
import { type Session, sendInOrder } from "./session.ts"
import { binder } from "./statement.ts"

/**
 * The first statement of each transaction, at which concurrent writers wait. If the position is not
 * the expected one, another process has written, and the division by zero fails the transaction.
 */
const fence = (from: number, { position, hash }: Checkpoint): QueryConfig => ({
  name: "fence",
  text: `with moved as (
    update checkpoint set position = $1, hash = $2 where position = $3 returning 1
  ) select 1 / count(*) from moved`,
  values: [position, hash, from],
})

const begin: QueryConfig = { name: "begin", text: "begin" }
const commit: QueryConfig = { name: "commit", text: "commit" }

/** The payload of a notification: `<position> <hash>`. */
const payloadOf = ({ position, hash }: Checkpoint) => `${position} ${hash}`

export const parseCheckpoint = (payload: string): Checkpoint => {
  const [position = "0", hash = ""] = payload.split(" ")
  return { position: Number(position), hash }
}

const notify = (channel: string, checkpoint: Checkpoint): QueryConfig => ({
  name: "notify",
  text: "select pg_notify($1, $2)",
  values: [channel, payloadOf(checkpoint)],
})

export interface WriteOptions {
  readonly session: Session
  /** The channel to notify; none for a rebuild, which has no readers. */
  readonly channel?: string
  readonly known: () => Checkpoint
  readonly moved: (checkpoint: Checkpoint) => void
  /** Runs before each transaction; fails if this process is no longer the writer. */
  readonly requireWriter: Effect.Effect<void, DatabaseUnusable>
}

/** Writes over a session. A failed transaction ends the session and leaves nothing. */
export const postgresWrites = ({
  session,
  channel,
  known,
  moved,
  requireWriter,
}: WriteOptions): Pick<Database<unknown>, "apply" | "applySlowly"> => {
  const bind = binder()
  const last = ({ position, hash }: Checkpoint) => [
    ...(channel === undefined ? [] : [notify(channel, { position, hash })]),
    commit,
  ]
  const send = (queries: () => ReadonlyArray<QueryConfig>) =>
    session.run((client) => sendInOrder(client, queries()))
  const finished = ({ position, hash }: Checkpoint) => Effect.sync(() => moved({ position, hash }))

  const apply = (writes: ReadonlyArray<Write>, checkpoint: Checkpoint) =>
    requireWriter.pipe(
      Effect.andThen(
        send(() => [
          begin,
          fence(known().position, checkpoint),
          ...writes.map(bind),
          ...last(checkpoint),
        ]),
      ),
      Effect.andThen(finished(checkpoint)),
    )
  const applySlowly = (
    slices: Iterable<ReadonlyArray<Write>>,
    checkpoint: Checkpoint,
    pause: Effect.Effect<void>,
  ) =>
    Effect.gen(function* () {
      yield* requireWriter
      const client = yield* session.run(async (connected) => {
        await sendInOrder(connected, [begin, fence(known().position, checkpoint)])
        return connected
      })
      // Continue on the same client: another one is not in the transaction.
      const continueWith = (queries: () => ReadonlyArray<QueryConfig>) =>
        session.run(() => sendInOrder(client, queries()))
      for (const slice of slices) {
        yield* continueWith(() => slice.map(bind))
        yield* pause
      }
      yield* continueWith(() => last(checkpoint))
      moved({ position: checkpoint.position, hash: checkpoint.hash })
    }).pipe(Effect.onError(() => Effect.sync(session.drop)))
  return { apply, applySlowly }
}
