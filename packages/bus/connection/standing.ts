/** Whether the bus can be asked, for a process that says so of itself. */
import type { NatsConnection } from "@nats-io/transport-node"
import { Clock, Effect } from "effect"
import { type Link, watchLink } from "./link.ts"

/**
 * How long a connection may be lost before the bus is away, in milliseconds: one that comes back
 * needs a third of a second, and a nats-server of our own that starts again one or two. One that
 * stands still is lost after four to six seconds (`nats-connection.ts`).
 */
export const away_ms = 3_000

/** The connection as it is now, and whether that has lasted. */
export interface BusStanding {
  readonly isUp: () => boolean
  /** Why nothing can be asked of the bus; undefined while it can, or may be back in a moment. */
  readonly trouble: Effect.Effect<string | undefined>
}

/** Watches a link for as long as the scope is open. */
export const standingOf = Effect.fnUntraced(function* ({ isUp, onChange }: Link) {
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe()
  let lost_at = isUp() ? undefined : now()
  const changed = () => {
    lost_at = isUp() ? undefined : (lost_at ?? now())
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => onChange(changed)),
    (forget) => Effect.sync(forget),
  )
  const isAway = () => lost_at !== undefined && now() - lost_at >= away_ms
  return {
    isUp,
    trouble: Effect.sync(() => (isAway() ? "has no connection to the bus" : undefined)),
  } satisfies BusStanding
})

/** Watches a connection for as long as the scope is open. */
export const busStanding = (connection: NatsConnection) =>
  Effect.flatMap(watchLink(connection), standingOf)
