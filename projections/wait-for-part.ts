/** Waits for a position of the whole log in a read model that covers only a part of it. */
import { Effect } from "effect"
import type { Log, Part } from "#events/log.ts"
import type { ReadModel } from "#projections/read-model.ts"
import { Behind } from "#projections/waiters.ts"

/** The members used here, for a model of any tables. */
type Positioned = Pick<ReadModel<unknown>, "position" | "waitFor">

/**
 * Waits until the model shows its part of the log up to a position. A position beyond the part's
 * last commit only requires that last commit.
 */
export const waitForPart =
  (log: Log["Service"], { position, waitFor }: Positioned, part: Part) =>
  (requested: number): Effect.Effect<void, Behind> =>
    Effect.flatMap(position, (current) => {
      if (current >= requested) return Effect.void
      return log.head(part).pipe(
        Effect.mapError(({ detail }) => new Behind({ detail })),
        Effect.flatMap((head) => waitFor(Math.min(requested, head))),
      )
    })
