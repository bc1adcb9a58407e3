/**
 * Tokens that were found good a moment ago: to verify a signature, or to ask Keystone, costs more
 * than the rest of a small request. Their callers are known at once, and direct routes wait for
 * nothing.
 */
import type { Clock } from "effect"
import type { Caller } from "#gateway/caller.ts"

/** Tokens known at once: about 1 KB each. */
const known_max = 10_000

/**
 * A token is known for `known_ms`, and no longer than it is good itself: so long one that was
 * withdrawn counts at most. A clock that was set back forgets it too.
 */
export const knownTokens = (clock: Clock.Clock, known_ms: number) => {
  const known = new Map<string, { readonly caller: Caller; from_ms: number; until_ms: number }>()
  return {
    find: (token: string): Caller | undefined => {
      const entry = known.get(token)
      if (entry === undefined) return undefined
      const now_ms = clock.currentTimeMillisUnsafe()
      if (now_ms >= entry.from_ms && now_ms < entry.until_ms) return entry.caller
      known.delete(token)
      return undefined
    },
    keep: (token: string, caller: Caller, from_ms: number, expires_ms: number) => {
      const until_ms = Math.min(from_ms + known_ms, expires_ms)
      // It could not be found, and would take the place of one that can.
      if (until_ms <= from_ms) return
      known.set(token, { caller, from_ms, until_ms })
      const [oldest] = known.keys()
      if (known.size > known_max && oldest !== undefined) known.delete(oldest)
    },
  }
}
