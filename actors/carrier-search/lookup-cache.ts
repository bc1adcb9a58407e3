/**
 * Lookup results that can be reused: from the cache, if enabled, and from lookups during a search,
 * for that search only.
 *
 * So if an equal search started slightly earlier, the later one looks up only the beginning of the
 * range and then shares results, even if it lags behind. Source: market facts B2.
 */
import type { FoundCarrier } from "#actors/carrier-search/lookup.ts"

export interface LookupCache {
  /** Registers a search and returns its number. */
  readonly beginSearch: () => number
  readonly endSearch: () => void
  /** The number of the last search when a lookup starts, to pass to `add`. */
  readonly lastSearch: () => number
  /** Whether a result that arrives now may be reused. */
  readonly isReusable: () => boolean
  readonly find: (
    mc: number,
    search: number,
    now_ms: number,
  ) => ReadonlyArray<FoundCarrier> | undefined
  readonly add: (
    mc: number,
    found: ReadonlyArray<FoundCarrier>,
    last_search: number,
    now_ms: number,
  ) => void
}

/** About a hundred bytes each: at most 10 MB with a cache. */
const cached_max = 50_000
/** How far a search may lag behind an equal one. */
const shared_max = 5000
/** A carrier may register an unknown number at any time, so unknown numbers expire sooner. */
const unknown_share = 0.25

interface CacheEntry {
  readonly found: ReadonlyArray<FoundCarrier>
  readonly last_search: number
  readonly until_ms: number
}

/** `ttl_s` 0: no cache. */
export const makeLookupCache = (ttl_s: number): LookupCache => {
  const entries = new Map<number, CacheEntry>()
  const entries_max = ttl_s > 0 ? cached_max : shared_max
  let search_count = 0
  let running_searches = 0
  return {
    beginSearch: () => {
      running_searches += 1
      search_count += 1
      return search_count
    },
    endSearch: () => {
      running_searches -= 1
      if (ttl_s === 0 && running_searches < 2) entries.clear()
    },
    lastSearch: () => search_count,
    isReusable: () => ttl_s > 0 || running_searches > 1,
    find: (mc, search, now_ms) => {
      const entry = entries.get(mc)
      if (!entry) return undefined
      // A lookup that began after the search is as recent as the search's own.
      if (entry.last_search < search && now_ms >= entry.until_ms) return undefined
      entries.delete(mc)
      entries.set(mc, entry)
      return entry.found
    },
    add: (mc, found, last_search, now_ms) => {
      const ttl_ms = ttl_s * 1000 * (found.length > 0 ? 1 : unknown_share)
      entries.delete(mc)
      entries.set(mc, { found, last_search, until_ms: now_ms + ttl_ms })
      if (entries.size <= entries_max) return
      for (const oldest of entries.keys()) {
        entries.delete(oldest)
        break
      }
    },
  }
}
