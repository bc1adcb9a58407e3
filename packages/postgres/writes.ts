/** How a read model in PostgreSQL is written: rows and checkpoint in one transaction. */
import { Effect } from "effect"
import type { QueryConfig } from "pg"
import type { Checkpoint, Database, DatabaseUnusable } from "#projections/database.ts"
import type { Write } from "#projections/statement.ts"
import { inOrder, type Session } from "./session.ts"
import { binder } from "./statement.ts"

/**
 * The first statement of each transaction, which others that write wait at. Where the position is
 * not the one that this process knows, another has written: nothing is divided by no row.
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

/** What is told on a channel when the checkpoint moves: `<position> <hash>`. */
export const told = ({ position, hash }: Checkpoint) => `${position} ${hash}`

export const toldOf = (payload: string): Checkpoint => {
  const [position = "0", hash = ""] = payload.split(" ")
  return { position: Number(position), hash }
}

const notify = (channel: string, checkpoint: Checkpoint): QueryConfig => ({
  name: "notify",
  text: "select pg_notify($1, $2)",
  values: [channel, told(checkpoint)],
})

export interface Written {
  readonly session: Session
  /** Whose listeners are told; absent where nobody reads it yet. */
  readonly channel?: string
  readonly known: () => Checkpoint
  readonly moved: (checkpoint: Checkpoint) => void
  /** Runs before each transaction: a process whose turn is over writes nothing. */
  readonly permitted: Effect.Effect<void, DatabaseUnusable>
}

/** Writes over a session; a transaction that failed ends it, and leaves nothing. */
export const postgresWrites = ({
  session,
  channel,
  known,
  moved,
  permitted,
}: Written): Pick<Database<unknown>, "apply" | "applySlowly"> => {
  const bind = binder()
  const last = ({ position, hash }: Checkpoint) => [
    ...(channel === undefined ? [] : [notify(channel, { position, hash })]),
    commit,
  ]
  const send = (queries: () => ReadonlyArray<QueryConfig>) =>
    session.run((client) => inOrder(client, queries()))
  const ended = ({ position, hash }: Checkpoint) => Effect.sync(() => moved({ position, hash }))

  const apply = (writes: ReadonlyArray<Write>, checkpoint: Checkpoint) =>
    permitted.pipe(
      Effect.andThen(
        send(() => [
          begin,
          fence(known().position, checkpoint),
          ...writes.map(bind),
          ...last(checkpoint),
        ]),
      ),
      Effect.andThen(ended(checkpoint)),
    )
  const applySlowly = (
    slices: Iterable<ReadonlyArray<Write>>,
    checkpoint: Checkpoint,
    pause: Effect.Effect<void>,
  ) =>
    Effect.gen(function* () {
      yield* permitted
      const client = yield* session.run(async (begun) => {
        await inOrder(begun, [begin, fence(known().position, checkpoint)])
        return begun
      })
      // What comes after goes where it began, or nowhere: another session has no transaction.
      const goOn = (queries: () => ReadonlyArray<QueryConfig>) =>
        session.run(() => inOrder(client, queries()))
      for (const slice of slices) {
        yield* goOn(() => slice.map(bind))
        yield* pause
      }
      yield* goOn(() => last(checkpoint))
      moved({ position: checkpoint.position, hash: checkpoint.hash })
    }).pipe(Effect.onError(() => Effect.sync(session.drop)))
  return { apply, applySlowly }
}
