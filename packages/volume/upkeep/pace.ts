/**
 * How fast work in the background goes: so many bytes a second, and never so long at a time that a
 * request waits for it.
 */
import { setTimeout as sleep } from "node:timers/promises"

/** Thrown where work in the background ends early, because the volume is shut. */
export const stopped = new Error("the volume is being shut")

/** Called with the bytes that were just worked on; answers when the next ones may be. */
export type Pace = (bytes: number) => Promise<void>

/** The longest wait at once: a volume is shut as soon as it is over, in milliseconds. */
const wait_ms_max = 250

const turnOfOthers = () => new Promise<void>((resolve) => setImmediate(resolve))

/** As fast as it goes, with a turn for others in between. */
export const unhurried: Pace = turnOfOthers

/**
 * So many bytes a second, measured from the last pause that was long: work that was interrupted
 * does not catch up. Throws `stopped` once `isStopped`.
 */
export const makePace = (
  bytes_per_second: number,
  now: () => number,
  isStopped: () => boolean,
): Pace => {
  let free_at = now()
  return async (bytes) => {
    free_at = Math.max(free_at, now() - wait_ms_max) + (1000 * bytes) / bytes_per_second
    await turnOfOthers()
    for (let left = free_at - now(); left > 0 && !isStopped(); left = free_at - now()) {
      // Whoever has nothing else to do may end meanwhile.
      await sleep(Math.min(left, wait_ms_max), undefined, { ref: false })
    }
    if (isStopped()) throw stopped
  }
}
