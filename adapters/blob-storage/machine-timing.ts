/** The machine's clock and timers, for packages that run without Effect. */
import type { Clock } from "effect"
import type { Timing } from "#cluster"

/** Timing on this clock, which also supplies the times of puts. */
export const machineTiming = (clock: Clock.Clock): Timing => ({
  now: () => clock.currentTimeNanosUnsafe(),
  after: (ms, run) => {
    if (ms <= 0) {
      // One turn of the event loop, because a timer would take a millisecond.
      const turn = setImmediate(run)
      return () => clearImmediate(turn)
    }
    const timer = setTimeout(run, ms)
    // Pending timers must not keep the process alive.
    timer.unref()
    return () => clearTimeout(timer)
  },
})
