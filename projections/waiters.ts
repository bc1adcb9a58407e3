/** Waits for a position to be reached. */
import { Effect, Latch, Schema } from "effect"

/** How long a reader waits for its own write, in milliseconds; usually a thousandth suffices. */
const wait_ms = 2000

/** How often expired waiters are swept, in milliseconds. */
const sweep_ms = 250

/** Sweeps until a waiter expires; the first may come immediately. */
const sweeps = wait_ms / sweep_ms + 1

/** The position was not reached within `wait_ms`, and up to `sweep_ms` more. */
export class Behind extends Schema.TaggedError<Behind>()("Behind", {
  detail: Schema.String,
}) {}

interface Waiter {
  readonly position: number
  /** The sweep that expires it. */
  readonly last: number
  readonly resume: (how: Effect.Effect<void, Behind>) => void
}

/**
 * Waiters for positions, until the scope closes. `wake` resumes those that `currentPosition` has
 * reached.
 *
 * One fiber expires all of them: racing each against a timer would triple the cost of a wait.
 */
export const makeWaiters = Effect.fnUntraced(function* (
  name: string,
  currentPosition: () => number,
) {
  // In order of arrival. An interrupted waiter stays until it is woken or expires, without effect.
  const waiters = new Set<Waiter>()
  let swept = 0
  // Open while there are waiters, or were at the last wake.
  const pending = Latch.makeUnsafe(false)

  const wake = () => {
    const position = currentPosition()
    for (const waiter of waiters) {
      if (waiter.position <= position && waiters.delete(waiter)) waiter.resume(Effect.void)
    }
    if (waiters.size === 0) pending.closeUnsafe()
  }
  const giveUp = (sweep: number) => {
    for (const waiter of waiters) {
      if (waiter.last > sweep) return
      waiters.delete(waiter)
      const detail = `${name} has not reached position ${waiter.position}.`
      waiter.resume(Effect.fail(new Behind({ detail })))
    }
  }
  yield* Effect.sleep(sweep_ms).pipe(
    Effect.andThen(Effect.sync(() => giveUp(++swept))),
    Effect.forever,
    Effect.forkScoped,
  )
  yield* Effect.addFinalizer(() => Effect.sync(() => giveUp(Number.POSITIVE_INFINITY)))

  const waitFor = (position: number): Effect.Effect<void, Behind> =>
    Effect.suspend(() => {
      if (currentPosition() >= position) return Effect.void
      return Effect.callback((resume) => {
        waiters.add({ position, last: swept + sweeps, resume })
        pending.openUnsafe()
      })
    })
  return { wake, waitFor, isAwaited: () => waiters.size > 0, awaited: pending.await }
})

export type Waiters = Effect.Success<ReturnType<typeof makeWaiters>>
