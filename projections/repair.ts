/** Repairs a read model whose database disappears while the process runs. */
import { Effect, type Semaphore } from "effect"
import type { LogUnavailable } from "#events/log.ts"
import type { Database, DatabaseUnusable } from "#projections/database.ts"
import { warnOnce } from "#projections/warn-once.ts"

/**
 * Rebuilds a database that other processes no longer find at its location. A foreign file there
 * stays untouched, and each problem is logged once.
 */
export const repairWhenLost = <Tables>(
  name: string,
  database: Database<Tables>,
  build: Effect.Effect<number, LogUnavailable | DatabaseUnusable>,
  building: Semaphore.Semaphore,
) => {
  const { warn, forget } = warnOnce(name)
  const repair = Effect.suspend(() => {
    if (database.place() !== "lost") return Effect.void
    return Effect.andThen(warn("is missing and is rebuilt."), build)
  }).pipe(
    Effect.catch(({ detail }) => warn(`is missing and cannot be rebuilt yet: ${detail}`)),
    building.withPermit,
  )
  // Processes that still find the database continue during the rebuild.
  return Effect.suspend(() => {
    const place = database.place()
    if (place === "lost") return repair
    if (place === "foreign")
      return warn("has been replaced by another file, which is left unchanged.")
    forget()
    return Effect.void
  }).pipe(
    // The folder may be inaccessible for a moment: the next check looks again.
    Effect.catchDefect((defect) => warn(`cannot be checked: ${defect}`)),
  )
}
