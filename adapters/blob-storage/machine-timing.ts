/** The machine's time for what runs without Effect. */
import type { Clock } from "effect"
import type { Timing } from "#cluster"

/** Timing by this clock, which is the one that puts are stamped with. */
export const machineTiming = (clock: Clock.Clock): Timing => ({
  now: () => clock.currentTimeNanosUnsafe(),
  after: (ms, run) => {
    if (ms <= 0) {
      // A turn of the loop, where a timer would take a millisecond.
      const turn = setImmediate(run)
      return () => clearImmediate(turn)
    }
    const timer = setTimeout(run, ms)
    // What is only planned keeps no process alive.
    timer.unref()
    return () => clearTimeout(timer)
  },
})
