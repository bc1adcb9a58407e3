/**
 * Cache of the last large commits, shared by a process's readers: each commit is parsed and hashed
 * once instead of by every reader. A commit of a node's journal has five readers.
 */

import type { Entry, Judge } from "#events/log.ts"
import { decode } from "../commits/codec.ts"

/** Parsing smaller commits is cheap, and a replay reads hundreds of them. */
const large_bytes = 16 * 1024

/** Size of the cache in bytes of JSON; parsed commits take about four times as much. */
const cache_bytes_max = 2 * 1024 * 1024

interface Cached {
  readonly bytes: Uint8Array
  readonly entry: Entry
}

const isSame = (one: Uint8Array, other: Uint8Array) => Buffer.compare(one, other) === 0

/** Like `decode`; callers must not modify the entry. */
export const recentCommits = (
  judge: Judge,
): ((position: number, stream: string, bytes: Uint8Array) => Entry) => {
  const recent = new Map<number, Cached>()
  let cached_bytes = 0

  const evict = (position: number, { bytes }: Cached) => {
    recent.delete(position)
    cached_bytes -= bytes.length
  }
  const add = (bytes: Uint8Array, entry: Entry) => {
    recent.set(entry.position, { bytes, entry })
    cached_bytes += bytes.length
    for (const [position, oldest] of recent) {
      if (cached_bytes <= cache_bytes_max) break
      evict(position, oldest)
    }
  }

  return (position, stream, bytes) => {
    if (bytes.length < large_bytes) return decode(position, stream, bytes, judge)
    const known = recent.get(position)
    // Another log may have been put in this one's place.
    if (known?.entry.stream === stream && isSame(known.bytes, bytes)) return known.entry
    if (known !== undefined) evict(position, known)
    const entry = decode(position, stream, bytes, judge)
    add(bytes, entry)
    return entry
  }
}
