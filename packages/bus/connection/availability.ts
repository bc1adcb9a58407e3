/** Availability of the bus, for health reports. */
import type { NatsConnection } from "@nats-io/transport-node"
import { Clock, Effect } from "effect"
import { type Link, watchLink } from "./link.ts"

/**
 * Milliseconds without a connection after which the bus counts as offline: a reconnect takes a
 * third of a second, and a restart of our own nats-server one or two seconds. A hanging server is
 * detected after four to six seconds (`connection.ts`).
 */
export const offline_ms = 3_000

/** Current state of the connection, and whether it has been down for long. */
export interface BusAvailability {
  readonly isUp: () => boolean
  /** Why the bus is unavailable; undefined while it is up or was lost only a moment ago. */
  readonly problem: Effect.Effect<string | undefined>
}

/** Watches a link for as long as the scope is open. */
export const availabilityOf = Effect.fnUntraced(function* ({ isUp, onChange }: Link) {
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
  const isOffline = () => lost_at !== undefined && now() - lost_at >= offline_ms
  return {
    isUp,
    problem: Effect.sync(() => (isOffline() ? "has no connection to the bus" : undefined)),
  } satisfies BusAvailability
})

/** Watches a connection for as long as the scope is open. */
export const busAvailability = (connection: NatsConnection) =>
  Effect.flatMap(watchLink(connection), availabilityOf)
