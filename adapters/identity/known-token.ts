/**
 * Cache of recently verified tokens: verifying a signature or a request to Keystone costs more than
 * the rest of a small request. Hits are synchronous, so that direct routes need not wait.
 */
import type { Clock } from "effect"
import type { Caller } from "#gateway/caller.ts"

/** Maximum number of cached tokens, about 1 KB each. */
const known_max = 10_000

/**
 * Caches a token for `known_ms`, but not beyond its own expiry; a revoked token is accepted for at
 * most that time. Setting the clock back invalidates entries too.
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
    add: (token: string, caller: Caller, from_ms: number, expires_ms: number) => {
      const until_ms = Math.min(from_ms + known_ms, expires_ms)
      // An entry that has already expired would never be found, and would evict a valid one.
      if (until_ms <= from_ms) return
      known.set(token, { caller, from_ms, until_ms })
      const [oldest] = known.keys()
      if (known.size > known_max && oldest !== undefined) known.delete(oldest)
    },
  }
}
