/** Paces background work: limits its rate, and yields often enough that no request waits for it. */
import { setTimeout as sleep } from "node:timers/promises"

/** Thrown when background work ends early, because the volume is being closed. */
export const stopped = new Error("the volume is being closed")

/** Called with the number of bytes just processed. Resolves when more may be processed. */
export type Pace = (bytes: number) => Promise<void>

/** Maximum wait at once, in milliseconds: closing a volume takes no longer than that. */
const wait_ms_max = 250

const yieldToEventLoop = () => new Promise<void>((resolve) => setImmediate(resolve))

/** No limit, but yields to the event loop in between. */
export const unthrottled: Pace = yieldToEventLoop

/**
 * Limits the rate to a number of bytes per second, measured from the last long pause, so that
 * interrupted work does not catch up. Throws `stopped` once `isStopped`.
 */
export const makePace = (
  bytes_per_second: number,
  now: () => number,
  isStopped: () => boolean,
): Pace => {
  let free_at = now()
  return async (bytes) => {
    free_at = Math.max(free_at, now() - wait_ms_max) + (1000 * bytes) / bytes_per_second
    await yieldToEventLoop()
    for (let left = free_at - now(); left > 0 && !isStopped(); left = free_at - now()) {
      // Does not keep the process alive.
      await sleep(Math.min(left, wait_ms_max), undefined, { ref: false })
    }
    if (isStopped()) throw stopped
  }
}
