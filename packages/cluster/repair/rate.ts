/**
 * How fast the repair may read and send: a bucket of bytes that fills at its rate. Who takes more
 * than is in it waits until it would have been there, so that over time the rate holds exactly.
 */
import type { CopyBytes } from "#actors/blob-storage/peers.ts"
import type { Timing } from "../timing.ts"

/** What a bucket holds: a tenth of a second's bytes. */
const burst_parts = 10
const ms_per_s = 1000
const ns_per_s = 1e9

/** Waits until so many bytes may go; undefined: at once. */
export type Pace = (bytes: number) => Promise<void> | undefined

export const wait = (timing: Timing, ms: number) =>
  new Promise<void>((resolve) => void timing.after(ms, resolve))

export const makePace = (bytes_per_second: number, timing: Timing): Pace => {
  const burst = bytes_per_second / burst_parts
  let there = burst
  let looked_at = timing.now()
  return (bytes) => {
    const now = timing.now()
    // A clock that is set back gives nothing, and one that is set on no more than a burst.
    const seconds = Math.max(0, Number(now - looked_at) / ns_per_s)
    there = Math.min(burst, there + seconds * bytes_per_second) - bytes
    looked_at = now
    return there >= 0 ? undefined : wait(timing, (-there / bytes_per_second) * ms_per_s)
  }
}

/** The same bytes, no faster than they may go. */
export async function* paced(bytes: CopyBytes, pace: Pace) {
  for await (const part of bytes) {
    await pace(part.length)
    yield part
  }
}
