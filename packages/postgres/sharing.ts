/** Whose turn it is to write a read model that processes share, and how the others see it move. */
import { Effect } from "effect"
import type pg from "pg"
import { type Checkpoint, DatabaseUnusable, type Sharing } from "#projections/database.ts"
import { locks, readCheckpoint, tryLock } from "./schema.ts"
import type { Session } from "./session.ts"

/** How often each process asks for the checkpoint, should nothing be told, in milliseconds. */
const look_ms = 1000

/** How long an answer is waited for before others are told that there is none, in milliseconds. */
const answer_ms_max = 5000

/**
 * How long a writer may ask for nothing, in seconds; it asks once in each. A silent one is stopped,
 * or cut off without the server's knowing: its session is ended, and its turn with it.
 */
const silent_s = 10

/** The writer's session, where it is silent: the server's own clock says so, and nobody else's. */
const end_silent = `
  select pg_terminate_backend(holder.pid)
  from pg_locks as held join pg_stat_activity as holder using (pid)
  where held.locktype = 'advisory' and held.granted and held.objsubid = 2
    and held.database = (select oid from pg_database where datname = current_database())
    and held.classid::bigint = $1 and held.objid = hashtext($2)::bit(32)::bigint::oid
    and holder.state <> 'active'
    and holder.state_change < clock_timestamp() - make_interval(secs => $3)`

interface Shared {
  readonly session: Session
  readonly schema: string
  readonly is_writer: boolean
  readonly moved: (checkpoint: Checkpoint) => void
  readonly onMoved: (run: () => void) => void
}

export const postgresSharing = ({ session, schema, is_writer, moved, onMoved }: Shared) => {
  // The client that has the lock. Another one of ours has not.
  let holder: pg.Client | undefined
  let is_reached = true
  // Since when an answer is waited for.
  let asked_ms = Number.POSITIVE_INFINITY

  const isWriting = () => holder !== undefined && session.isCurrent(holder)
  const take = session.run(async (client) => {
    if (!(await tryLock(client, locks.written, schema))) {
      await client.query(end_silent, [locks.written, schema, silent_s])
      return false
    }
    // Whoever wrote before may have gone on since this process heard of it.
    moved(await readCheckpoint(client))
    holder = client
    return true
  })
  // The lock is the session's, and ends with it wherever the server is.
  const give = Effect.sync(() => {
    if (isWriting()) session.drop()
    holder = undefined
  })
  const taken = take.pipe(
    Effect.tap((is_had) => (is_had ? Effect.void : Effect.sleep(look_ms))),
    Effect.repeat({ until: (is_had) => is_had }),
  )
  const turn = is_writer
    ? Effect.acquireRelease(Effect.interruptible(taken), () => give).pipe(Effect.asVoid)
    : Effect.never

  const look = session.run(async (client) => {
    const checkpoint = await readCheckpoint(client)
    // In the middle of its own transaction a writer would see what is not written yet.
    if (!isWriting()) moved(checkpoint)
  })
  const watch = (run: () => void) =>
    Effect.suspend(() => {
      onMoved(run)
      const asking = Effect.sync(() => {
        asked_ms = performance.now()
      })
      const heard = (is_now: boolean, why: string) =>
        Effect.suspend(() => {
          const is_news = is_reached && !is_now
          asked_ms = Number.POSITIVE_INFINITY
          is_reached = is_now
          return is_news ? Effect.logWarning(`${schema} cannot be reached: ${why}`) : Effect.void
        })
      return asking.pipe(
        Effect.andThen(look),
        Effect.matchEffect({
          onSuccess: () => heard(true, ""),
          onFailure: ({ detail }) => heard(false, detail),
        }),
        Effect.andThen(Effect.sleep(look_ms)),
        Effect.forever,
      )
    })
  const isReached = () => is_reached && performance.now() - asked_ms < answer_ms_max
  const shared: Sharing = { turn, watch, is_reached: isReached }

  /** Fails where this process had its turn and lost it; one that never asked is not held up. */
  const permitted = Effect.suspend(() =>
    holder === undefined || isWriting()
      ? Effect.void
      : Effect.fail(new DatabaseUnusable({ detail: "Its turn to write is over." })),
  )
  return { shared, isWriting, permitted }
}
