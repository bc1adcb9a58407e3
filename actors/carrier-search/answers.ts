/**
 * Lookup results that can be reused: from the cache, if enabled, and from lookups during a search,
 * for that search only.
 *
 * So if an equal search started slightly earlier, the later one looks up only the beginning of the
 * range and then shares results, even if it lags behind. Source: market facts B2.
 */
import type { Found } from "#actors/carrier-search/lookup.ts"

export interface Answers {
  /** Registers a search and returns its number. */
  readonly begin: () => number
  readonly end: () => void
  /** The number of the last search when a lookup starts, to pass to `keep`. */
  readonly now: () => number
  /** Whether a result that arrives now may be reused. */
  readonly isKept: () => boolean
  readonly find: (mc: number, search: number, now_ms: number) => ReadonlyArray<Found> | undefined
  readonly keep: (mc: number, found: ReadonlyArray<Found>, asked: number, now_ms: number) => void
}

/** About a hundred bytes each: at most 10 MB with a cache. */
const cached_max = 50_000
/** How far a search may lag behind an equal one. */
const shared_max = 5000
/** A carrier may register an unknown number at any time, so unknown numbers expire sooner. */
const unknown_share = 0.25

interface Kept {
  readonly found: ReadonlyArray<Found>
  readonly asked: number
  readonly until_ms: number
}

/** `ttl_s` 0: no cache. */
export const makeAnswers = (ttl_s: number): Answers => {
  const kept = new Map<number, Kept>()
  const most = ttl_s > 0 ? cached_max : shared_max
  let begun = 0
  let searches = 0
  return {
    begin: () => {
      searches += 1
      begun += 1
      return begun
    },
    end: () => {
      searches -= 1
      if (ttl_s === 0 && searches < 2) kept.clear()
    },
    now: () => begun,
    isKept: () => ttl_s > 0 || searches > 1,
    find: (mc, search, now_ms) => {
      const one = kept.get(mc)
      if (!one) return undefined
      // A lookup that began after the search is as recent as the search's own.
      if (one.asked < search && now_ms >= one.until_ms) return undefined
      kept.delete(mc)
      kept.set(mc, one)
      return one.found
    },
    keep: (mc, found, asked, now_ms) => {
      const ttl_ms = ttl_s * 1000 * (found.length > 0 ? 1 : unknown_share)
      kept.delete(mc)
      kept.set(mc, { found, asked, until_ms: now_ms + ttl_ms })
      if (kept.size <= most) return
      for (const oldest of kept.keys()) {
        kept.delete(oldest)
        break
      }
    },
  }
}
