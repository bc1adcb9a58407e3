/**
 * Rate limit of the repair: a token bucket that may be overdrawn. A caller that overdraws it waits
 * until the tokens are refilled, so the average rate is exact.
 */
import type { CopyBytes } from "#actors/blob-storage/ports/peers.ts"
import type { Timing } from "../timing.ts"

/** The bucket holds a tenth of a second's bytes. */
const burst_parts = 10
const ms_per_s = 1000
const ns_per_s = 1e9

/** Waits until this many bytes may be transferred; undefined means no wait. */
export type Pace = (bytes: number) => Promise<void> | undefined

export const wait = (timing: Timing, ms: number) =>
  new Promise<void>((resolve) => void timing.after(ms, resolve))

export const makePace = (bytes_per_second: number, timing: Timing): Pace => {
  const burst = bytes_per_second / burst_parts
  let available = burst
  let updated_at = timing.now()
  return (bytes) => {
    const now = timing.now()
    // A clock set back refills nothing, and one set forward no more than a burst.
    const seconds = Math.max(0, Number(now - updated_at) / ns_per_s)
    available = Math.min(burst, available + seconds * bytes_per_second) - bytes
    updated_at = now
    return available >= 0 ? undefined : wait(timing, (-available / bytes_per_second) * ms_per_s)
  }
}

/** The same bytes at a limited rate. */
export async function* paced(bytes: CopyBytes, pace: Pace) {
  for await (const part of bytes) {
    await pace(part.length)
    yield part
  }
}
