/** A clock for one process that can be moved forward. */
import { type Clock, Duration, Effect } from "effect"

/** Real time with an offset. Setting it wakes every sleeper, which then checks the time again. */
export const makeForwardClock = (start_ms: number) => {
  let ahead_ms = start_ms - Date.now()
  const wakers = new Set<() => void>()
  const now = () => Date.now() + ahead_ms
  const nanos = () => BigInt(now()) * 1_000_000n
  const clock = (real: Clock.Clock): Clock.Clock => ({
    monotonicTimeNanosUnsafe: () => real.monotonicTimeNanosUnsafe(),
    monotonicTimeNanos: real.monotonicTimeNanos,
    currentTimeMillisUnsafe: now,
    currentTimeMillis: Effect.sync(now),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    sleep: (duration: Duration.Duration) =>
      Effect.callback<void>((resume) => {
        const wake = () => {
          clearTimeout(timer)
          wakers.delete(wake)
          resume(Effect.void)
        }
        const timer = setTimeout(wake, Duration.toMillis(duration))
        wakers.add(wake)
        return Effect.sync(() => {
          clearTimeout(timer)
          wakers.delete(wake)
        })
      }),
  })
  const set = (time_ms: number) => {
    ahead_ms = time_ms - Date.now()
    for (const wake of [...wakers]) wake()
  }
  return { clock: Effect.clockWith((real) => Effect.succeed(clock(real))), set }
}
