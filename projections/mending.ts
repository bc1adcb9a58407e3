/** Repairs a read model whose database is gone while the process runs. */
import { Effect, type Semaphore } from "effect"
import type { LogUnavailable } from "#events/log.ts"
import type { Database, DatabaseUnusable } from "#projections/database.ts"
import { onceTold } from "#projections/once-told.ts"

/**
 * Builds a database again that other processes no longer find at its place. A foreign file there
 * stays as it is, and each problem is logged once.
 */
export const mending = <Tables>(
  name: string,
  database: Database<Tables>,
  build: Effect.Effect<number, LogUnavailable | DatabaseUnusable>,
  building: Semaphore.Semaphore,
) => {
  const { tell, forget } = onceTold(name)
  const mend = Effect.suspend(() => {
    if (database.place() !== "lost") return Effect.void
    return Effect.andThen(tell("is gone: building it again."), build)
  }).pipe(
    Effect.catch(({ detail }) => tell(`is gone and cannot be built again yet: ${detail}`)),
    building.withPermit,
  )
  // While it is built, processes that find it in its place continue.
  return Effect.suspend(() => {
    const place = database.place()
    if (place === "lost") return mend
    if (place === "foreign") return tell("is not where it was: what is there is left as it is.")
    forget()
    return Effect.void
  }).pipe(
    // A folder that cannot be looked at for a moment: it is looked at again.
    Effect.catchDefect((defect) => tell(`cannot be looked for: ${defect}`)),
  )
}
