/**
 * The last large commits that were read, so that each of a process's readers is given the same one:
 * parsed and hashed once and not by each, of whom a commit of a node's journal has five.
 */

import type { Entry, Judge } from "#events/log.ts"
import { decode } from "../commits/codec.ts"

/** Smaller ones are parsed faster than it matters, and come by hundreds when a log is replayed. */
const large_bytes = 16 * 1024

/** Of all that are kept, as bytes of JSON; parsed they are some four times as much. */
const kept_bytes_max = 2 * 1024 * 1024

interface Kept {
  readonly bytes: Uint8Array
  readonly entry: Entry
}

const isSame = (one: Uint8Array, other: Uint8Array) => Buffer.compare(one, other) === 0

/** As `decode`: what it answers is only ever read. */
export const recentCommits = (
  judge: Judge,
): ((position: number, stream: string, bytes: Uint8Array) => Entry) => {
  const recent = new Map<number, Kept>()
  let kept_bytes = 0

  const forget = (position: number, { bytes }: Kept) => {
    recent.delete(position)
    kept_bytes -= bytes.length
  }
  const keep = (bytes: Uint8Array, entry: Entry) => {
    recent.set(entry.position, { bytes, entry })
    kept_bytes += bytes.length
    for (const [position, oldest] of recent) {
      if (kept_bytes <= kept_bytes_max) break
      forget(position, oldest)
    }
  }

  return (position, stream, bytes) => {
    if (bytes.length < large_bytes) return decode(position, stream, bytes, judge)
    const known = recent.get(position)
    // Another log may have been put in this one's place.
    if (known?.entry.stream === stream && isSame(known.bytes, bytes)) return known.entry
    if (known !== undefined) forget(position, known)
    const entry = decode(position, stream, bytes, judge)
    keep(bytes, entry)
    return entry
  }
}
