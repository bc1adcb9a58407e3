/** A read model asked for a position that may be of another part of the log than its own. */
import { Effect } from "effect"
import type { Log, Part } from "#events/log.ts"
import type { ReadModel } from "#projections/read-model.ts"
import { Behind } from "#projections/waiting.ts"

/** What is asked of the model: of any tables. */
type Positioned = Pick<ReadModel<unknown>, "position" | "waitFor">

/**
 * Waits until it shows all of its part up to a position. Where that is beyond the last commit of
 * the part, there is no more to wait for than that one.
 */
export const showing =
  (log: Log["Service"], { position, waitFor }: Positioned, part: Part) =>
  (asked: number): Effect.Effect<void, Behind> =>
    Effect.flatMap(position, (shown) => {
      if (shown >= asked) return Effect.void
      return log.head(part).pipe(
        Effect.mapError(({ detail }) => new Behind({ detail })),
        Effect.flatMap((head) => waitFor(Math.min(asked, head))),
      )
    })
