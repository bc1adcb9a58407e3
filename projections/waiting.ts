/** Who waits for a position to be reached. */
import { Deferred, Duration, Effect, Schema } from "effect"

/** How long a reader waits to see its own write, in milliseconds; a thousandth of it is usual. */
const wait_ms_max = 2000

/** The position was not reached within `wait_ms_max`. */
export class Behind extends Schema.TaggedError<Behind>()("Behind", {
  detail: Schema.String,
}) {}

/** Waiters for what `reached` answers; `wake` lets those go whose position it has come to. */
export const waiting = (name: string, reached: () => number) => {
  const waiters = new Map<Deferred.Deferred<void>, number>()

  const wake = () => {
    const position = reached()
    for (const [waiter, wanted] of waiters) {
      if (wanted <= position && waiters.delete(waiter)) Deferred.doneUnsafe(waiter, Effect.void)
    }
  }
  const waitFor = (position: number): Effect.Effect<void, Behind> =>
    Effect.suspend(() => {
      if (reached() >= position) return Effect.void
      const waiter = Deferred.makeUnsafe<void>()
      waiters.set(waiter, position)
      return Deferred.await(waiter).pipe(
        Effect.timeoutOrElse({
          duration: Duration.millis(wait_ms_max),
          orElse: () => Effect.fail(new Behind({ detail: `${name} is behind ${position}.` })),
        }),
        Effect.ensuring(Effect.sync(() => waiters.delete(waiter))),
      )
    })
  return { wake, waitFor }
}
