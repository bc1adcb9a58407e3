/** A token bucket per caller, off by default. Source: DECISIONS of document 1, limits not shown. */

/** A bucket's number of tokens at a time in milliseconds. */
interface Bucket {
  tokens: number
  at_ms: number
}

/** Maximum number of buckets. Dropping the least recently used one only benefits its caller. */
const callers_max = 10_000

export interface Rate {
  readonly rate_limit_per_second: number
  readonly rate_limit_burst: number
}

/**
 * Creates a limiter, which takes a token of `caller` and returns 0, or else the number of seconds
 * until one is available.
 */
export const rateLimiter = () => {
  const buckets = new Map<string, Bucket>()
  return (caller: string, now_ms: number, rate: Rate): number => {
    const { rate_limit_per_second: per_second, rate_limit_burst } = rate
    if (per_second === 0) return 0
    const burst = rate_limit_burst || per_second
    const bucket = buckets.get(caller) ?? { tokens: burst, at_ms: now_ms }
    const earned = (Math.max(0, now_ms - bucket.at_ms) * per_second) / 1000
    bucket.tokens = Math.min(burst, bucket.tokens + earned)
    bucket.at_ms = now_ms
    buckets.delete(caller)
    buckets.set(caller, bucket)
    const [oldest] = buckets.keys()
    if (buckets.size > callers_max && oldest !== undefined) buckets.delete(oldest)
    if (bucket.tokens < 1) return Math.max(1, Math.ceil((1 - bucket.tokens) / per_second))
    bucket.tokens -= 1
    return 0
  }
}
