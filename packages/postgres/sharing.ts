/**
 * Elects the process that writes a shared read model, and lets the others follow its checkpoint.
 */
import { Effect } from "effect"
import type pg from "pg"
import { type Checkpoint, DatabaseUnusable, type Sharing } from "#projections/database.ts"
import { locks, readCheckpoint, tryLock } from "./schema.ts"
import type { Session } from "./session.ts"

/** How often each process polls the checkpoint, in case a notification is lost, in milliseconds. */
const poll_ms = 1000

/** How long a poll may take before the database counts as unreachable, in milliseconds. */
const response_ms_max = 5000

/**
 * How long the writer's session may be idle, in seconds; the writer polls every second. An idle one
 * is suspended or disconnected without the server noticing, so its session is terminated.
 */
const idle_s = 10

/** Terminates the writer's session if it is idle, by the server's clock. */
const end_idle_writer = `
  select pg_terminate_backend(holder.pid)
  from pg_locks as held join pg_stat_activity as holder using (pid)
  where held.locktype = 'advisory' and held.granted and held.objsubid = 2
    and held.database = (select oid from pg_database where datname = current_database())
    and held.classid::bigint = $1 and held.objid = hashtext($2)::bit(32)::bigint::oid
    and holder.state <> 'active'
    and holder.state_change < clock_timestamp() - make_interval(secs => $3)`

interface SharingOptions {
  readonly session: Session
  readonly schema: string
  readonly is_writer: boolean
  readonly moved: (checkpoint: Checkpoint) => void
  readonly onMoved: (run: () => void) => void
}

export const postgresSharing = ({ session, schema, is_writer, moved, onMoved }: SharingOptions) => {
  // The client that holds the lock. A later client of this process does not hold it.
  let holder: pg.Client | undefined
  let is_reached = true
  // The start of the current poll.
  let poll_started_ms = Number.POSITIVE_INFINITY

  const isWriting = () => holder !== undefined && session.isCurrent(holder)
  const tryAcquire = session.run(async (client) => {
    if (!(await tryLock(client, locks.written, schema))) {
      await client.query(end_idle_writer, [locks.written, schema, idle_s])
      return false
    }
    // The previous writer may have advanced since the last notification.
    moved(await readCheckpoint(client))
    holder = client
    return true
  })
  // The lock belongs to the session and is released with it, even if the server is unreachable.
  const release = Effect.sync(() => {
    if (isWriting()) session.drop()
    holder = undefined
  })
  const acquire = tryAcquire.pipe(
    Effect.tap((is_acquired) => (is_acquired ? Effect.void : Effect.sleep(poll_ms))),
    Effect.repeat({ until: (is_acquired) => is_acquired }),
  )
  const turn = is_writer
    ? Effect.acquireRelease(Effect.interruptible(acquire), () => release).pipe(Effect.asVoid)
    : Effect.never

  const poll = session.run(async (client) => {
    const checkpoint = await readCheckpoint(client)
    // Within its own transaction the writer would see uncommitted positions.
    if (!isWriting()) moved(checkpoint)
  })
  const watch = (run: () => void) =>
    Effect.suspend(() => {
      onMoved(run)
      const started = Effect.sync(() => {
        poll_started_ms = performance.now()
      })
      const finished = (is_success: boolean, reason: string) =>
        Effect.suspend(() => {
          const is_lost = is_reached && !is_success
          poll_started_ms = Number.POSITIVE_INFINITY
          is_reached = is_success
          return is_lost ? Effect.logWarning(`${schema} cannot be reached: ${reason}`) : Effect.void
        })
      return started.pipe(
        Effect.andThen(poll),
        Effect.matchEffect({
          onSuccess: () => finished(true, ""),
          onFailure: ({ detail }) => finished(false, detail),
        }),
        Effect.andThen(Effect.sleep(poll_ms)),
        Effect.forever,
      )
    })
  const isReachable = () => is_reached && performance.now() - poll_started_ms < response_ms_max
  const shared: Sharing = { turn, watch, isReachable }

  /** Fails if this process was the writer and lost its lock. */
  const requireWriter = Effect.suspend(() =>
    holder === undefined || isWriting()
      ? Effect.void
      : Effect.fail(new DatabaseUnusable({ detail: "This process is no longer the writer." })),
  )
  return { shared, isWriting, requireWriter }
}
