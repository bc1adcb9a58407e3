/** Who waits for a position to be reached. */
import { Effect, Latch, Schema } from "effect"

/** How long a reader waits to see its own write, in milliseconds; a thousandth of it is usual. */
const wait_ms = 2000

/** How often those are looked for that have waited so long, in milliseconds. */
const sweep_ms = 250

/** Sweeps until one has waited so long, where the first comes at once. */
const sweeps = wait_ms / sweep_ms + 1

/** The position was not reached within `wait_ms`, and up to `sweep_ms` more. */
export class Behind extends Schema.TaggedError<Behind>()("Behind", {
  detail: Schema.String,
}) {}

interface Waiter {
  readonly position: number
  /** The sweep that gives it up. */
  readonly last: number
  readonly resume: (how: Effect.Effect<void, Behind>) => void
}

/**
 * Waiters for what `reached` answers, until the scope closes; `wake` lets those go whose position
 * it has come to.
 *
 * One fiber gives up for all of them: a race against a timer costs each three times its wait.
 */
export const waiting = Effect.fnUntraced(function* (name: string, reached: () => number) {
  // In the order in which they came. Who is interrupted stays until it would go, and hears nothing.
  const waiters = new Set<Waiter>()
  let swept = 0
  // Open while somebody waits, or did when it was last looked at.
  const asked = Latch.makeUnsafe(false)

  const wake = () => {
    const position = reached()
    for (const waiter of waiters) {
      if (waiter.position <= position && waiters.delete(waiter)) waiter.resume(Effect.void)
    }
    if (waiters.size === 0) asked.closeUnsafe()
  }
  const giveUp = (sweep: number) => {
    for (const waiter of waiters) {
      if (waiter.last > sweep) return
      waiters.delete(waiter)
      const detail = `${name} is behind ${waiter.position}.`
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
      if (reached() >= position) return Effect.void
      return Effect.callback((resume) => {
        waiters.add({ position, last: swept + sweeps, resume })
        asked.openUnsafe()
      })
    })
  return { wake, waitFor, isAwaited: () => waiters.size > 0, awaited: asked.await }
})

export type Waiting = Effect.Success<ReturnType<typeof waiting>>
